"""The one writer: a thread that takes entries from a queue and commits them in groups.

For audit rows nobody waits. For the journal somebody does: a call starts, and its answer is sent, when that is on the
disk. Who waits makes the thread hurry; what comes in while it commits shares the next commit.
"""

import collections
import concurrent.futures
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import structlog

from . import audit_sql
from .chain_writer import GROUP_WINDOW_S
from .commit_group import (
    CommitItem,
    LocalResults,
    ResultsForgotten,
    RowsSecured,
    RunTakenUp,
    SessionClosed,
    SessionsSeen,
)
from .committer import Committer, Content, not_written
from .conversation_outbox import SettledConversationCopies
from .conversation_sql import ConversationUpdate
from .retention import Retention
from .store_rows import CallEnd, CallRow, CallStart, SessionRow, SettledCalls, StoredCall

RETRY_S: Final = 1.0
"""Between two attempts while the disk refuses."""
MAX_QUEUED: Final = 10_000
"""Entries that wait for the disk; past it rows are dropped and counted, sessions and what clients have are not noted,
and no call of the journal starts, so that a full disk never fills the memory. What follows from an entry that was taken
is taken always."""
MAX_QUEUED_BYTES: Final = 64 * 1024 * 1024
"""Arguments that wait for the writer; past it rows are kept without them."""

_log = structlog.get_logger(__name__)


class StoreWriter:
    """Takes entries on the event loop's thread, and writes them on its own.

    The methods for the loop's thread only append to a deque. The counters are each written by one thread only, so that
    they need no lock.
    """

    def __init__(
        self, path: Path, *, content: Content, retention: Retention, key: bytes, expects_chain: bool = False
    ) -> None:
        self._committer = Committer(path, content=content, retention=retention, key=key, expects_chain=expects_chain)
        self.chain: Final = self._committer.chain
        """The name of the audit's chain."""

        # From the loop's thread to the writer's. What the last process left undone comes first.
        self._queue = collections.deque[CommitItem | concurrent.futures.Future[None]](self._committer.left_over())
        self._wake = threading.Event()  # there is something in the queue, or nothing will come any more
        self._hurry = threading.Event()  # somebody waits: do not gather a group first
        self._stopping = False

        # Counted on the loop's thread.
        self._bytes_in = 0

        # The writer's own.
        self._flushes: list[concurrent.futures.Future[None]] = []  # taken from the queue, not yet told

        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    @property
    def problem(self) -> str | None:
        """Why nothing can be written at present."""
        return self._committer.problem

    @property
    def written(self) -> int:
        """Rows committed since the start."""
        return self._committer.written

    @property
    def copied(self) -> int:
        """Changes when there may be new copies."""
        return self._committer.copied

    @property
    def dropped(self) -> int:
        """Rows lost since the start."""
        return self._committer.dropped

    @property
    def waiting(self) -> int:
        """Entries taken and not yet committed."""
        return len(self._queue) + len(self._committer.group)

    # --- on the loop's thread ----------------------------------------------------------------------------------------

    def record(self, row: CallRow) -> None:
        """Have a row written soon. Never blocks, never raises; on the event loop's thread only."""
        if self._stopping or self.waiting >= MAX_QUEUED:
            self._committer.overflowed += 1
            return
        self._put(CommitItem(self._bounded(row)))

    def settle(self, settled: SettledCalls | SettledConversationCopies) -> None:
        """Have it written down soon. What is lost in a crash is sent again, which does no harm."""
        self._put(CommitItem(settled))

    def open_session(self, row: SessionRow) -> None:
        """Have a session written down soon: with or before the first of its calls that starts."""
        self._put_if_room(CommitItem(row))

    def seen(self, session_ids: Sequence[str]) -> None:
        """Have it written down soon that clients hold these sessions now."""
        self._put_if_room(CommitItem(SessionsSeen(session_ids, time.time())))

    def forget(self, session_id: str, keys: Sequence[str]) -> None:
        """Have answers dropped soon that their client has."""
        self._put_if_room(CommitItem(ResultsForgotten(session_id, keys)))

    def close_session(self, session_id: str) -> None:
        """Have a session and its calls removed soon, since nobody can come back to it; those that run when they end."""
        self._put_if_room(CommitItem(SessionClosed(session_id)))

    def start(self, started: CallStart) -> concurrent.futures.Future[bool]:
        """Write down that a call starts; done once that is on the disk.

        The future raises StoreError where the disk refuses. Then nothing is written, now or later.
        """
        if not self.problem and not self._stopping and self.waiting >= MAX_QUEUED:
            return _refusal("too much waits for the disk")
        return self._ask(CommitItem(started))

    def end(self, ended: CallEnd) -> concurrent.futures.Future[bool]:
        """Write down how a call ended, and its row; done once that is on the disk.

        The future raises StoreError where the disk refuses. Then it is written when the disk is well again.
        """
        return self._ask(CommitItem(msgspec.structs.replace(ended, row=self._bounded(ended.row))), keep=True)

    def keep(self, answers: Sequence[StoredCall]) -> concurrent.futures.Future[bool]:
        """Write down answers of local calls; done once they are on the disk. Fails as ``start`` does."""
        return self._ask(CommitItem(LocalResults(answers)))

    def take_up(self, call_id: str, run: str) -> concurrent.futures.Future[bool]:
        """Write down that a call goes on with an earlier run; done once it is on the disk. Fails as ``start`` does."""
        return self._ask(CommitItem(RunTakenUp(call_id, run)))

    def go_on(self, spoken: ConversationUpdate) -> concurrent.futures.Future[bool]:
        """Write down how a conversation went on; done once it is committed. Fails as ``end`` does."""
        return self._ask(CommitItem(spoken), keep=True)

    def secure(self, seq: int) -> concurrent.futures.Future[bool]:
        """Have a row that is committed outlive a power cut; done once it does. Fails as ``start`` does."""
        if seq > self._committer.synced_seq:
            return self.sync()
        done = concurrent.futures.Future[bool]()
        done.set_result(True)
        return done

    def sync(self) -> concurrent.futures.Future[bool]:
        """Have all that is committed outlive a power cut; done once it does. Fails as ``start`` does."""
        return self._ask(CommitItem(RowsSecured()))

    def go_by(self, content: Content, retention: Retention) -> None:
        """Go by these from now on; what is kept already is looked through soon. On the event loop's thread."""
        self._committer.go_by(content, retention)
        self._wake.set()

    def flush(self) -> concurrent.futures.Future[None]:
        """Done once all that came before has been committed, or the disk has refused it."""
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

    def _put(self, item: CommitItem) -> None:
        self._queue.append(item)
        if not self._wake.is_set():
            self._wake.set()

    def _put_if_room(self, item: CommitItem) -> None:
        """Put an entry that may be left out: an answer is sent once more, a session goes some days early or late, or
        cannot be come back to after the daemon's end.
        """
        if self.waiting < MAX_QUEUED:
            self._put(item)

    def _ask(self, item: CommitItem, *, keep: bool = False) -> concurrent.futures.Future[bool]:
        """Put an entry that somebody waits for; where the disk refuses, or the writer ends, he is told at once."""
        problem = "the store is closed" if self._stopping else self.problem
        if problem:
            if keep and not self._stopping:
                self._put(item)
            return _refusal(problem)
        item.done = concurrent.futures.Future()
        item.done.set_running_or_notify_cancel()
        self._queue.append(item)
        self._hurry.set()
        self._wake.set()
        return item.done

    def _bounded(self, row: CallRow) -> CallRow:
        self._bytes_in += row.arguments_bytes
        if self._bytes_in - self._committer.described_bytes > MAX_QUEUED_BYTES:
            return msgspec.structs.replace(row, arguments=None)
        return row

    # --- on the writer's thread --------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping or self._queue:
            if not self._committer.group and not self.problem:
                self._wake.wait(max(0.0, self._committer.retention_due - time.monotonic()))
            self._hurry.wait(RETRY_S if self.problem else GROUP_WINDOW_S)
            # Cleared before the queue is read: what comes in between sets them again.
            self._hurry.clear()
            self._wake.clear()
            self._turn()
        self._committer.close()

    def _turn(self) -> None:
        """Write what there is, and tell those who wait for it."""
        try:
            self._take()
            self._committer.attempt()
        except Exception as error:  # noqa: BLE001 - without this thread rows would pile up, and nobody would know why
            self._committer.refused(error, exc_info=True)
        for done in self._flushes:
            done.set_result(None)
        self._flushes.clear()

    def _take(self) -> None:
        while self._queue:
            entry = self._queue.popleft()
            if not isinstance(entry, CommitItem):
                self._flushes.append(entry)
                continue
            self._committer.add(entry)
            if len(self._committer.group) % audit_sql.ROWS_PER_STATEMENT == 0:
                time.sleep(0)  # gives the event loop the interpreter, which it would else get after 5 ms


def _refusal(reason: str) -> concurrent.futures.Future[bool]:
    refused = concurrent.futures.Future[bool]()
    refused.set_exception(not_written(reason))
    return refused
