"""Leases and fencing, as a model: a database, nodes that pause, die and suspect each other, and clients that resume.

The nodes calculate with the real ``NodeLease`` and are declared dead by the real ``may_declare_dead``. The database
of the model does what one transaction of the store does. Hypothesis chooses the order of all events.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from toold.store.node_lease import CLOCK_DRIFT, HEARTBEATS, NodeLease
from toold.store.node_rows import NodeRow, NodeState, Suspicion, may_declare_dead

LEASE_S = 10.0
SESSION = "s"
CALLS = ("a", "b")
RATES = st.sampled_from([0.999, 1.0, 1.001])
NODES = st.integers(0, 2)

CallKey = tuple[str, str]


@dataclass
class StoredRun:
    """A row of the journal."""

    node: int
    outcome: str | None = None
    """None while it runs."""


@dataclass
class Group:
    """A commit group that a node has sent and that is not acknowledged yet."""

    sent_at: float
    starts: list[CallKey] = field(default_factory=list)
    ends: list[tuple[CallKey, str]] = field(default_factory=list)
    releases: bool = False
    answer: Literal["applied", "refused"] | None = None
    new: list[CallKey] = field(default_factory=list)
    """The starts that were not in the journal before."""


@dataclass
class Node:
    """A process as it sees itself."""

    number: int
    rate: float
    """How fast its clock runs, compared to the database's."""
    lease: NodeLease = field(default_factory=lambda: NodeLease(LEASE_S))
    held: set[str] = field(default_factory=set)
    queue: Group = field(default_factory=lambda: Group(0.0))
    sent: Group | None = None
    runs: set[CallKey] = field(default_factory=set)
    paused: bool = False
    alive: bool = True


class FencingMachine(RuleBasedStateMachine):
    """Any order of commits, acknowledgements, pauses, deaths, burials, claims and calls."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.nodes: list[Node] = []
        # The database.
        self.states: list[NodeState] = []
        self.until: list[float] = []
        self.holders: dict[str, int] = {}
        self.journal: dict[CallKey, StoredRun] = {}
        # What really happened.
        self.executions: dict[CallKey, int] = {}
        self.answers: dict[CallKey, set[str]] = {}
        self.wrongly_suspected: set[int] = set()
        # The node that each client is connected to.
        self.connected: dict[str, int] = {}

    # --- what a mistaken implementation would do otherwise -----------------------------------------------------------

    def renew(self, node: Node, group: Group) -> None:
        node.lease.renewed(group.sent_at)

    def may_be_declared_dead(self, victim: int, suspicion: Suspicion) -> bool:
        return may_declare_dead(row(self.states[victim], self.until[victim] - self.now), suspicion)

    def accepts(self, node: Node) -> bool:
        """Whether the database applies a node's transaction."""
        return self.states[node.number] != "dead"

    def answers_before_commit(self) -> bool:
        return False

    # --- helpers -----------------------------------------------------------------------------------------------------

    def clock(self, node: Node) -> float:
        return self.now * node.rate

    def may_send(self, node: Node) -> bool:
        return node.alive and node.lease.good(self.clock(node))

    def runnable(self, number: int) -> Node | None:
        """The node of this number if it can do anything."""
        node = self.nodes[number % len(self.nodes)]
        return node if node.alive and not node.paused and node.lease.fenced is None else None

    def tell(self, node: Node, key: CallKey, outcome: str) -> None:
        """Send an answer; its client receives it if it is still connected to this node."""
        if self.may_send(node) and key[0] in node.held and self.connected.get(key[0]) == node.number:
            self.answers.setdefault(key, set()).add(outcome)

    # --- the world ---------------------------------------------------------------------------------------------------

    @initialize(rates=st.tuples(RATES, RATES))
    def begin(self, rates: tuple[float, float]) -> None:
        for rate in rates:
            self.add_node(rate)

    def add_node(self, rate: float) -> None:
        node = Node(len(self.nodes), rate)
        self.nodes.append(node)
        self.states.append("live")
        self.until.append(self.now + LEASE_S)
        self.renew(node, Group(self.clock(node)))

    @precondition(lambda self: len(self.nodes) < 3)
    @rule(rate=RATES, replaces=NODES)
    def start(self, rate: float, replaces: int) -> None:
        """A process starts, and takes the name of another one."""
        self.suspect(replaces, "replaced")
        self.add_node(rate)

    @rule(seconds=st.sampled_from([0.05, 2.4, 5.0, 7.42, 7.55, 9.92, 10.05]))
    def pass_time(self, seconds: float) -> None:
        """Meanwhile the nodes that wait for no acknowledgement send heartbeats."""
        while seconds > 0:
            self.now += min(seconds, LEASE_S / 4)
            seconds -= LEASE_S / 4
            for node in self.nodes:
                if self.runnable(node.number) and node.sent is None and not node.queue.releases:
                    self.send_group(node.number)
                    self.apply_group(node.number)
                    self.acknowledge_group(node.number)

    @rule(number=NODES)
    def pause_or_continue(self, number: int) -> None:
        node = self.nodes[number % len(self.nodes)]
        node.paused = not node.paused

    @rule(number=NODES)
    def kill(self, number: int) -> None:
        node = self.nodes[number % len(self.nodes)]
        if node.sent is None or node.sent.answer is not None:  # else the database may still get the group: later
            node.alive = False

    @rule(number=NODES, suspicion=st.sampled_from(["none", "none", "silent", "silent", "unreachable"]))
    def suspect(self, number: int, suspicion: Suspicion) -> None:
        """A node declares another one dead, rightly or not, if the database permits it. Any node may seem silent."""
        victim = self.nodes[number % len(self.nodes)]
        if not self.may_be_declared_dead(victim.number, suspicion):
            return
        if self.until[victim.number] >= self.now and suspicion != "silent":
            self.wrongly_suspected.add(victim.number)
        self.states[victim.number] = "dead"
        for session, holder in list(self.holders.items()):
            if holder == victim.number:
                del self.holders[session]
        for run in self.journal.values():
            if run.node == victim.number and run.outcome is None:
                run.outcome = "interrupted"

    # --- commits -----------------------------------------------------------------------------------------------------

    @rule(number=NODES)
    def send_group(self, number: int) -> None:
        """A node sends what is queued, or a heartbeat; one group at a time."""
        node = self.runnable(number)
        if node is not None and node.sent is None:
            node.sent, node.queue = node.queue, Group(0.0)
            node.sent.sent_at = self.clock(node)

    @rule(number=NODES)
    def apply_group(self, number: int) -> None:
        """The database commits a group, or refuses it. A group that is sent again was applied once."""
        node = self.nodes[number % len(self.nodes)]
        group = node.sent
        if group is None or group.answer is not None:
            return
        if not self.accepts(node):
            group.answer = "refused"
            return
        self.until[node.number] = self.now + LEASE_S
        for key in group.starts:
            if key not in self.journal:
                self.journal[key] = StoredRun(node.number)
                group.new.append(key)
        for key, outcome in group.ends:
            run = self.journal[key]
            if run.node == node.number and run.outcome is None:
                run.outcome = outcome
        if group.releases:
            self.states[node.number] = "dead"
            for session, holder in list(self.holders.items()):
                if holder == node.number:
                    del self.holders[session]
        group.answer = "applied"

    @rule(number=NODES)
    def acknowledge_group(self, number: int) -> None:
        """The node learns what became of its group: tools run, answers leave."""
        node = self.runnable(number)
        if node is None or node.sent is None or node.sent.answer is None:
            return
        group, node.sent = node.sent, None
        if group.answer == "refused":
            node.lease.fence("declared dead")
            return
        self.renew(node, group)
        if group.releases:
            node.alive = False
        for key in group.new:
            self.executions[key] = self.executions.get(key, 0) + 1
            node.runs.add(key)
        for key, outcome in group.ends:
            self.tell(node, key, outcome)

    @rule(number=NODES)
    def drain(self, number: int) -> None:
        """A node stops: it answers nothing further on its sessions, and releases them in its last commit."""
        node = self.runnable(number)
        if node is None or node.sent is not None or node.runs or not self.accepts(node):
            return
        self.states[node.number] = "draining"
        node.held.clear()
        node.queue.releases = True
        self.send_group(number)

    # --- sessions and calls ------------------------------------------------------------------------------------------

    @rule(number=NODES)
    def resume(self, number: int, session: str = SESSION) -> None:
        """A client connects to a node, which claims the session in a transaction. Then it gets the stored answers."""
        node = self.runnable(number)
        if node is None or not self.may_send(node) or node.queue.releases:
            return
        if not self.accepts(node):
            node.lease.fence("declared dead")
            return
        if self.states[node.number] != "live":
            return
        holder = self.holders.get(session)
        if holder not in {None, node.number}:
            return  # relayed to its holder, which is the same as connecting there
        self.holders[session] = node.number
        node.held.add(session)
        self.connected[session] = node.number
        for key, run in self.journal.items():
            if key[0] == session and run.outcome is not None:
                self.tell(node, key, run.outcome)

    @rule(call=st.sampled_from(CALLS))
    def call(self, call: str, session: str = SESSION) -> None:
        """A client sends a call, new or repeated, to the node that it is connected to."""
        if session not in self.connected:
            return
        node = self.runnable(self.connected[session])
        if node is None or session not in node.held or not self.may_send(node):
            return
        key = (session, call)
        if key not in node.runs and key not in node.queue.starts:
            node.queue.starts.append(key)

    @rule(number=NODES, call=st.sampled_from(CALLS))
    def finish(self, number: int, call: str, session: str = SESSION) -> None:
        """A tool returns; its outcome differs from that of any other execution."""
        node, key = self.runnable(number), (session, call)
        if node is None or key not in node.runs:
            return
        node.runs.discard(key)
        outcome = f"run {self.executions[key]} by {node.number}"
        node.queue.ends.append((key, outcome))
        if self.answers_before_commit():
            self.tell(node, key, outcome)

    # --- the promises ------------------------------------------------------------------------------------------------

    @invariant()
    def a_session_has_one_node_that_may_send(self) -> None:
        """Except for a node that seemed unreachable or replaced and was not: its clients have left, and its next commit
        ends it. A node that is silent has no valid lease when it is declared dead.
        """
        senders = [
            node.number
            for node in self.nodes
            if SESSION in node.held and self.may_send(node) and node.number not in self.wrongly_suspected
        ]
        assert len(senders) <= 1, senders

    @invariant()
    def a_call_is_executed_once(self) -> None:
        assert all(times == 1 for times in self.executions.values()), self.executions

    @invariant()
    def a_call_has_one_outcome(self) -> None:
        for key, outcomes in self.answers.items():
            assert outcomes == {self.journal[key].outcome}, f"{key}: {outcomes}, stored {self.journal[key].outcome}"

    @invariant()
    def a_fenced_node_may_not_send(self) -> None:
        assert not any(self.may_send(node) for node in self.nodes if node.lease.fenced is not None)


def row(state: NodeState, left_s: float) -> NodeRow:
    return NodeRow(epoch="e", name="n", address="", details="", state=state, left_s=left_s, lease_s=LEASE_S)


class WholeLease(FencingMachine):
    """A node that uses its whole lease."""

    def renew(self, node: Node, group: Group) -> None:
        node.lease._good_until = group.sent_at + LEASE_S * (1 - CLOCK_DRIFT)


class LateRenewal(FencingMachine):
    """A node that counts its lease from the acknowledgement."""

    def renew(self, node: Node, group: Group) -> None:
        node.lease.renewed(self.clock(node))


class NoFence(FencingMachine):
    """A database that applies the groups of dead nodes."""

    def accepts(self, node: Node) -> bool:
        return True


class HastyAnswers(FencingMachine):
    """A node that answers before the end of the call is committed."""

    def answers_before_commit(self) -> bool:
        return True


def test_leases_and_fencing_keep_the_promises() -> None:
    """In any order of events a session has one node that may send, and a call one execution and one outcome."""
    run_state_machine_as_test(FencingMachine, settings=settings(max_examples=100, stateful_step_count=50))


def silence_before_the_end_of_the_lease(machine: FencingMachine) -> None:
    """A node is paused and does not answer; another one declares it dead and takes the session over. Then it continues,
    before its lease would have ended.
    """
    machine.resume(0)
    machine.pause_or_continue(0)
    machine.pass_time(7.55)
    machine.suspect(0, "silent")
    machine.resume(1)
    machine.pause_or_continue(0)


def slow_acknowledgement(machine: FencingMachine) -> None:
    """A node holds the session; the acknowledgement of its last commit arrives late, and the lease ends before that of
    the acknowledgement would."""
    machine.resume(0)
    machine.send_group(0)
    machine.apply_group(0)
    machine.pass_time(5.0)
    machine.acknowledge_group(0)
    machine.pause_or_continue(0)
    machine.pass_time(5.5)
    machine.suspect(0, "none")
    machine.resume(1)


def burial_during_a_call(machine: FencingMachine) -> None:
    """A node runs a call and is suspected wrongly; then it commits the end, and answers the client that waits there."""
    machine.resume(0)
    machine.call("a")
    commit(machine, 0)
    machine.suspect(0, "unreachable")
    machine.finish(0, "a")
    commit(machine, 0)


def death_before_the_end_is_written(machine: FencingMachine) -> None:
    """A tool has returned, and the node dies before it has written the end of the call."""
    machine.resume(0)
    machine.call("a")
    commit(machine, 0)
    machine.finish(0, "a")
    machine.kill(0)
    machine.pass_time(10.05)
    machine.suspect(0, "none")
    machine.resume(1)


def commit(machine: FencingMachine, number: int) -> None:
    machine.send_group(number)
    machine.apply_group(number)
    machine.acknowledge_group(number)


SCENARIOS: dict[type[FencingMachine], Callable[[FencingMachine], None]] = {
    WholeLease: silence_before_the_end_of_the_lease,
    LateRenewal: slow_acknowledgement,
    NoFence: burial_during_a_call,
    HastyAnswers: death_before_the_end_is_written,
}


@pytest.mark.parametrize("mistaken", SCENARIOS)
def test_the_model_finds_mistakes(mistaken: type[FencingMachine]) -> None:
    """Each of these mistakes breaks a promise of the model in a scenario that the correct node passes."""
    run_scenario(FencingMachine(), SCENARIOS[mistaken])
    with pytest.raises(AssertionError):
        run_scenario(mistaken(), SCENARIOS[mistaken])


def run_scenario(machine: FencingMachine, scenario: Callable[[FencingMachine], None]) -> None:
    machine.begin((1.0, 1.0))
    scenario(machine)
    machine.a_session_has_one_node_that_may_send()
    machine.a_call_is_executed_once()
    machine.a_call_has_one_outcome()
    machine.a_fenced_node_may_not_send()


@pytest.mark.parametrize(
    ("state", "missed_heartbeats", "suspicion", "may"),
    [
        ("live", 0, "unreachable", True),
        ("live", 0, "replaced", True),
        ("live", 2.9, "silent", False),
        ("live", 3.1, "silent", True),
        ("live", 3.9, "none", False),
        ("live", 4.1, "none", True),
        ("draining", 3.9, "unreachable", False),
        ("draining", 3.9, "silent", False),
        ("draining", 4.1, "none", True),
        ("dead", 4.1, "silent", False),
    ],
)
def test_when_a_node_may_be_declared_dead(
    state: NodeState, missed_heartbeats: float, suspicion: Suspicion, may: bool
) -> None:
    """Silence counts after three heartbeats, so a node that is slow but renews its lease is never declared dead."""
    left_s = LEASE_S - missed_heartbeats * LEASE_S / HEARTBEATS
    assert may_declare_dead(row(state, left_s), suspicion) is may
