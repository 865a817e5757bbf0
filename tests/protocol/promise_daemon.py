"""A daemon without an event loop, with dicts as the disk, which drives the session state machine as the real one does,
and what its clients know of it.
"""

from dataclasses import dataclass, field
from typing import Literal

from toold.protocol.error_codes import CallTimeoutError
from toold.protocol.result_cache import ResultCache
from toold.protocol.session_calls import RequestIdState, SessionCalls
from toold.protocol.session_registry import SessionRegistry, SessionState, hash_key
from toold.protocol.tool_call import CallStatus, Metadata, TextContent, Timings, ToolCall, ToolResult

CallId = tuple[str, str]
"""A session's id and a request key."""
Content = tuple[str, str]
"""A tool's name and its text argument."""

LOCAL_TOOL = "echo"
WINDOW_S, TTL_S = 4.0, 20.0


def says(text: str) -> ToolResult:
    return ToolResult(Metadata(1.0, Timings()), (TextContent(text),))


def timed_out(call_id: CallId) -> ToolResult:
    """The answer of a call that never started: it may be retried, but under another id."""
    error = CallTimeoutError(f"{call_id}: waited too long", executed="no").to_tool_error()
    assert error.retryable
    return ToolResult(Metadata(1.0, Timings()), error=error)


def outcome_unknown(call_id: CallId) -> ToolResult:
    return says(f"{call_id}: the outcome is unknown")


# --- the daemon, as far as it uses the state machine -----------------------------------------------------------------


@dataclass(eq=False)
class Connection:
    """The server's end of a connection, and the answers sent on it."""

    session: SessionState["Connection"]
    answers: list[tuple[str, ToolResult]]
    reads: bool = True
    """False: the peer is unresponsive, so answers hang until the server closes the connection."""
    hanging: int = 0


@dataclass(eq=False)
class Running:
    """An accepted call without an answer."""

    session: SessionState[Connection]
    key: str
    content: Content
    started: bool = False

    @property
    def id(self) -> CallId:
        return self.session.id, self.key


@dataclass
class Row:
    """A call in the journal; local ones are there after a shutdown, or once their session left memory."""

    name: str
    arguments_hash: bytes
    local: bool
    state: Literal["started", "done", "interrupted", "expired"]
    result: ToolResult | None
    at: float


@dataclass
class Disk:
    """The state that survives a crash."""

    sessions: dict[bytes, tuple[str, str]] = field(default_factory=dict)
    """Hash of the resume key → the session's id and its principal."""
    calls: dict[CallId, Row] = field(default_factory=dict)


class Daemon:
    """One process of the daemon: everything here except the disk is lost in a crash."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.sessions: SessionRegistry[SessionState[Connection], Connection] = SessionRegistry()
        self.shelves: dict[str, ResultCache] = {}
        self.running: dict[CallId, Running] = {}

    def open(self, session_id: str, principal: str, key: str | None) -> SessionState[Connection]:
        session = self._make(session_id, principal, None if key is None else hash_key(key))
        if session.key_hash is not None:
            self.disk.sessions[session.key_hash] = (session_id, principal)
        return session

    def find(self, key: str, principal: str) -> SessionState[Connection] | None:
        """Returns the principal's session with this key, from memory or from the disk."""
        key_hash = hash_key(key)
        session = self.sessions.by_key(key_hash, principal)
        if session is not None:
            return session
        session_id, owner = self.disk.sessions.get(key_hash, ("", None))
        if owner != principal:
            return None
        session = self._make(session_id, principal, key_hash)
        rows = [(key, row) for (owner_id, key), row in self.disk.calls.items() if owner_id == session_id]
        for request_key, row in sorted(rows, key=lambda decoded: decoded[1].at):
            session.calls.restore(
                request_key,
                row.name,
                row.arguments_hash,
                row.result,
                1,
                row.at,
                echo_id=False,
                journalled=not row.local,
                interrupted=row.state == "interrupted",
            )
        return session

    def attach(self, session: SessionState[Connection], now: float) -> tuple[Connection, Connection | None]:
        """Attaches a new connection. Returns it, and the one that it supersedes."""
        connection = Connection(session, [(retained.key, retained.result) for retained in session.calls.retained(now)])
        return connection, self.sessions.attach(session, connection)

    def leave(self, connection: Connection, now: float) -> None:
        """Handles the end of a connection; hanging answers are settled."""
        for _ in range(connection.hanging):
            connection.session.calls.delivered()
        connection.hanging = 0
        self.sessions.detach(connection.session, connection, now)

    def submit(self, connection: Connection, key: str, content: Content, now: float) -> RequestIdState:
        session, (name, text) = connection.session, content
        expected = session.calls.register(key, name, ToolCall(key, name, {"text": text}), now)
        if expected is RequestIdState.NEW:
            self.running[session.id, key] = Running(session, key, content)
        elif expected is RequestIdState.DONE:
            replay = session.calls.result(key, now)
            assert replay is not None
            connection.answers.append((key, replay))
        return expected

    def start(self, running: Running, now: float) -> bool:
        """Starts a call; one that is not local is journalled first. False: its id is in the journal, so it must not
        run.
        """
        name, _ = running.content
        if name != LOCAL_TOOL:
            known = self.disk.calls.get(running.id)
            if known is not None and not known.local:
                return False
            arguments_hash = running.session.calls.arguments_hash(running.key)
            self.disk.calls[running.id] = Row(name, arguments_hash, False, "started", None, now)
        running.started = True
        return True

    def answer(self, running: Running, result: ToolResult, now: float) -> None:
        """Persists the answer, also of a call that never started, then sends it to the session's current holder."""
        calls, holder = running.session.calls, running.session.holder
        name, journalled = running.content[0], running.content[0] != LOCAL_TOOL
        if journalled:
            arguments_hash = calls.arguments_hash(running.key)
            self.disk.calls[running.id] = Row(name, arguments_hash, False, "done", result, now)
        del self.running[running.id]
        calls.finish(running.key, result, 1, 1, now, journalled=journalled, started=running.started)
        if holder is not None and not holder.reads:
            holder.hanging += 1
            return
        if holder is not None:
            holder.answers.append((running.key, result))
        calls.delivered()

    def acknowledge(self, session: SessionState[Connection], key: str) -> None:
        for forgotten in session.calls.acknowledge([key]):
            row = self.disk.calls.get((session.id, forgotten))
            if row is not None and row.local:
                del self.disk.calls[session.id, forgotten]
            elif row is not None:
                row.state, row.result = "expired", None

    def put_away(self, now: float) -> list[SessionState[Connection]]:
        """Removes idle sessions from memory."""
        idle = self.sessions.idle(now, WINDOW_S)
        for session in idle:
            self.keep(session, now)
            self.sessions.remove(session)
        return idle

    def keep(self, session: SessionState[Connection], now: float) -> None:
        """Persists answers that are only in memory."""
        for retained in session.calls.retained(now):
            if not retained.journalled:
                arguments_hash = session.calls.arguments_hash(retained.key)
                row = Row(retained.name, arguments_hash, True, "done", retained.result, retained.since)
                self.disk.calls[session.id, retained.key] = row

    def restarted(self, now: float) -> "Daemon":
        """Returns the daemon's next process."""
        for call_id, row in self.disk.calls.items():
            if row.state == "started":
                row.state, row.result, row.at = "interrupted", outcome_unknown(call_id), now
        return Daemon(self.disk)

    def _make(self, session_id: str, principal: str, key_hash: bytes | None) -> SessionState[Connection]:
        cache = self.shelves.setdefault(principal, ResultCache(10**6, TTL_S))
        calls = SessionCalls(1000, cache)
        session = SessionState[Connection](id=session_id, principal_name=principal, calls=calls, key_hash=key_hash)
        self.sessions.add(session)
        return session


@dataclass
class Client:
    """A client: its principal, its last resume key, and its connection if it has one."""

    principal: str
    key: str | None = None
    connection: Connection | None = None


@dataclass
class Truth:
    """The expected state of an accepted call."""

    content: Content
    journalled: bool = False
    """The call is not local, and started or was answered: it must never start again."""
    result: ToolResult | None = None
    since: float = 0.0
    interrupted: bool = False
    forgotten: bool = False
    stored: bool = False
    """The answer survives a crash."""

    def retained(self, now: float) -> bool:
        return self.result is not None and not self.forgotten and now - self.since <= TTL_S

    def status(self, now: float) -> CallStatus:
        if self.result is None:
            return "running"
        if self.retained(now):
            return "interrupted" if self.interrupted else "done"
        return "expired" if self.journalled else "unknown"
