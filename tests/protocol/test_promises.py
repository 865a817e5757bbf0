"""The guarantees for calls (docs/protocol.md) hold in any order of events. The session state machine is driven as
the daemon drives it, without an event loop and with dicts as the disk: clients connect, stall, take over and
disconnect, calls run and end, the daemon stops and crashes. A simple model predicts the result, and each step
compares the two.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import count
from typing import TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.protocol.promise_daemon import (
    LOCAL_TOOL,
    WINDOW_S,
    CallId,
    Client,
    Connection,
    Content,
    Daemon,
    Disk,
    Running,
    Truth,
    outcome_unknown,
    says,
    timed_out,
)
from toold.protocol.session_calls import RequestIdState
from toold.protocol.session_registry import SessionState
from toold.protocol.tool_call import CallStatus, ToolResult

T = TypeVar("T")

CONTENTS = st.sampled_from([(LOCAL_TOOL, "x"), (LOCAL_TOOL, "y"), ("effect", "x")])
KEYS = st.sampled_from("ab")
WHICH = st.integers(0, 5)
"""Selects one of the existing clients, connections or calls."""


def pick(which: int, among: Sequence[T]) -> T:
    return among[which % len(among)]


class Promises(RuleBasedStateMachine):
    """Two clients of one principal and one of another, and the daemon across restarts."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.daemon = Daemon(Disk())
        self.clients = [Client("anna"), Client("anna"), Client("ben")]
        self.lost: list[Connection] = []
        """Connections that the server considers alive, or has not closed yet."""
        self.connections: list[Connection] = []
        self.numbers = count(1)

        self.truth: dict[CallId, Truth] = {}
        self.sent: defaultdict[CallId, list[ToolResult]] = defaultdict(list)
        """The answers of each call; of a call that may run again, of each run."""
        self.executed: Counter[CallId] = Counter()
        """How often each call that is not local ran."""
        self.session_of: dict[str, str] = {}
        """Resume key → session; entries are never removed."""

    # --- clients connect and disconnect
    # ----------------------------------------------------------------------------------

    @initialize()
    def all_connect(self) -> None:
        """All clients connect with the feature ``resume``."""
        for client in self.clients:
            self.enter_anew(client, True)

    @precondition(lambda self: len(self.connected) < len(self.clients))
    @rule(who=WHICH, resumable=st.booleans())
    def connect(self, who: int, resumable: bool) -> None:
        """A client connects without resuming its session."""
        self.enter_anew(pick(who, [client for client in self.clients if client.connection is None]), resumable)

    @precondition(lambda self: self.returning)
    @rule(who=WHICH)
    def resume(self, who: int) -> None:
        """A client resumes, while its old connection may still be open: guarantee 3."""
        client, key = pick(who, self.returning)
        session = self.daemon.find(key, client.principal)
        assert session is not None
        assert session.id == self.session_of[key]
        connection = self.enter(client, session)
        missed = {key: expected.result for key, expected in self.calls_of(session) if expected.retained(self.now)}
        assert dict(connection.answers) == missed
        assert len(connection.answers) == len(missed)

    @rule(who=WHICH)
    def bring_a_wrong_key(self, who: int) -> None:
        """Another principal's key is useless, and so is an invented one: guarantee 4."""
        client = pick(who, self.clients)
        for key in ("made up", *(other.key for other in self.clients if other.principal != client.principal)):
            assert key is None or self.daemon.find(key, client.principal) is None

    @precondition(lambda self: self.connected)
    @rule(who=WHICH)
    def drop(self, who: int) -> None:
        """A connection ends, and the server notices."""
        client, connection = pick(who, self.connected)
        self.daemon.leave(connection, self.now)
        client.connection = None

    @precondition(lambda self: self.connected)
    @rule(who=WHICH)
    def fall_silent(self, who: int) -> None:
        """A client disappears unnoticed: the server's answers hang."""
        client, connection = pick(who, self.connected)
        connection.reads = False
        self.lost.append(connection)
        client.connection = None

    @precondition(lambda self: self.lost)
    @rule(which=WHICH)
    def give_up(self, which: int) -> None:
        """The server notices the end of an unresponsive or superseded connection."""
        connection = pick(which, self.lost)
        self.lost.remove(connection)
        self.daemon.leave(connection, self.now)

    # --- calls -------------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.connected)
    @rule(who=WHICH, key=KEYS, content=CONTENTS)
    def call(self, who: int, key: str, content: Content) -> None:
        """A call, which may be a repeat: guarantee 2. The model alone predicts the state."""
        _, connection = pick(who, self.connected)
        call_id = (connection.session.id, key)
        expected = self.daemon.submit(connection, key, content, self.now)
        status, known = self.status(call_id), self.truth.get(call_id)
        if known is None or status == "unknown":
            assert expected is RequestIdState.NEW
            self.truth[call_id] = Truth(content)
        elif known.content != content:
            assert expected is RequestIdState.CONFLICT
        elif status == "running":
            assert expected is RequestIdState.RUNNING
        elif status == "expired":
            assert expected is RequestIdState.EXPIRED
        else:
            assert expected is RequestIdState.DONE
            assert connection.answers[-1] == (key, known.result)

    @precondition(lambda self: self.connected)
    @rule(who=WHICH, key=KEYS, content=CONTENTS)
    def call_and_answer(self, who: int, key: str, content: Content) -> None:
        """A call that is answered at once if it is new."""
        before = set(self.daemon.running)
        self.call(who, key, content)
        for running in self.waiting:
            if running.id not in before:
                self.let_start(running)
                self.finish(self.started.index(running))

    @precondition(lambda self: self.waiting)
    @rule(which=WHICH)
    def start(self, which: int) -> None:
        """A waiting call starts."""
        self.let_start(pick(which, self.waiting))

    @precondition(lambda self: self.started)
    @rule(which=WHICH)
    def finish(self, which: int) -> None:
        """A running call ends."""
        running = pick(which, self.started)
        self.answer(running, says(f"{running.id}: answer {next(self.numbers)}"))

    @precondition(lambda self: self.daemon.running)
    @rule(which=WHICH)
    def cancel(self, which: int) -> None:
        """A waiting or running call is cancelled."""
        running = pick(which, list(self.daemon.running.values()))
        self.answer(running, says(f"{running.id}: cancelled") if running.started else timed_out(running.id))

    @precondition(lambda self: self.connected)
    @rule(who=WHICH, key=KEYS)
    def acknowledge(self, who: int, key: str) -> None:
        """A client acknowledges an answer: it is not redelivered, and the id of a call that ran is still known."""
        _, connection = pick(who, self.connected)
        self.daemon.acknowledge(connection.session, key)
        known = self.truth.get((connection.session.id, key))
        if known is not None and known.result is not None:
            known.forgotten = True

    # --- time, shutdown and crashes
    # --------------------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([1, 5, 15]))
    def time_passes(self, seconds: int) -> None:
        """Sessions become idle, results expire."""
        self.now += seconds

    @precondition(lambda self: any(session.holder is None for session in self.daemon.sessions))
    @rule()
    def put_away(self) -> None:
        """Idle sessions leave memory; clients that resume later see no difference."""
        self.now += WINDOW_S
        for session in self.daemon.put_away(self.now):
            assert all(connection.session is not session for _, connection in self.connected)
            assert all(expected.result is not None for _, expected in self.calls_of(session))
            self.all_stored(session)

    @precondition(lambda self: self.connected and self.truth)
    @rule()
    def drain(self) -> None:
        """An orderly shutdown: running calls are interrupted and answered, and every answer is persisted."""
        for running in tuple(self.daemon.running.values()):
            self.answer(running, says(f"{running.id}: cut off"))
        for session in self.daemon.sessions:
            if session.resumable:
                self.daemon.keep(session, self.now)
                self.all_stored(session)
        self.crash()

    @precondition(lambda self: self.truth)
    @rule()
    def crash(self) -> None:
        """All memory is lost. Calls that had started have an unknown outcome; calls without an answer that had not, and
        local ones that are not on disk, are unknown and may be sent again.
        """
        lasting = set(self.session_of.values())
        for call_id, expected in tuple(self.truth.items()):
            if expected.result is None and expected.journalled:
                expected.result, expected.since, expected.interrupted = outcome_unknown(call_id), self.now, True
                self.sent[call_id].append(expected.result)
            if call_id[0] not in lasting or not (expected.journalled or expected.stored):
                del self.truth[call_id]
        self.daemon = self.daemon.restarted(self.now)
        self.lost.clear()
        for client in self.clients:
            client.connection = None

    def teardown(self) -> None:
        """Guarantee 1: in the end each accepted call has its answer, and no counter is off."""
        for running in tuple(self.daemon.running.values()):
            self.answer(running, says(f"{running.id}: the last"))
        while self.connected:
            self.drop(0)
        while self.lost:
            self.give_up(0)
        assert all(expected.result is not None for expected in self.truth.values())
        assert all(not len(connection.session.calls) for connection in self.connections if self.lives(connection))

    # --- invariants
    # ------------------------------------------------------------------------------------------------------

    @invariant()
    def what_is_not_local_runs_at_most_once(self) -> None:
        """Guarantee 2, crashes included."""
        assert all(times == 1 for times in self.executed.values())

    @invariant()
    def who_is_connected_holds_its_session(self) -> None:
        """Guarantee 3: a superseded connection does not matter."""
        assert all(connection.session.holder is connection for _, connection in self.connected)

    @invariant()
    def nobody_gets_anothers_answer(self) -> None:
        """Guarantee 4: each answer on a connection belongs to a call of its session."""
        for connection in self.connections:
            for key, result in connection.answers:
                assert result in self.sent[connection.session.id, key]

    @invariant()
    def status_tells_the_truth(self) -> None:
        """For each id of each session in memory."""
        for session in self.daemon.sessions:
            for key in "ab":
                assert session.calls.status(key, self.now) == self.status((session.id, key))

    @invariant()
    def calls_are_counted_until_their_answers_are_sent(self) -> None:
        """The running calls, and those with answers that hang."""
        for session in self.daemon.sessions:
            running = [expected for expected in self.daemon.running.values() if expected.session is session]
            hanging = [connection.hanging for connection in self.connections if connection.session is session]
            assert len(session.calls) == len(running) + sum(hanging)

    @invariant()
    def a_session_without_a_key_ends_with_its_connection(self) -> None:
        """The results of ended sessions are dropped."""
        assert all(session.resumable or session.holder is not None for session in self.daemon.sessions)

    # --- helpers
    # ---------------------------------------------------------------------------------------------------------

    @property
    def connected(self) -> list[tuple[Client, Connection]]:
        return [(client, client.connection) for client in self.clients if client.connection is not None]

    @property
    def returning(self) -> list[tuple[Client, str]]:
        return [(client, client.key) for client in self.clients if client.key is not None]

    @property
    def waiting(self) -> list[Running]:
        return [running for running in self.daemon.running.values() if not running.started]

    @property
    def started(self) -> list[Running]:
        return [running for running in self.daemon.running.values() if running.started]

    def enter_anew(self, client: Client, resumable: bool) -> None:
        number = next(self.numbers)
        session_id = f"session {number}"
        client.key = f"key {number}" if resumable else None
        if client.key is not None:
            self.session_of[client.key] = session_id
        connection = self.enter(client, self.daemon.open(session_id, client.principal, client.key))
        assert not connection.answers

    def enter(self, client: Client, session: SessionState[Connection]) -> Connection:
        """The client's new connection holds the session; its old one no longer matters."""
        connection, superseded = self.daemon.attach(session, self.now)
        assert session.principal_name == client.principal
        if client.connection is not None:
            self.lost.append(client.connection)
        assert superseded is None or superseded in self.lost
        client.connection = connection
        self.connections.append(connection)
        return connection

    def let_start(self, running: Running) -> None:
        assert self.daemon.start(running, self.now)
        if running.content[0] != LOCAL_TOOL:
            self.executed[running.id] += 1
            self.truth[running.id].journalled = True

    def answer(self, running: Running, result: ToolResult) -> None:
        """Guarantee 1: a call has one answer; it goes to the current holder of the session only."""
        expected, holder = self.truth[running.id], running.session.holder
        assert expected.result is None
        expected.journalled = expected.journalled or running.content[0] != LOCAL_TOOL
        sent = sum(len(connection.answers) for connection in self.connections)
        self.daemon.answer(running, result, self.now)
        expected.result, expected.since = result, self.now
        self.sent[running.id].append(result)
        for _, connection in self.connected:
            if connection.session is running.session:
                assert connection is holder
                assert connection.answers[-1] == (running.key, result)
        assert sum(len(connection.answers) for connection in self.connections) - sent <= 1

    def status(self, call_id: CallId) -> CallStatus:
        expected = self.truth.get(call_id)
        return "unknown" if expected is None else expected.status(self.now)

    def calls_of(self, session: SessionState[Connection]) -> list[tuple[str, Truth]]:
        return [(key, expected) for (session_id, key), expected in self.truth.items() if session_id == session.id]

    def all_stored(self, session: SessionState[Connection]) -> None:
        for _, expected in self.calls_of(session):
            expected.stored = expected.stored or expected.retained(self.now)

    def lives(self, connection: Connection) -> bool:
        return any(session is connection.session for session in self.daemon.sessions)


TestPromises = Promises.TestCase
TestPromises.settings = settings(max_examples=4 * settings().max_examples, stateful_step_count=50, deadline=None)
