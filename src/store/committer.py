"""What is to be committed, and the connection that it is committed on: all that the writer's thread does but wait.

What the disk refuses is tried again as long as the process lives, but for what somebody was told is not written.
"""

import contextlib
import math
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import structlog

from . import audit_sql, commit_group, journal_sql, session_sql, spending_sql
from .chain_writer import ChainWriter
from .commit_group import CommitItem, DaemonRestarted, LocalResults, RunTakenUp
from .conversation_sql import ConversationUpdate
from .database_files import OpenedFiles
from .journal_sql import InterruptedCall
from .retention import Retention, keep_bounds
from .store_rows import CallEnd, CallRow, CallStart
from .store_schema import MEND_DAMAGE, StoreError, is_damaged, open_database, sync_commits, unusable

RETENTION_EVERY_S: Final = 3600.0
OVERFULL: Final = 17 / 16
"""Of the room for audit rows: from here on they are looked through before the hour is over. Not from the bound on, or
each commit of a database that has reached it would remove a row or two.
"""
LONGEST_S: Final = 0.1
"""Removing what one group was too much takes no longer, for there may be somebody who waits for the next; that is some
ten thousand rows, as many as a group ever has. What is left to remove is made up for after the next.
"""

Content = Callable[[Any], str | None]
"""A call's arguments → what is kept of them, as JSON; called on the writer's thread."""

_log = structlog.get_logger(__name__)


class Committer:
    """Items go in, in their order, and are committed together. On one thread at a time.

    Raises:
        StoreError: the database cannot be opened.
    """

    def __init__(
        self, path: Path, *, content: Content, retention: Retention, key: bytes, expects_chain: bool = False
    ) -> None:
        self._path = path
        self._content = content
        self._retention = retention
        self._connection = open_database(path)
        self._files = OpenedFiles(path)
        self._syncing = False  # whether the connection's commits are synced
        self.group: list[CommitItem] = []
        """Added and not yet committed."""
        self.problem: str | None = None
        """Why nothing can be written at present."""
        self.retention_due = 0.0
        """When there is something to remove, as ``time.monotonic`` has it."""

        # Counted up.
        self.written = 0
        """Rows committed."""
        self.unfit = 0
        """Rows that SQLite cannot hold, or that a damaged file held."""
        self.copied = 0
        """Copies committed; also one where the retention may have noted that conversations ended."""
        self.described_bytes = 0
        """Arguments that were let go of."""
        self.overflowed = 0
        """Rows that were not added, since too many waited. The only one that is counted on another thread."""

        self._ledger = ChainWriter(key, expects_chain=expects_chain)
        self.chain = self._ledger.chain
        """The chain's name."""
        self.synced_seq = 0
        """Up to here rows outlive a power cut, as far as this process knows."""
        self._most_bytes = math.inf  # what audit rows may take: their bound, or what they took once they were above it
        with contextlib.suppress(sqlite3.Error), self._ledger.extending(self._connection):
            pass  # so that a crash is noticed as such from now on; where the disk refuses, with the first commit

    @property
    def dropped(self) -> int:
        """Rows lost."""
        return self.overflowed + self.unfit

    def go_by(self, content: Content, retention: Retention) -> None:
        """Keep this of arguments from now on, and rows for so long. On any thread."""
        self._content = content
        self._retention = retention
        self.retention_due = 0.0  # should it be set on the other thread in this moment, it is looked at within the hour

    def left_over(self) -> list[CommitItem]:
        """What the process before this one left undone, to be added first.

        Raises:
            StoreError: the database cannot be read.
        """
        try:
            interrupted = journal_sql.started(self._connection, time.time())
            plain = session_sql.has_plain(self._connection)
        except sqlite3.Error as error:
            raise unusable(self._path, error) from None
        if interrupted:
            _log.warning("calls were interrupted when the daemon last ended", calls=len(interrupted))
        lost = sum(call.row is None for call in interrupted)
        if lost:
            _log.error("audit rows of interrupted calls cannot be read and are lost", rows=lost)
            self.unfit += lost
        return [*map(CommitItem, interrupted), *([CommitItem(DaemonRestarted())] if plain else [])]

    def add(self, item: CommitItem) -> None:
        """Make the item's audit row, let go of its arguments, and have it in the next commit."""
        match item.entry:
            case CallRow() as row:
                item.row, item.entry = audit_sql.values(row, self._kept(row)), None
                self.described_bytes += row.arguments_bytes
            case CallEnd(row=CallRow() as row) | InterruptedCall(row=CallRow() as row):
                item.row = audit_sql.values(row, self._kept(row))
                self.described_bytes += row.arguments_bytes
        if isinstance(item.entry, CallEnd):
            item.spent = spending_sql.by_day(item.entry.row, item.entry.spent, item.entry.at)
        self.group.append(item)

    def attempt(self) -> None:
        """Commit what was added, and remove what is too old; where the disk refuses, say so in ``problem``."""
        try:
            if self.group or self.problem:
                self._commit()
            self._keep_bounds()
        except (sqlite3.Error, StoreError, OSError) as error:
            self.refused(error)

    def refused(self, error: Exception, *, exc_info: bool = False) -> None:
        """Tell those who wait, and keep what has happened for the next attempt."""
        if not self.problem:
            told = "the store cannot be written; local calls go on without their audit rows, others are refused"
            damaged = isinstance(error, sqlite3.Error) and is_damaged(error)
            _log.error(told, reason=f"{error}; {MEND_DAMAGE}" if damaged else str(error), exc_info=exc_info)
        self.problem = _reason(error)
        for item in self.group:
            _tell(item, self.problem)
        self.group = [item for item in self.group if not isinstance(item.entry, CallStart | LocalResults | RunTakenUp)]

    def close(self) -> None:
        """Close the file, and sign the chain as ended where nothing is left to write."""
        with contextlib.suppress(sqlite3.Error):
            if not self.group and not self.problem:
                with self._ledger.extending(self._connection, closed=True) as chain:
                    chain.complete(time.time(), self.dropped)
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()

    def _kept(self, row: CallRow) -> str | None:
        try:
            return None if row.arguments is None else self._content(row.arguments)
        except Exception:  # noqa: BLE001 - a row without its arguments is worth more than no row
            _log.exception("the arguments of a call cannot be described", tool=row.tool)
            return None

    def _commit(self) -> None:
        gone = self._files.gone()
        if gone:
            # Not opened anew: another file would know nothing of the calls that run.
            told = "was removed or replaced under the running daemon: put it back, or restart the daemon"
            raise StoreError(f"{gone} {told}", f"{gone.name} {told}")
        if self.problem:
            self._reconnect()
        try:
            self._commit_items(self.group)  # with nothing in it the chain's head is written all the same
        except Exception as error:
            if _is_the_disk(error):
                raise
            self._commit_one_by_one()
        self.group.clear()
        if self.problem:
            _log.info("the store works again", dropped=self.dropped)
            self.problem = None

    def _commit_items(self, items: Sequence[CommitItem]) -> None:
        entered = [item for item in items if item.entry is not None]  # of most there is the row alone
        sync = any(item.durable for item in entered)
        if sync != self._syncing:
            sync_commits(self._connection, each=sync)
            self._syncing = sync
        commit_group.write(
            self._connection, items, self._ledger, dropped=self.dropped, kept_bytes=self._retention.kept_bytes
        )
        if sync:
            self.synced_seq = self._ledger.last_seq
        self.written += sum(item.row is not None for item in items)
        self.copied += sum(len(item.entry.said) for item in entered if isinstance(item.entry, ConversationUpdate))
        for item in entered:
            if item.done:
                item.done.set_result(item.answer)

    def _commit_one_by_one(self) -> None:
        """One entry spoils its group: leave that one out."""
        while self.group:
            item = self.group[0]
            try:
                self._commit_items([item])
            except Exception as error:
                if _is_the_disk(error):
                    raise
                _log.warning("a call does not fit into the store", reason=str(error))
                if item.row is not None:
                    self.unfit += 1
                    item.row = None
                    if item.entry is not None:
                        continue  # how it ended is worth more than its row
                _tell(item, "it does not fit into the store")
            del self.group[0]

    def _reconnect(self) -> None:
        """A new connection, since after an I/O error the old one may stay broken when the disk is not.

        The old one is closed last: were there none for a moment, SQLite would read its log anew, and could find there
        what it had failed to sync and had told us that it was not written.
        """
        old, self._connection = self._connection, open_database(self._path)
        self._syncing = False
        with contextlib.suppress(sqlite3.Error):
            old.close()

    def _keep_bounds(self) -> None:
        """Remove a slice of what is past its bounds, where it is time; and where audit rows have grown past theirs, as
        many as make up for it: with one slice a group, busy callers would fill the disk.
        """
        now, bound = time.monotonic(), OVERFULL * self._retention.bytes
        kept = audit_sql.kept_bytes(self._connection)
        if now >= self.retention_due or kept > bound:
            self.retention_due = now + RETENTION_EVERY_S
            more = grown = True
            while more and grown:
                more = keep_bounds(self._connection, self._ledger, self._retention, time.time())
                kept = audit_sql.kept_bytes(self._connection)
                grown = kept > max(bound, self._most_bytes) and time.monotonic() - now < LONGEST_S
            if more:
                self.retention_due = now
            self.copied += 1
        self._most_bytes = max(bound, min(kept, self._most_bytes))


def _tell(item: CommitItem, reason: str) -> None:
    """Tell who waits for an item, if anybody does, that it is not written."""
    if item.done:
        item.done.set_exception(not_written(reason))
        item.done = None


def not_written(reason: str) -> StoreError:
    """What who waits for the journal is told."""
    return StoreError(f"the journal cannot be written ({reason})", reason)


def _reason(error: Exception) -> str:
    """What refused, without a path of the server: callers see it."""
    if isinstance(error, StoreError):
        return error.reason
    return str(error) if isinstance(error, sqlite3.Error) else type(error).__name__


def _is_the_disk(error: Exception) -> bool:
    """Whether a later attempt may succeed; otherwise the row itself is at fault."""
    unfit = (sqlite3.DataError, sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.InterfaceError)
    return isinstance(error, sqlite3.Error | OSError) and not isinstance(error, unfit)
