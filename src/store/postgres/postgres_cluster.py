"""Gives one node access to the nodes of its database (``ClusterPort``)."""

import asyncio
from collections.abc import Callable
from typing import Any

import psycopg
import structlog

from ..commit_entries import NodeAnnounced, NodeDeclaredDead, NodeDraining, NodeLeft
from ..node_lease import NodeLease
from ..node_rows import NodeRow, Suspicion
from ..shared_limits import SharedLimitsPort
from ..shared_pins import SharedPinsPort
from ..store_writer import StoreWriter
from . import pg_node_sql
from .pg_notifications import PgNotifications
from .postgres_committer import PostgresCommitter
from .postgres_limits import PostgresLimits
from .postgres_pins import PostgresPins
from .postgres_threads import PostgresThreads

Connection = psycopg.Connection[tuple[Any, ...]]

_log = structlog.get_logger(__name__)


class PostgresCluster:
    """Writes through the queue of the store's writer, so its writes are fenced and in order with all other writes."""

    def __init__(self, committer: PostgresCommitter, writer: StoreWriter, threads: PostgresThreads) -> None:
        """``threads`` execute the statements of limits and pins, and read the nodes."""
        self._committer = committer
        self._writer = writer
        self._threads = threads
        self._notifications = PgNotifications(threads.connect)
        self._limits = PostgresLimits(threads, self._notifications, self.epoch, check_lease=writer.sync)
        self._pins = PostgresPins(threads, self._notifications, self.epoch)

    @property
    def epoch(self) -> str:
        """The epoch of this process; the ids of its calls begin with it."""
        return self._committer.epoch

    @property
    def lease(self) -> NodeLease:
        """The lease of this node, as this process measures it."""
        return self._committer.lease

    @property
    def limits(self) -> SharedLimitsPort:
        """The limits of all nodes together."""
        return self._limits

    @property
    def pins(self) -> SharedPinsPort:
        """The pins of sources, which all nodes share."""
        return self._pins

    @property
    def on_fenced(self) -> Callable[[str], None]:
        """Called on the writer's thread with the reason, before the entries of a refused commit are reported."""
        return self._committer.on_fenced

    @on_fenced.setter
    def on_fenced(self, call: Callable[[str], None]) -> None:
        self._committer.on_fenced = call

    async def announce(self, address: str, details: str) -> None:
        """Stores the address at which the other nodes reach this one, and the digests of its settings."""
        await asyncio.wrap_future(self._writer.commit(NodeAnnounced(address, details)))

    async def nodes(self) -> list[NodeRow]:
        """Returns the nodes that are alive, those that are draining, and those that died within the last hour. First
        ends stalled transactions of nodes. The reader's threads may wait for the locks of these transactions.
        """
        return await self._threads.run(self._list_nodes)

    def _list_nodes(self, connection: Connection) -> list[NodeRow]:
        for name in pg_node_sql.end_stalled_transactions(connection, self.lease.lease_s):
            _log.warning("a node has not continued its transaction: its connection is closed", connection=name)
        return pg_node_sql.list_nodes(connection)

    async def declare_dead(self, epoch: str, suspicion: Suspicion) -> bool:
        """Declares a node dead if ``may_declare_dead`` permits it, and settles its calls and sessions. Returns whether
        it is dead.
        """
        return await asyncio.wrap_future(self._writer.commit(NodeDeclaredDead(epoch, suspicion)))

    async def drain(self) -> None:
        """Stores that this node is about to stop, so that it is not declared dead when its port closes."""
        await asyncio.wrap_future(self._writer.commit(NodeDraining()))

    async def leave(self) -> None:
        """Releases all sessions of this node and ends its lease, in one commit after all earlier ones."""
        await asyncio.wrap_future(self._writer.commit(NodeLeft()))

    async def close(self) -> None:
        """Closes the connections of limits and pins."""
        await self._notifications.close()
        await self._threads.close()
