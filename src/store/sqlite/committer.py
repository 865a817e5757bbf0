"""Commits entries to SQLite, on the writer's thread."""

import contextlib
import math
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import structlog

from ..commit_entries import CommitItem, DaemonRestarted
from ..conversation_rows import ConversationUpdate
from ..group_committer import Content, GroupCommitter
from ..retention import Retention
from ..store_errors import StoreError
from . import audit_sql, commit_group, interrupted_sql, run_sql, session_sql, store_clock_sql
from .chain_writer import ChainWriter
from .database_files import OpenedFiles
from .retention_sql import enforce_retention
from .store_schema import DAMAGE_REMEDY, is_damaged, open_database, sync_commits, unusable

RETENTION_EVERY_S: Final = 3600.0
RETENTION_TRIGGER_RATIO: Final = 17 / 16
"""The share of the audit rows' size limit beyond which retention runs before the hour is over. With 1, each commit to a
full database would delete one or two rows.
"""
MAX_RETENTION_S: Final = 0.1
"""How long retention may run after one group, because a caller may wait for the next one. It is enough for some ten
thousand rows, the maximum of a group. The rest is deleted after the next group.
"""

_log = structlog.get_logger(__name__)


class SqliteCommitter(GroupCommitter):
    """Commits to one database file. Used by one thread at a time.

    If the disk is too full to open the database, ``problem`` is set, and each attempt tries again.

    Raises:
        StoreError: the database cannot be opened or read for another reason.
    """

    def __init__(
        self, path: Path, *, content: Content, retention: Retention, key: bytes, expects_chain: bool = False
    ) -> None:
        super().__init__(content=content, retention=retention)
        self._path = path
        self._connection: sqlite3.Connection | None = None  # None until the database is open
        self._files: OpenedFiles | None = None
        self._syncing = False  # whether the connection's commits are synced
        self._chain_writer = ChainWriter(key, expects_chain=expects_chain)
        self._peak_bytes = math.inf  # the limit of audit rows, or their size if that exceeded the limit
        try:
            connection = self._open()
            # Marks the chain as open, so that a crash is detected. If this fails, the first commit does it.
            with self._chain_writer.extending(connection):
                pass
        except (StoreError, sqlite3.Error) as error:
            if isinstance(error, StoreError) and not error.no_space:
                raise
            self.fail(error)

    @property
    def chain(self) -> str:
        """The name of the audit chain."""
        return self._chain_writer.chain

    def _open(self) -> sqlite3.Connection:
        """Opens the database for the first time. The unfinished entries of the previous process are committed before
        the items added meanwhile, and so before any call starts.

        Raises:
            StoreError: the database cannot be opened or read.
        """
        connection = open_database(self._path)
        try:
            self.clock = store_clock_sql.load(connection)
            unfinished = self._unfinished_entries(connection)
            files = OpenedFiles(self._path)
        except BaseException as error:
            connection.close()
            if isinstance(error, sqlite3.Error):
                raise unusable(self._path, error) from None
            raise
        added, self.group = self.group, []
        for item in unfinished:
            self.add(item)
        self.group += added
        self._connection, self._files = connection, files
        self.opened.set_result(None)
        return connection

    def _unfinished_entries(self, connection: sqlite3.Connection) -> list[CommitItem]:
        """Returns the entries that settle the unfinished calls of the previous process."""
        interrupted = interrupted_sql.interrupted_calls(connection, self.clock.now(), unix_time=self.clock.unix_time)
        orphaned = session_sql.has_orphaned_calls(connection) or run_sql.has_finished(connection)
        if interrupted:
            _log.warning("calls were interrupted when the daemon last ended", calls=len(interrupted))
        lost = sum(call.row is None for call in interrupted)
        if lost:
            _log.error("audit rows of interrupted calls lost; they cannot be decoded", rows=lost)
            self.unwritable_rows += lost
        return [*map(CommitItem, interrupted), *([CommitItem(DaemonRestarted())] if orphaned else [])]

    def attempt(self) -> None:
        """Commits the added items and enforces retention. Sets ``problem`` on failure."""
        try:
            connection = self._usable_connection()
            if self.group or self.problem:
                self._commit(connection)
            self._enforce_retention(connection)
        except (sqlite3.Error, StoreError, OSError) as error:
            self.fail(error)

    def close(self) -> None:
        """Closes the file. If all entries are written, first signs the chain as closed."""
        if self._connection is None:
            return
        with contextlib.suppress(sqlite3.Error):
            if not self.group and not self.problem:
                with self._chain_writer.extending(self._connection, closed=True) as chain:
                    chain.complete(time.time(), self.rows_dropped)
                    store_clock_sql.save(self._connection, self.clock)
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()

    def _usable_connection(self) -> sqlite3.Connection:
        """Returns the connection, a new one after a failure.

        Raises:
            StoreError: the database cannot be opened, or its files were removed.
        """
        if self._connection is None or self._files is None:
            return self._open()
        if not self.group and not self.problem:
            return self._connection
        missing = self._files.missing()
        if missing:
            # Not reopened: another file would not contain the running calls.
            problem = "was removed or replaced under the running daemon: put it back, or restart the daemon"
            raise StoreError(f"{missing} {problem}", f"{missing.name} {problem}")
        return self._reconnect(self._connection) if self.problem else self._connection

    def _commit(self, connection: sqlite3.Connection) -> None:
        try:
            self._commit_items(connection, self.group)  # an empty group still writes the head of the chain
        except Exception as error:
            if _is_transient(error):
                raise
            self._commit_one_by_one(connection)
        self.succeed()

    def _commit_items(self, connection: sqlite3.Connection, items: Sequence[CommitItem]) -> None:
        entered = [item for item in items if item.entry is not None]  # most items have only a row
        sync = any(item.durable for item in entered)
        if sync != self._syncing:
            sync_commits(connection, each=sync)
            self._syncing = sync
        commit_group.write(
            connection,
            items,
            self._chain_writer,
            rows_dropped=self.rows_dropped,
            results_bytes=self.retention.results_bytes,
            unfinished_bytes=self.retention.unfinished_bytes,
        )
        if sync:
            self.synced_seq = self._chain_writer.last_seq
        self.rows_written += sum(item.row is not None for item in items)
        self.copy_changes += sum(
            len(item.entry.copies) for item in entered if isinstance(item.entry, ConversationUpdate)
        )
        for item in entered:
            item.succeed()

    def _commit_one_by_one(self, connection: sqlite3.Connection) -> None:
        """Commits items one by one, because one of them fails its group, and skips that one."""
        while self.group:
            item = self.group[0]
            try:
                self._commit_items(connection, [item])
            except Exception as error:
                if _is_transient(error):
                    raise
                _log.warning("entry cannot be stored", reason=str(error))
                if item.row is not None:
                    self.unwritable_rows += 1
                    item.row = None
                    if item.entry is not None:
                        continue  # the end of a call matters more than its audit row
                item.fail("the entry cannot be stored")
            del self.group[0]

    def _reconnect(self, old: sqlite3.Connection) -> sqlite3.Connection:
        """Opens a new connection: after an I/O error, the old one may stay broken although the disk works again.

        The old connection is closed last. If no connection were open, SQLite would recover the WAL, and might restore
        commits that it had reported as failed because their sync failed.
        """
        self._connection = connection = open_database(self._path)
        self._syncing = False
        with contextlib.suppress(sqlite3.Error):
            old.close()
        return connection

    def _with_remedy(self, error: Exception) -> str:
        damaged = isinstance(error, sqlite3.Error) and is_damaged(error)
        return f"{error}; {DAMAGE_REMEDY}" if damaged else str(error)

    def _reason(self, error: Exception) -> str:
        if isinstance(error, StoreError):
            return error.reason
        return str(error) if isinstance(error, sqlite3.Error) else type(error).__name__

    def _enforce_retention(self, connection: sqlite3.Connection) -> None:
        """Deletes a slice of expired data if retention is due. If audit rows exceed their limit, deletes as many rows
        as were added: with one slice per group, busy clients would fill the disk.
        """
        now, limit = time.monotonic(), RETENTION_TRIGGER_RATIO * self.retention.bytes
        size = audit_sql.stored_bytes(connection)
        if now >= self.retention_due or size > limit:
            self.retention_due = now + RETENTION_EVERY_S
            more = grown = True
            while more and grown:
                more = enforce_retention(connection, self._chain_writer, self.retention, time.time(), self.clock)
                size = audit_sql.stored_bytes(connection)
                grown = size > max(limit, self._peak_bytes) and time.monotonic() - now < MAX_RETENTION_S
            if more:
                self.retention_due = now
            self.copy_changes += 1
        self._peak_bytes = max(limit, min(size, self._peak_bytes))


def _is_transient(error: Exception) -> bool:
    """Whether a later attempt may succeed; otherwise the row itself is invalid."""
    permanent_errors = (sqlite3.DataError, sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.InterfaceError)
    return isinstance(error, sqlite3.Error | OSError) and not isinstance(error, permanent_errors)
