"""The writer thread: takes entries from a queue and commits them in groups.

Audit rows are written asynchronously. Journal entries are awaited: a call starts once the entry of its start is on
disk, and its answer is sent once the entry of its end is. An awaited entry makes the thread commit at once; entries
that arrive meanwhile share the next commit.
"""

import collections
import concurrent.futures
import threading
import time
from typing import Final

import msgspec
import structlog

from .commit_entries import CommitItem, Entry, SyncRequested
from .conversation_rows import ConversationUpdate
from .group_committer import Content, GroupCommitter
from .retention import Retention
from .store_clock import StoreClock
from .store_errors import write_error
from .store_limits import GROUP_WINDOW_S, ROWS_PER_STATEMENT
from .store_rows import CallEnd, CallRow, CallStart
from .vendor_file_rows import VendorFileUploaded

RETRY_S: Final = 1.0
"""Time between two attempts while writes fail."""
MAX_QUEUED: Final = 10_000
"""The maximum number of queued entries, so a full disk never exhausts memory. Beyond it, audit rows are dropped and
counted, session changes and acknowledgements are dropped, and no journalled call starts. Entries that complete an
accepted entry, such as the end of a started call, are always accepted."""
MAX_QUEUED_BYTES: Final = 64 * 1024 * 1024
"""The maximum size of all queued arguments; beyond it, rows are written without their arguments."""

_log = structlog.get_logger(__name__)


class StoreWriter:
    """Accepts entries on the event loop's thread, and writes them on a separate thread.

    The methods for the event loop's thread only append to a deque. Each counter is written by one thread only, so the
    counters need no lock.
    """

    def __init__(self, committer: GroupCommitter) -> None:
        self._committer = committer
        self.chain: Final = committer.chain
        """The name of the audit chain."""

        # From the event loop's thread to the writer's.
        self._queue = collections.deque[CommitItem | concurrent.futures.Future[None]]()
        self._wake = threading.Event()  # the queue has entries, or the writer is stopping
        self._flush_requested = threading.Event()  # an entry is awaited: do not gather a group first
        self._stopping = False

        # Counted on the event loop's thread.
        self._bytes_in = 0

        # Used by the writer's thread only.
        self._flushes: list[concurrent.futures.Future[None]] = []  # taken from the queue but not yet resolved

        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    @property
    def problem(self) -> str | None:
        """Why writes fail at present; None if they succeed."""
        return self._committer.problem

    @property
    def opened(self) -> concurrent.futures.Future[None]:
        """Resolves once the database is open: at once, unless the disk was full at the start."""
        return self._committer.opened

    @property
    def clock(self) -> StoreClock:
        """The clock by which results, ids and sessions expire."""
        return self._committer.clock

    @property
    def retention(self) -> Retention:
        """The current retention."""
        return self._committer.retention

    @property
    def rows_written(self) -> int:
        """Rows committed since the start."""
        return self._committer.rows_written

    @property
    def copy_changes(self) -> int:
        """A counter that changes when there may be new copies of messages to send to Supabase."""
        return self._committer.copy_changes

    @property
    def rows_dropped(self) -> int:
        """Rows lost since the start."""
        return self._committer.rows_dropped

    @property
    def queued(self) -> int:
        """Entries accepted and not yet committed."""
        return len(self._queue) + self._committer.uncommitted

    # --- on the event loop's thread ----------------------------------------------------------------------------------

    def record(self, row: CallRow) -> None:
        """Writes an audit row asynchronously. Never blocks, never raises."""
        if self._stopping or len(self._queue) + self._committer.uncommitted >= MAX_QUEUED:
            self._committer.overflowed += 1
            return
        self.enqueue(self._bounded(row))

    def enqueue(self, entry: Entry) -> None:
        """Writes an entry asynchronously. Never blocks."""
        self._queue.append(CommitItem(entry))
        if not self._wake.is_set():
            self._wake.set()

    def enqueue_optional(self, entry: Entry) -> None:
        """Writes an entry asynchronously, or drops it if the queue is full. Never blocks.

        If dropped: an answer is redelivered once more, a session expires some days early or late, or a session cannot
        be resumed after a restart.
        """
        if self.queued < MAX_QUEUED:
            self.enqueue(entry)

    def commit(self, entry: Entry, *, soon: bool = True) -> concurrent.futures.Future[bool]:
        """Writes an entry; the future resolves once it is committed, and on disk if the entry is durable. If not
        ``soon``, the commit waits up to ``GROUP_WINDOW_S`` for other entries.

        The future raises StoreError if the write fails. The ends of calls, conversation updates and owners of vendor
        files are then written as soon as writes succeed again; other entries are not written, now or later. If the
        committer ``awaits`` an entry, its future stays pending instead.
        """
        if isinstance(entry, CallEnd):
            entry = msgspec.structs.replace(entry, row=self._bounded(entry.row))
        if self._stopping:
            return _failed("the store is closed")
        if self.problem and not self._committer.awaits(entry):
            if isinstance(entry, CallEnd) and entry.unstarted is not None:  # nothing was accepted for this call before
                self.enqueue_optional(entry)
            elif isinstance(entry, CallEnd | ConversationUpdate | VendorFileUploaded):
                self.enqueue(entry)
            return _failed(self.problem)
        unstarted = isinstance(entry, CallEnd) and entry.unstarted is not None
        if (isinstance(entry, CallStart) or (unstarted and self.problem)) and self.queued >= MAX_QUEUED:
            return _failed("too many writes are queued")
        done = concurrent.futures.Future[bool]()
        done.set_running_or_notify_cancel()
        self._queue.append(CommitItem(entry, done))
        if soon:
            self._flush_requested.set()
        self._wake.set()
        return done

    def sync(self, seq: int | None = None) -> concurrent.futures.Future[bool]:
        """Syncs all commits to disk, or the audit rows up to ``seq``. Fails as ``commit`` does."""
        if seq is None or seq > self._committer.synced_seq:
            return self.commit(SyncRequested())
        done = concurrent.futures.Future[bool]()
        done.set_result(True)
        return done

    def apply(self, content: Content, retention: Retention) -> None:
        """Applies new settings; the new retention is enforced soon afterwards."""
        self._committer.apply(content, retention)
        self._wake.set()

    def flush(self) -> concurrent.futures.Future[None]:
        """Resolves once all earlier entries have been committed, or have failed."""
        done = concurrent.futures.Future[None]()
        done.set_running_or_notify_cancel()  # so that a cancelled wait does not cancel a future that the writer uses
        if self._stopping:
            done.set_result(None)
            return done
        self._queue.append(done)
        self._flush_requested.set()
        self._wake.set()
        return done

    def close(self, timeout_s: float) -> None:
        """Writes the queued entries, within ``timeout_s`` seconds, and ends the thread. Blocks."""
        self._stopping = True
        self._flush_requested.set()
        self._wake.set()
        self._thread.join(timeout_s)
        if self.queued:
            _log.error("queued entries lost", rows=self.queued, problem=self.problem or "the disk does not answer")

    def _bounded(self, row: CallRow) -> CallRow:
        self._bytes_in += row.arguments_bytes
        if self._bytes_in - self._committer.described_bytes > MAX_QUEUED_BYTES:
            return msgspec.structs.replace(row, arguments=None)
        return row

    # --- on the writer's thread --------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping or self._queue:
            if not self._committer.group and not self.problem:
                self._wake.wait(self._committer.idle_s())
            self._flush_requested.wait(RETRY_S if self.problem else GROUP_WINDOW_S)
            # Cleared before the queue is read: entries that arrive meanwhile set them again.
            self._flush_requested.clear()
            self._wake.clear()
            self._write_queued()
        self._committer.close()

    def _write_queued(self) -> None:
        """Writes the queued entries and resolves their futures."""
        try:
            self._take_queued()
            self._committer.attempt()
        except Exception as error:  # noqa: BLE001 - without this thread rows would pile up unnoticed
            self._committer.fail(error, exc_info=True)
        for done in self._flushes:
            done.set_result(None)
        self._flushes.clear()

    def _take_queued(self) -> None:
        while self._queue:
            entry = self._queue.popleft()
            if not isinstance(entry, CommitItem):
                self._flushes.append(entry)
                continue
            self._committer.add(entry)
            if len(self._committer.group) % ROWS_PER_STATEMENT == 0:
                time.sleep(0)  # yields the interpreter lock, which the event loop would otherwise get after 5 ms


def _failed(reason: str) -> concurrent.futures.Future[bool]:
    failed = concurrent.futures.Future[bool]()
    failed.set_exception(write_error(reason))
    return failed
