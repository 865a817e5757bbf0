"""Whose session it is, who holds it, and when nobody needs it in memory."""

from toold.protocol.result_cache import ResultCache
from toold.protocol.session_calls import SessionCalls
from toold.protocol.session_registry import SessionRegistry, SessionState, hash_key


def standing(session_id: str = "s", key: str | None = "key", principal: str = "anna") -> SessionState[str]:
    calls = SessionCalls(session_id, 32, ResultCache(10**6, 20))
    key_hash = None if key is None else hash_key(key)
    return SessionState(id=session_id, principal_name=principal, calls=calls, key_hash=key_hash)


def book(*known: SessionState[str]) -> SessionRegistry[SessionState[str], str]:
    sessions: SessionRegistry[SessionState[str], str] = SessionRegistry()
    for session in known:
        sessions.add(session)
    return sessions


def test_a_key_finds_its_session_for_its_principal_alone() -> None:
    """Another's key, or one that was never given, finds nothing."""
    session = standing()
    sessions = book(session)
    assert sessions.by_key(hash_key("key"), "anna") is session
    assert sessions.by_key(hash_key("key"), "ben") is None
    assert sessions.by_key(hash_key("kex"), "anna") is None


def test_of_a_key_a_hash_is_known_and_any_text_has_one() -> None:
    """The key itself is nowhere; unpaired surrogate, which a client may well send, is no error."""
    assert b"key" not in hash_key("key")
    assert len(hash_key("\ud800")) == 32


def test_who_takes_a_session_over_learns_whom_from_and_the_old_holder_cannot_end_it() -> None:
    """The connection that the server still believed alive ends later, and that means nothing any more."""
    session = standing()
    sessions = book(session)
    assert sessions.attach(session, "old") is None
    assert sessions.attach(session, "new") == "old"
    assert not sessions.detach(session, "old", 1)
    assert (session.holder, session.detached_at) == ("new", None)
    assert sessions.detach(session, "new", 2)
    assert (session.holder, session.detached_at) == (None, 2)


def test_a_session_without_a_key_ends_with_its_connection() -> None:
    """Nobody can come back to it; one with a key waits for its client."""
    plain, resumable = standing("plain", key=None), standing("resumable")
    sessions = book(plain, resumable)
    for session in (plain, resumable):
        sessions.attach(session, "port")
        assert sessions.detach(session, "port", 1)
    assert list(sessions) == [resumable]


def test_a_session_is_idle_once_it_was_left_for_the_window_and_nothing_runs() -> None:
    """One that is held, that has a call under way, or that was left a moment ago stays in memory."""
    held, busy, fresh, idle = (standing(name, key=name) for name in ("held", "busy", "fresh", "idle"))
    sessions = book(held, busy, fresh, idle)
    for session, detached_at in ((held, None), (busy, 0), (fresh, 8), (idle, 6)):
        sessions.attach(session, "port")
        if detached_at is not None:
            sessions.detach(session, "port", detached_at)
    busy.calls.accept("a", "echo", {}, 0)
    assert sessions.idle(10, 4) == [idle]
    sessions.remove(idle)
    assert len(sessions) == 3
    assert sessions.by_key(hash_key("idle"), "anna") is None
