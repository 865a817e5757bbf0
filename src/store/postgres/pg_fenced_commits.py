"""The commits of one node: each has a number, renews the lease, and extends the node's audit chain.

The database refuses a commit whose number is not the next one, and every commit of a node that was declared dead.
"""

import contextlib
import time
from collections.abc import Callable
from typing import Any, Final

import psycopg

from ..chain_extension import ChainExtension
from ..node_lease import NodeLease, boot_time
from ..store_clock import StoreClock
from . import pg_node_sql
from .pg_chain_writer import PostgresChainWriter
from .pg_commit_errors import is_refused_by_number, require_committed

Connection = psycopg.Connection[tuple[Any, ...]]


class FencedCommits:
    """Makes the commits of a node, one at a time. ``set_clock`` gets the database's clock with each of them."""

    def __init__(
        self, epoch: str, lease: NodeLease, chain_writer: PostgresChainWriter, set_clock: Callable[[StoreClock], None]
    ) -> None:
        self._epoch: Final = epoch
        self._lease = lease
        self._chain_writer = chain_writer
        self._set_clock = set_clock
        self._number = 0  # of the last commit
        self._sent_at = boot_time()

    @property
    def next_number(self) -> int:
        """The number of the next commit."""
        return self._number + 1

    @property
    def heartbeat_due(self) -> float:
        """When the next commit is due, in ``boot_time`` seconds."""
        return self._lease.heartbeat_due(self._sent_at)

    def begin(
        self, connection: Connection, prepare: Callable[[], None], work: Callable[[ChainExtension], None]
    ) -> None:
        """Makes the first commit: calls ``prepare``, takes over an audit chain, and calls ``work``."""
        sent_at = boot_time()
        with connection.transaction():
            renewed = self._renew(connection)
            self._read_clock(renewed)
            prepare()
            self._chain_writer.adopt(connection, self._epoch)
            chain = self._chain_writer.extend(connection)
            work(chain)
            self._chain_writer.seal(chain)
        self._chain_writer.committed(chain)
        self._made(sent_at)

    def pipelined(
        self,
        connection: Connection,
        write: Callable[[ChainExtension], None],
        fetch: Callable[[], None],
        rows_dropped: int,
    ) -> bool:
        """Makes a commit in one round trip, so ``write`` must not fetch; ``fetch`` reads the results of the statements.
        Returns False if this is a second attempt, and the first one was made although its connection was lost. The
        caller then finds out its effects and calls ``skip``.

        Raises:
            NodeFencedError: this node is dead, or the database has lost commits of it.
            psycopg.Error: the commit was not made, or the connection was lost.
        """
        sent_at = boot_time()
        chain = self._chain_writer.extend(connection)
        try:
            with connection.pipeline():
                connection.execute("BEGIN")
                renewed = self._renew(connection)
                chain.complete(time.time(), rows_dropped)
                write(chain)
                self._chain_writer.seal(chain)
                connection.execute("COMMIT")
        except psycopg.Error as error:
            if self._was_made(connection, error):
                return False
            raise
        fetch()
        self._end(chain, renewed, sent_at)
        return True

    def alone(
        self,
        connection: Connection,
        work: Callable[[ChainExtension], None],
        rows_dropped: int,
        *,
        closed: bool = False,
    ) -> bool:
        """Makes a commit whose ``work`` may fetch results; ``closed`` marks the last commit of the node. Returns
        False as ``pipelined`` does.

        Raises:
            NodeFencedError, psycopg.Error: as raised by ``pipelined``.
        """
        sent_at = boot_time()
        chain = self._chain_writer.extend(connection)
        try:
            connection.execute("BEGIN")
            renewed = self._renew(connection)
            chain.complete(time.time(), rows_dropped)
            work(chain)
            self._chain_writer.seal(chain, closed=closed)
            connection.execute("COMMIT")
        except psycopg.Error as error:
            if not self._was_made(connection, error):
                raise
            self.skip(connection)
            return False
        self._end(chain, renewed, sent_at)
        return True

    def skip(self, connection: Connection) -> None:
        """Continues after a commit that was made before its connection was lost."""
        self._number += 1
        self._chain_writer.reload(connection)

    def _renew(self, connection: Connection) -> psycopg.Cursor[tuple[Any, ...]]:
        return pg_node_sql.renew(connection, self._epoch, self._number + 1)

    def _was_made(self, connection: Connection, error: psycopg.Error) -> bool:
        if not is_refused_by_number(error):
            return False
        roll_back(connection)
        require_committed(error)
        return True

    def _end(self, chain: ChainExtension, renewed: psycopg.Cursor[tuple[Any, ...]], sent_at: float) -> None:
        self._chain_writer.committed(chain)
        self._made(sent_at)
        self._read_clock(renewed)

    def _made(self, sent_at: float) -> None:
        self._number += 1
        self._sent_at = sent_at
        self._lease.renewed(sent_at)

    def _read_clock(self, renewed: psycopg.Cursor[tuple[Any, ...]]) -> None:
        row = renewed.fetchone()
        if row is not None:
            self._set_clock(StoreClock(float(row[0])))


def roll_back(connection: Connection) -> None:
    """Ends a transaction that has failed, if the connection still exists."""
    with contextlib.suppress(psycopg.Error):
        connection.rollback()
