"""Collects entries and commits them in groups. All databases share this code.

Failed writes are retried as long as the process lives, except those that were reported as not written.
"""

import abc
import concurrent.futures
import time
from collections.abc import Callable
from typing import Any

import msgspec
import structlog

from .audit_rows import audit_values
from .commit_entries import NOT_RETRIED, CommitItem, Entry, InterruptedCall, LocalResults, SessionsSeen
from .daily_usage import by_day
from .retention import Retention
from .store_clock import StoreClock
from .store_rows import CallEnd, CallPause, CallRow, CallStart, InputDecided, SessionRow

Content = Callable[[Any], str | None]
"""Reduces a call's arguments to the JSON for its audit row; called on the writer's thread."""

_log = structlog.get_logger(__name__)


class GroupCommitter(abc.ABC):
    """Collects items in order and commits them together. Used by one thread at a time."""

    def __init__(self, *, content: Content, retention: Retention) -> None:
        self._content = content
        self.retention = retention
        """The current retention."""
        self.group: list[CommitItem] = []
        """The items that were added and are not committed."""
        self.problem: str | None = None
        """The reason why writes currently fail; None if they succeed."""
        self.clock = StoreClock(time.time())
        """The store's clock; until the database is open, the system's clock."""
        self.retention_due = 0.0
        """When retention runs next, in ``time.monotonic`` seconds."""

        # Counters, which only grow.
        self.rows_written = 0
        """Rows committed."""
        self.unwritable_rows = 0
        """Rows lost because the database cannot hold them or the file was damaged."""
        self.copy_changes = 0
        """Copies committed, plus one for each run of retention, which may add copies that state the end of
        conversations."""
        self.described_bytes = 0
        """Bytes of arguments that have been reduced and released."""
        self.overflowed = 0
        """Rows dropped because the queue was full. The only counter that another thread writes."""

        self.synced_seq = 0
        """Rows up to this seq survive a power cut, as far as this process knows."""
        self.opened = concurrent.futures.Future[None]()
        """Resolves once the database is open, and the unfinished calls of the previous process are in ``group``."""
        self.opened.set_running_or_notify_cancel()  # so that a cancelled wait does not cancel this future

    @property
    def uncommitted(self) -> int:
        """The number of items that were added and are not committed."""
        return len(self.group)

    def awaits(self, entry: Entry) -> bool:  # noqa: ARG002 - for the databases that await some
        """Whether the wait for this entry continues while writes fail, because the client gets no answer before the
        entry is written. Otherwise the wait fails.
        """
        return False

    def idle_s(self) -> float:
        """Returns the seconds after which ``attempt`` is due although nothing was added."""
        return max(0.0, self.retention_due - time.monotonic())

    @property
    @abc.abstractmethod
    def chain(self) -> str:
        """The name of the audit chain."""

    @property
    def rows_dropped(self) -> int:
        """Rows lost since the start."""
        return self.overflowed + self.unwritable_rows

    def apply(self, content: Content, retention: Retention) -> None:
        """Applies new settings. On any thread."""
        self._content = content
        self.retention = retention
        self.retention_due = 0.0  # if the writer's thread overwrites this, retention still runs within the hour

    def add(self, item: CommitItem) -> None:
        """Adds an item to the next commit."""
        self.group.append(self.prepared(item))

    def prepared(self, item: CommitItem) -> CommitItem:
        """Returns the item with its audit row, without the arguments, and with times of the store's clock."""
        match item.entry:
            case CallRow() as row:
                item.row, item.entry = audit_values(row, self._reduced(row)), None
                self.described_bytes += row.arguments_bytes
            case (
                CallEnd(row=CallRow() as row)
                | InterruptedCall(row=CallRow() as row)
                | InputDecided(row=CallRow() as row)
            ):
                item.row = audit_values(row, self._reduced(row))
                self.described_bytes += row.arguments_bytes
        if isinstance(item.entry, CallEnd):
            item.daily_usage = by_day(item.entry.row, item.entry.usage_by_model, item.entry.at, item.entry.agent)
        if item.entry is not None:
            item.entry = self._by_store_clock(item.entry)
        return item

    @abc.abstractmethod
    def attempt(self) -> None:
        """Commits the added items and enforces retention. Sets ``problem`` on failure."""

    @abc.abstractmethod
    def close(self) -> None:
        """Closes the database. If all entries are written, first signs the chain as closed."""

    def fail(self, error: Exception, *, exc_info: bool = False) -> None:
        """Fails the awaited items, and keeps the items that are retried for the next attempt."""
        if not self.problem:
            event = "database writes fail; local calls run without audit rows, other calls are refused"
            _log.error(event, reason=self._with_remedy(error), exc_info=exc_info)
        self.problem = self._reason(error)
        kept = []
        for item in self.group:
            awaited = item.entry is not None and self.awaits(item.entry)
            if not awaited:
                item.fail(self.problem)
            if awaited or not isinstance(item.entry, NOT_RETRIED):
                kept.append(item)
        self.group = kept

    def succeed(self) -> None:
        """Records that the group was committed."""
        self.group.clear()
        self.work_again()

    def work_again(self) -> None:
        """Records that writes succeed."""
        if self.problem:
            _log.info("database writes succeed again", rows_dropped=self.rows_dropped)
            self.problem = None

    def _with_remedy(self, error: Exception) -> str:
        """Returns the log message of a failed write."""
        return str(error)

    @abc.abstractmethod
    def _reason(self, error: Exception) -> str:
        """Returns why a write failed, without paths or addresses of the server, because callers see the text."""

    def _by_store_clock(self, entry: Entry) -> Entry:
        """Returns an entry in which the times that decide on its expiry are converted to the store's clock."""
        convert = self.clock.stored_time
        match entry:
            case CallEnd():
                return msgspec.structs.replace(entry, at=convert(entry.at))
            case LocalResults(calls):
                return LocalResults([msgspec.structs.replace(call, at=convert(call.at)) for call in calls])
            case CallPause():
                return msgspec.structs.replace(
                    entry, expires_at=convert(entry.expires_at), drops_at=convert(entry.drops_at)
                )
            case CallStart(pause=CallPause() as pause):
                return msgspec.structs.replace(entry, pause=self._by_store_clock(pause))
            case SessionRow():
                return msgspec.structs.replace(entry, opened_at=convert(entry.opened_at))
            case SessionsSeen(session_ids, at):
                return SessionsSeen(session_ids, convert(at))
            case _:
                return entry

    def _reduced(self, row: CallRow) -> str | None:
        try:
            return None if row.arguments is None else self._content(row.arguments)
        except Exception:  # noqa: BLE001 - a row without its arguments is better than no row
            _log.exception("call arguments cannot be reduced for the audit row", tool=row.tool)
            return None
