"""Keeps track of the living nodes of the cluster. Finds dead nodes, so that other nodes can take over their sessions
and calls.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import structlog

from ...store import ClusterPort, NodeRow, StoreError, Suspicion, boot_time, may_declare_dead

REFRESHES_PER_LEASE: Final = 4
"""How often per lease a node checks for dead nodes."""

_log = structlog.get_logger("toold.cluster")


class Membership:
    """This node's view of the cluster, which is at most ``lease_s / REFRESHES_PER_LEASE`` seconds old."""

    def __init__(self, store: ClusterPort) -> None:
        self._store = store
        self.nodes: Sequence[NodeRow] = ()
        """All nodes as last read, including this one."""
        self.on_declared_dead: list[Callable[[str], None]] = []
        """Called with the epoch of a node that this one has declared dead, or has found dead."""
        self.check_node: Callable[[str], Awaitable[None]] | None = None
        """Declares the node of an epoch dead if it does not answer. Never raises."""
        self.node_died = asyncio.Event()
        """Set when a node has died: its detached calls can be adopted."""
        self._known_dead: set[str] = set()
        self._left = False

    def __repr__(self) -> str:
        return f"<Membership {self.epoch} of {len(self.peers) + 1}>"

    @property
    def epoch(self) -> str:
        """The epoch of this process."""
        return self._store.epoch

    @property
    def may_answer(self) -> bool:
        """Whether this node has a valid lease, so that it may receive and send frames on sessions that can be
        resumed.
        """
        return not self._left and self._store.lease.good(boot_time())

    @property
    def peers(self) -> list[NodeRow]:
        """The other nodes that are not dead."""
        return [node for node in self.nodes if node.state != "dead" and node.epoch != self.epoch]

    @property
    def by_state(self) -> dict[str, int]:
        """The number of nodes that are live or draining."""
        return {state: sum(node.state == state for node in self.nodes) for state in ("live", "draining")}

    def peer(self, epoch: str) -> NodeRow | None:
        """The other node of this epoch, if it is not dead."""
        return next((node for node in self.peers if node.epoch == epoch), None)

    def named(self, name: str) -> NodeRow | None:
        """The other node of this name, if it is not dead."""
        return next((node for node in self.peers if node.name == name), None)

    async def leave(self) -> None:
        """Releases the sessions of this node. From now on, it may not answer for any of them.

        Raises:
            StoreError: the database cannot be written.
        """
        self._left = True
        await self._store.leave()

    async def run(self) -> None:
        """Until cancelled: reads the nodes, declares those dead whose lease has ended, and checks those that have
        missed their heartbeats.
        """
        while True:
            try:
                await self.refresh()
                await self._check_silent()
            except StoreError:
                pass  # The store reports this error. Without the database, no node can be declared dead.
            except Exception:  # noqa: BLE001 - without this loop no dead node would be found
                _log.exception("the nodes cannot be read")
            await asyncio.sleep(self._store.lease.lease_s / REFRESHES_PER_LEASE)

    async def refresh(self) -> None:
        """Reads the nodes once, and declares those dead whose lease has ended.

        Raises:
            StoreError: the database cannot be read or written.
        """
        self.nodes = await self._store.nodes()
        self._known_dead &= {node.epoch for node in self.nodes}
        for node in self.nodes:
            if node.state == "dead":
                self._died(node.epoch)
            elif node.epoch != self.epoch and may_declare_dead(node, "none"):
                await self.declare_dead(node, "none")

    async def _check_silent(self) -> None:
        silent = [node.epoch for node in self.peers if may_declare_dead(node, "silent")]
        if self.check_node is not None:
            await asyncio.gather(*map(self.check_node, silent))

    async def declare_dead(self, node: NodeRow, suspicion: Suspicion) -> bool:
        """Declares a node dead if the database permits it. Returns whether it is dead.

        Raises:
            StoreError: the database cannot be written.
        """
        if not await self._store.declare_dead(node.epoch, suspicion):
            return False
        reason = "its lease has ended" if suspicion == "none" else suspicion
        _log.warning("node declared dead", node=node.name, epoch=node.epoch, reason=reason)
        self._died(node.epoch)
        return True

    def _died(self, epoch: str) -> None:
        if epoch not in self._known_dead:
            self._known_dead.add(epoch)
            self.node_died.set()
            for call in self.on_declared_dead:
                call(epoch)
