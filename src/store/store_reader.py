"""Reads of the store's file, one at a time, beside its writer."""

import asyncio
import concurrent.futures
import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import structlog

from .store_schema import MEND_DAMAGE, StoreError, is_damaged, open_for_reading

READER_TIMEOUT_S: Final = 1.0
"""A read that hangs holds up the daemon's end for no longer."""

T = TypeVar("T")

_log = structlog.get_logger(__name__)


class StoreReader:
    """One thread with a connection that only reads, opened with the first query."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="store-reader")
        self._connection: sqlite3.Connection | None = None
        self.damage: str | None = None
        """What a read found first that is broken in the file, and what to do; None as long as none has."""

    async def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """What the query brings.

        Raises:
            StoreError: the file cannot be read.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run, query)

    async def close(self) -> None:
        """Close the file. A read that takes more than 1 s more is left behind."""
        ending = asyncio.get_running_loop().run_in_executor(self._thread, self._end)
        _, hung = await asyncio.wait([ending], timeout=READER_TIMEOUT_S)
        if hung:
            _log.warning("a read of the database does not end; it is left behind")
        self._thread.shutdown(wait=False)

    def _run(self, query: Callable[[sqlite3.Connection], T]) -> T:
        try:
            if self._connection is None:
                self._connection = open_for_reading(self._path)
            return query(self._connection)
        except sqlite3.Error as error:
            if is_damaged(error) and self.damage is None:
                _log.error("the database is damaged", path=str(self._path), reason=str(error), remedy=MEND_DAMAGE)
                self.damage = f"the database is damaged ({error}): {MEND_DAMAGE}"
            raise StoreError(f"the database cannot be read ({error})", str(error)) from None

    def _end(self) -> None:
        if self._connection:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
