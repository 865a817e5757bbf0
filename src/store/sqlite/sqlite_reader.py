"""Reads the database on one thread, one query at a time, concurrently with the writer."""

import asyncio
import concurrent.futures
import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import structlog

from ..conversation_rows import StoredConversation
from ..store_errors import StoreError
from ..store_port import Queries
from ..store_rows import StoredDetachedCall, StoredSession
from .sqlite_queries import SqliteQueries
from .store_schema import DAMAGE_REMEDY, is_damaged, open_for_reading

READER_TIMEOUT_S: Final = 1.0
"""How long a hanging read may delay the daemon's shutdown."""

T = TypeVar("T")

_log = structlog.get_logger(__name__)


class SqliteReader:
    """One thread with a read-only connection, which it opens with the first query.

    ``flush`` is the writer's: its future resolves once all earlier entries have been committed.
    """

    def __init__(self, path: Path, flush: Callable[[], concurrent.futures.Future[None]]) -> None:
        self._path = path
        self._flush = flush
        self._thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="store-reader")
        self._connection: sqlite3.Connection | None = None
        self.damage: str | None = None
        """The first damage that a read found, and the remedy; None if none was found."""

    async def query(self, ask: Callable[[Queries], T]) -> T:
        """Runs a query. It may miss rows that are still queued.

        Raises:
            StoreError: the database cannot be read.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run, ask)

    async def query_flushed(self, ask: Callable[[Queries], T]) -> T:
        """Runs a query after all earlier entries have been committed.

        Raises:
            StoreError: the database cannot be read.
        """
        await asyncio.wrap_future(self._flush())
        return await self.query(ask)

    async def claim_session(self, key_hash: bytes, *, results_since: float) -> StoredSession | None:
        """Returns a session by its key. This process is the holder of all sessions.

        Raises:
            StoreError: the database cannot be read.
        """
        return await self.query_flushed(lambda queries: queries.load_session(key_hash, results_since=results_since))

    async def adopt_detached(self, *, call_id: str | None = None, limit: int | None) -> list[StoredDetachedCall]:
        """Returns the oldest detached calls that are not paused, or one by its id. For the start, when no call runs.

        Raises:
            StoreError: the database cannot be read.
        """
        if call_id is None:
            return (await self.query_flushed(lambda queries: queries.unfinished_detached()))[:limit]
        stored = await self.query_flushed(lambda queries: queries.find_detached(call_id))
        return [] if stored is None else [stored]

    async def claim_conversation(self, conversation_id: str, principal: str) -> StoredConversation | None:
        """Returns a principal's conversation. No other process uses it.

        Raises:
            StoreError: the database cannot be read.
        """
        return await self.query_flushed(lambda queries: queries.load_conversation(conversation_id, principal))

    async def close(self) -> None:
        """Closes the connection. A read that is still running after 1 s is abandoned."""
        ending = asyncio.get_running_loop().run_in_executor(self._thread, self._end)
        _, hung = await asyncio.wait([ending], timeout=READER_TIMEOUT_S)
        if hung:
            _log.warning("database read hangs; abandoned")
        self._thread.shutdown(wait=False)

    def _run(self, ask: Callable[[Queries], T]) -> T:
        try:
            if self._connection is None:
                self._connection = open_for_reading(self._path)
            return ask(SqliteQueries(self._connection))
        except sqlite3.Error as error:
            if is_damaged(error) and self.damage is None:
                _log.error("the database is damaged", path=str(self._path), reason=str(error), remedy=DAMAGE_REMEDY)
                self.damage = f"the database is damaged ({error}): {DAMAGE_REMEDY}"
            raise StoreError(f"the database cannot be read ({error})", str(error)) from None

    def _end(self) -> None:
        if self._connection:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
