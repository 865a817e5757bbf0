"""Session ownership, takeover and idle sessions."""

from toold.protocol.result_cache import ResultCache
from toold.protocol.session_calls import SessionCalls
from toold.protocol.session_registry import SessionRegistry, SessionState, hash_key
from toold.protocol.tool_call import ToolCall


def session_of(session_id: str = "s", key: str | None = "key", principal: str = "anna") -> SessionState[str]:
    calls = SessionCalls(32, ResultCache(10**6, 20))
    key_hash = None if key is None else hash_key(key)
    return SessionState(id=session_id, principal_name=principal, calls=calls, key_hash=key_hash)


def book(*known: SessionState[str]) -> SessionRegistry[SessionState[str], str]:
    sessions: SessionRegistry[SessionState[str], str] = SessionRegistry()
    for session in known:
        sessions.add(session)
    return sessions


def test_a_key_finds_its_session_for_its_principal_only() -> None:
    """Another principal, or an unknown key, finds nothing."""
    session = session_of()
    sessions = book(session)
    assert sessions.by_key(hash_key("key"), "anna") is session
    assert sessions.by_key(hash_key("key"), "ben") is None
    assert sessions.by_key(hash_key("kex"), "anna") is None


def test_keys_are_stored_as_hashes() -> None:
    """Any text has a hash, even one with an unpaired surrogate, which a client may send."""
    assert b"key" not in hash_key("key")
    assert len(hash_key("\ud800")) == 32


def test_takeover() -> None:
    """``attach`` returns the previous holder, whose later end does not affect the session."""
    session = session_of()
    sessions = book(session)
    assert sessions.attach(session, "old") is None
    assert sessions.attach(session, "new") == "old"
    assert not sessions.detach(session, "old", 1)
    assert (session.holder, session.detached_at) == ("new", None)
    assert sessions.detach(session, "new", 2)
    assert (session.holder, session.detached_at) == (None, 2)


def test_a_session_without_a_key_ends_with_its_connection() -> None:
    """It cannot be resumed; one with a key waits for its client."""
    plain, resumable = session_of("plain", key=None), session_of("resumable")
    sessions = book(plain, resumable)
    for session in (plain, resumable):
        sessions.attach(session, "port")
        assert sessions.detach(session, "port", 1)
    assert list(sessions) == [resumable]


def test_a_late_connection_is_overtaken() -> None:
    """Its number is not higher than the highest so far; a connection without a number, of an older client, never is."""
    session = session_of()
    assert [session.overtaken(number) for number in (2, 1, 2, None, 3, 2)] == [False, True, True, False, False, True]


def test_idle_sessions() -> None:
    """A session that is held, has a running call, or was detached recently is not idle."""
    held, busy, fresh, idle = (session_of(name, key=name) for name in ("held", "busy", "fresh", "idle"))
    sessions = book(held, busy, fresh, idle)
    for session, detached_at in ((held, None), (busy, 0), (fresh, 8), (idle, 6)):
        sessions.attach(session, "port")
        if detached_at is not None:
            sessions.detach(session, "port", detached_at)
    busy.calls.register("a", "echo", ToolCall("a", "echo", {}), 0)
    assert sessions.idle(10, 4) == [idle]
    sessions.remove(idle)
    assert len(sessions) == 3
    assert sessions.by_key(hash_key("idle"), "anna") is None
