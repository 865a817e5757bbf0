"""The one writer: a thread that takes rows from a queue and commits them in groups. Nobody waits for it."""

import collections
import concurrent.futures
import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import structlog

from . import calls, outbox
from .rows import CallRow, Settled
from .schema import StoreError, open_database

GROUP_WINDOW_S: Final = 0.1
"""Rows that come within it share one commit."""
RETRY_S: Final = 1.0
"""Between two attempts while the disk refuses."""
RETENTION_EVERY_S: Final = 3600.0
MAX_QUEUED: Final = 10_000
"""Rows that wait for the disk; more are dropped and counted, so that a full disk never fills the memory."""
MAX_QUEUED_BYTES: Final = 64 * 1024 * 1024
"""Arguments that wait for the writer; past it rows are kept without them."""

Content = Callable[[Any], str | None]
"""A call's arguments → what is kept of them, as JSON; called on the writer's thread."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Retention:
    """How long rows are kept: at most so many days, and so many bytes of database."""

    days: int = 30
    bytes: int = 1024**3


class Writer:
    """Takes rows on the event loop's thread, and writes them on its own.

    ``record`` only appends to a deque. The counters are each written by one thread only, so that they need no lock.
    """

    def __init__(self, path: Path, *, content: Content, retention: Retention) -> None:
        self._path = path
        self._content = content
        self._retention = retention
        self._connection: sqlite3.Connection | None = open_database(path)

        # From the loop's thread to the writer's.
        self._queue = collections.deque[CallRow | Settled | concurrent.futures.Future[None]]()
        self._wake = threading.Event()  # there is something in the queue, or nothing will come any more
        self._hurry = threading.Event()  # somebody waits: do not gather a group first
        self._stopping = False

        # Counted on the loop's thread.
        self._overflowed = 0
        self._bytes_in = 0

        # The writer's own.
        self._group: list[calls.Values] = []  # taken from the queue, not yet committed
        self._settled: list[Settled] = []  # taken from the queue, not yet committed
        self._flushes: list[concurrent.futures.Future[None]] = []  # taken from the queue, not yet told
        self._bytes_out = 0
        self._unfit = 0
        self._retention_due = 0.0
        self.written = 0
        """Rows committed since the start."""
        self.problem: str | None = None
        """Why rows cannot be written at present."""

        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Rows lost since the start."""
        return self._overflowed + self._unfit

    @property
    def waiting(self) -> int:
        """Rows recorded and not yet committed."""
        return len(self._queue) + len(self._group)

    def record(self, row: CallRow) -> None:
        """Have a row written soon. Never blocks, never raises; on the event loop's thread only."""
        if len(self._queue) + len(self._group) >= MAX_QUEUED or self._stopping:
            self._overflowed += 1
            return
        self._bytes_in += row.arguments_bytes
        if self._bytes_in - self._bytes_out > MAX_QUEUED_BYTES:
            row = msgspec.structs.replace(row, arguments=None)
        self._queue.append(row)
        if not self._wake.is_set():
            self._wake.set()

    def settle(self, settled: Settled) -> None:
        """Have it written down soon. What is lost in a crash is sent again, which does no harm."""
        self._queue.append(settled)
        self._wake.set()

    def flush(self) -> concurrent.futures.Future[None]:
        """Done once all rows recorded before have been committed, or the disk has refused them."""
        done = concurrent.futures.Future[None]()
        done.set_running_or_notify_cancel()  # who stops waiting must not cancel it under the writer's hands
        if self._stopping:
            done.set_result(None)
            return done
        self._queue.append(done)
        self._hurry.set()
        self._wake.set()
        return done

    def close(self, timeout_s: float) -> None:
        """Write what is left, within ``timeout_s`` seconds, and end the thread. Blocks."""
        self._stopping = True
        self._hurry.set()
        self._wake.set()
        self._thread.join(timeout_s)
        if self.waiting:
            _log.error("audit rows are lost", rows=self.waiting, problem=self.problem or "the disk does not answer")

    # --- on the writer's thread --------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping or self._queue:
            if not (self._group or self._settled):
                self._wake.wait(max(0.0, self._retention_due - time.monotonic()))
            self._hurry.wait(RETRY_S if self.problem else GROUP_WINDOW_S)
            # Cleared before the queue is read: what comes in between sets them again.
            self._hurry.clear()
            self._wake.clear()
            self._turn()
        self._close_connection()

    def _turn(self) -> None:
        """Write what there is, and tell those who wait for it."""
        try:
            self._take()
            self._write()
            self._keep_bounds()
        except Exception as error:  # noqa: BLE001 - without this thread rows would pile up, and nobody would know why
            self._refused(error, exc_info=True)
        for done in self._flushes:
            done.set_result(None)
        self._flushes.clear()

    def _take(self) -> None:
        while self._queue:
            entry = self._queue.popleft()
            if isinstance(entry, Settled):
                self._settled.append(entry)
                continue
            if not isinstance(entry, CallRow):
                self._flushes.append(entry)
                continue
            self._group.append(calls.values(entry, self._kept(entry)))
            self._bytes_out += entry.arguments_bytes
            if len(self._group) % calls.ROWS_PER_STATEMENT == 0:
                time.sleep(0)  # gives the event loop the interpreter, which it would else get after 5 ms

    def _kept(self, row: CallRow) -> str | None:
        try:
            return None if row.arguments is None else self._content(row.arguments)
        except Exception:  # noqa: BLE001 - a row without its arguments is worth more than no row
            _log.exception("the arguments of a call cannot be described", tool=row.tool)
            return None

    def _write(self) -> None:
        if not self._group and not self._settled:
            return
        try:
            self._commit()
        except (sqlite3.Error, StoreError, OSError) as error:
            self._refused(error)
            return
        if self.problem:
            _log.info("the store works again", dropped=self.dropped)
            self.problem = None

    def _commit(self) -> None:
        if self._connection is None:
            self._connection = open_database(self._path)
        if self._group:
            self._commit_group(self._connection)
        if self._settled:
            outbox.settle(self._connection, self._settled)
            self._settled.clear()

    def _commit_group(self, connection: sqlite3.Connection) -> None:
        try:
            calls.add(connection, self._group)
        except Exception as error:
            if _is_the_disk(error):
                raise
            self._commit_one_by_one(connection)
        else:
            self.written += len(self._group)
            self._group.clear()

    def _commit_one_by_one(self, connection: sqlite3.Connection) -> None:
        """One row spoils its group: leave that one out."""
        while self._group:
            try:
                calls.add(connection, self._group[:1])
                self.written += 1
            except Exception as error:
                if _is_the_disk(error):
                    raise
                self._unfit += 1
                _log.warning("a call does not fit into the store", reason=str(error))
            del self._group[0]

    def _refused(self, error: Exception, *, exc_info: bool = False) -> None:
        if not self.problem:
            told = "the store cannot be written; calls go on without their audit rows"
            _log.error(told, reason=str(error), exc_info=exc_info)
        self.problem = _reason(error)
        # A new connection each time: after an I/O error the old one may stay broken when the disk is not.
        self._close_connection()

    def _close_connection(self) -> None:
        if self._connection:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _keep_bounds(self) -> None:
        """Remove a slice of what is too old or too much, where the time for it has come."""
        now = time.monotonic()
        if now < self._retention_due or self._connection is None:
            return
        self._retention_due = now + RETENTION_EVERY_S
        try:
            removed = calls.forget(
                self._connection,
                before=time.time() - self._retention.days * 86400,
                keep_bytes=self._retention.bytes,
            )
        except sqlite3.Error as error:
            self._refused(error)
            return
        if removed >= calls.SLICE:
            self._retention_due = now


def _reason(error: Exception) -> str:
    """What refused, without a path of the server: callers see it."""
    if isinstance(error, StoreError):
        return error.reason
    return str(error) if isinstance(error, sqlite3.Error) else type(error).__name__


def _is_the_disk(error: Exception) -> bool:
    """Whether a later attempt may succeed; otherwise the row itself is at fault."""
    unfit = (sqlite3.DataError, sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.InterfaceError)
    return isinstance(error, sqlite3.Error | OSError) and not isinstance(error, unfit)
