"""Reads a PostgreSQL database on a few threads, each with its own connection, concurrently with the writer.

If the connection is lost during a query, the query is repeated once. This module also changes the holder of a session
and the node that runs a call, in a transaction that a dead node cannot commit.
"""

import asyncio
import concurrent.futures
import contextlib
import secrets
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import psycopg

from ..conversation_rows import ConversationHeldError, StoredConversation
from ..node_rows import NodeRow, SessionHeldError
from ..store_errors import NodeFencedError, StoreError
from ..store_port import Queries
from ..store_rows import StoredDetachedCall, StoredSession
from . import pg_conversation_sql, pg_detached_sql, pg_node_sql, pg_session_sql
from .pg_queries import PostgresQueries
from .postgres_threads import PostgresThreads

Connection = psycopg.Connection[tuple[Any, ...]]

READER_THREADS: Final = 2
"""The number of connections of a node, in addition to the writer's."""

T = TypeVar("T")


class PostgresReader:
    """Threads with connections, which they open with their first query.

    ``flush`` is the writer's: its future resolves once all earlier entries have been committed. ``check_lease`` makes
    the writer commit, which shows whether this node was declared dead. ``chain`` is the number of the audit chain that
    this node extends.
    """

    def __init__(
        self,
        address: str,
        *,
        epoch: str,
        node_name: str,
        lease_s: float,
        flush: Callable[[], concurrent.futures.Future[None]],
        check_lease: Callable[[], object],
        chain: Callable[[], int],
    ) -> None:
        self._epoch = epoch
        self._flush = flush
        self._check_lease = check_lease
        self._chain = chain
        self._threads = PostgresThreads(
            address, name=f"toold {node_name} reader", epoch=epoch, lease_s=lease_s, threads=READER_THREADS
        )
        self.damage: str | None = None
        """Always None: PostgreSQL checks its files itself."""

    async def query(self, ask: Callable[[Queries], T]) -> T:
        """Runs a query. It may miss rows that are still queued.

        Raises:
            StoreError: the database cannot be read.
        """
        return await self.run(
            lambda connection: ask(cast("Queries", PostgresQueries(connection, self._epoch, self._chain())))
        )

    async def query_flushed(self, ask: Callable[[Queries], T]) -> T:
        """Runs a query after all earlier entries have been committed.

        Raises:
            StoreError: the database cannot be read.
        """
        await asyncio.wrap_future(self._flush())
        return await self.query(ask)

    async def claim_session(self, key_hash: bytes, *, results_since: float) -> StoredSession | None:
        """After all earlier entries have been committed, makes this node the holder of a session and returns the
        session.

        Raises:
            SessionHeldError: a node that is not dead holds it.
            NodeFencedError: this node is dead.
            StoreError: the database does not answer, or this node is draining.
        """
        await asyncio.wrap_future(self._flush())

        def claim(connection: Connection) -> StoredSession | NodeRow | None:
            while True:
                with self._alive(connection):
                    row = pg_session_sql.claim(connection, key_hash, self._epoch)
                if row is not None:
                    return pg_session_sql.with_calls(connection, row, results_since=results_since)
                holder = pg_session_sql.holder_of(connection, key_hash)
                if holder is None:
                    return None
                node = pg_node_sql.find_node(connection, holder)
                if node is not None and node.state != "dead":
                    return node
                # The holder has released the session or died since the attempt.

        found = await self.run(claim)
        if isinstance(found, NodeRow):
            raise SessionHeldError(found)
        return found

    async def claim_conversation(self, conversation_id: str, principal: str) -> StoredConversation | None:
        """After all earlier entries have been committed, makes this node the holder of a principal's conversation and
        returns it; None if the principal has no conversation with this id.

        Raises:
            ConversationHeldError: a node that is not dead holds it.
            NodeFencedError: this node is dead.
            StoreError: the database does not answer, or this node is draining.
        """
        await asyncio.wrap_future(self._flush())

        def claim(connection: Connection) -> StoredConversation | None:
            with self._alive(connection):
                claimed = pg_conversation_sql.claim(connection, conversation_id, principal, self._epoch)
            stored = pg_conversation_sql.load(connection, conversation_id, principal)
            if stored is not None and not claimed:
                # If the conversation has been released meanwhile, the next attempt gets it.
                raise ConversationHeldError(pg_conversation_sql.holder(connection, conversation_id) or "")
            return stored

        return await self.run(claim)

    async def adopt_detached(self, *, call_id: str | None = None, limit: int | None) -> list[StoredDetachedCall]:
        """Makes this node run detached calls that no node runs, and returns them: the oldest that are not paused, or
        one by its id.

        Raises:
            NodeFencedError: this node is dead.
            StoreError: the database does not answer, or this node is draining.
        """
        await asyncio.wrap_future(self._flush())

        # If the connection is lost, the second attempt finds the calls of the first one by the token.
        token = -1 - secrets.randbits(62)

        def adopt(connection: Connection) -> list[StoredDetachedCall]:
            with self._alive(connection):
                pg_detached_sql.adopt(connection, self._epoch, token, call_id=call_id, limit=limit)
            return pg_detached_sql.adopted(connection, self._epoch, token)

        return await self.run(adopt)

    async def run(self, work: Callable[[Connection], T]) -> T:
        """Runs work with the connection of one of the threads, and once more if the connection is lost.

        Raises:
            StoreError: the database does not answer, or refuses.
        """
        return await self._threads.run(work)

    async def close(self) -> None:
        """Closes the connections. A read that is still running after 1 s is interrupted."""
        await self._threads.close()

    @contextlib.contextmanager
    def _alive(self, connection: Connection) -> Any:
        """A transaction during which no node can declare this one dead."""
        with connection.transaction():
            if not pg_node_sql.lock_live(connection, self._epoch):
                if pg_node_sql.is_dead(connection, self._epoch):
                    self._check_lease()
                    raise NodeFencedError("another node has declared this one dead")
                raise StoreError("this node is draining", "this node is draining")
            yield
