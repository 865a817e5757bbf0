"""Nodes that share nothing but the rows of their nodes and who holds a session, for tests of relays.

Each node has its own embedded database. What nodes really share is tested with PostgreSQL.
"""

from collections.abc import Callable

from toold.store import (
    NodeLease,
    NodeRow,
    NodeState,
    SessionHeldError,
    Store,
    StoredSession,
    Suspicion,
    boot_time,
    may_declare_dead,
)

from .memory_limits import MemoryLimits, NodeLimits
from .memory_pins import MemoryPins, NodePins


class MemoryCluster:
    """The rows of all nodes."""

    def __init__(self) -> None:
        self.members: dict[str, MemoryNode] = {}
        self.holders: dict[bytes, str] = {}
        """Hash of the resume key → epoch."""
        self.limits = MemoryLimits()
        self.pins = MemoryPins()


class MemoryNode:
    """Implements ``ClusterPort``. The lease is good as long as the test does not end it."""

    def __init__(self, cluster: MemoryCluster, epoch: str, name: str) -> None:
        self.cluster = cluster
        self.epoch = epoch
        self.name = name
        self.lease = NodeLease(300.0)
        self.lease.renewed(boot_time())
        self.on_fenced: Callable[[str], None] = lambda _: None
        self.address = self.details = ""
        self.state: NodeState = "live"
        self.left_s = 300.0
        self.limits = NodeLimits(cluster.limits, epoch)
        self.pins = NodePins(cluster.pins)
        cluster.members[epoch] = self

    @property
    def row(self) -> NodeRow:
        return NodeRow(
            epoch=self.epoch,
            name=self.name,
            address=self.address,
            details=self.details,
            state=self.state,
            left_s=self.left_s,
            lease_s=self.lease.lease_s,
        )

    async def announce(self, address: str, details: str) -> None:
        self.address, self.details = address, details

    async def nodes(self) -> list[NodeRow]:
        return [member.row for member in self.cluster.members.values()]

    async def declare_dead(self, epoch: str, suspicion: Suspicion) -> bool:
        member = self.cluster.members[epoch]
        if may_declare_dead(member.row, suspicion):
            member.state = "dead"
        return member.state == "dead"

    async def drain(self) -> None:
        self.state = "draining"

    async def leave(self) -> None:
        self.state = "dead"

    async def close(self) -> None:
        pass

    def share_sessions(self, store: Store) -> None:
        """Let the sessions of this store have a holder among the nodes."""
        sessions, find, open_session = store.sessions, store.sessions.find_by_key_hash, store.sessions.open
        holders, members = self.cluster.holders, self.cluster.members

        async def claim(key_hash: bytes) -> StoredSession | None:
            holder = members.get(holders.get(key_hash, ""))
            if holder is not None and holder is not self and holder.state != "dead":
                raise SessionHeldError(holder.row)
            holders[key_hash] = self.epoch
            return await find(key_hash)

        def open_and_hold(row: object) -> None:
            holders[row.key_hash] = self.epoch  # type: ignore[attr-defined]
            open_session(row)  # type: ignore[arg-type]

        sessions.find_by_key_hash, sessions.open = claim, open_and_hold  # type: ignore[method-assign]
