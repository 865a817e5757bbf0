"""The store as the daemon sees it: audit rows go in without waiting, the journal is waited for, and all can be read."""

import asyncio
import concurrent.futures
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from . import (
    audit_outbox,
    audit_sql,
    chain_checkpoints,
    conversation_outbox,
    conversation_sql,
    detached_sql,
    run_sql,
    session_sql,
    spending_sql,
)
from .audit_chain import Checkpoint
from .committer import Content
from .conversation_outbox import ConversationCopy, ConversationOutboxState, SettledConversationCopies
from .conversation_sql import ConversationUpdate, StoredConversation
from .retention import Retention
from .spending_sql import DaySpent
from .store_reader import StoreReader
from .store_rows import (
    AuditOutboxState,
    CallEnd,
    CallRow,
    CallStart,
    CallTotals,
    ChainedRow,
    SessionRow,
    SettledCalls,
    StoredCall,
    StoredCallState,
    StoredDetachedCall,
    StoredSession,
)
from .store_writer import StoreWriter

CLOSE_TIMEOUT_S: Final = 5.0
"""A disk that does not answer holds up the daemon's end for no longer, but for reads."""


class Store:
    """One SQLite file, one writer thread, one reader thread. ``key`` (``KEY_BYTES`` long) signs the audit's chain;
    ``expects_chain`` where it did so before this start. ``copying``: what is said in conversations is to be copied.

    Raises:
        NewerSchemaError: a newer toold wrote the file.
        StoreError: the file cannot be made, read or written.
    """

    def __init__(
        self,
        path: Path,
        *,
        content: Content,
        retention: Retention,
        key: bytes,
        expects_chain: bool = False,
        copying: bool = False,
    ) -> None:
        self.copying = copying
        """Whether what is said in conversations is to be copied, and copies that wait may be sent."""
        self._path = path
        self._result_ttl_s = retention.result_ttl_s
        self._writer = StoreWriter(path, content=content, retention=retention, key=key, expects_chain=expects_chain)
        self._reader = StoreReader(path)
        self.record: Final[Callable[[CallRow], None]] = self._writer.record
        """Have a call's row written soon. Never blocks, never raises; on the event loop's thread only."""
        self.settle: Final[Callable[[SettledCalls | SettledConversationCopies], None]] = self._writer.settle
        """Have it written soon what became of calls, or copies, that were unsent. Never blocks."""
        self.open_session: Final[Callable[[SessionRow], None]] = self._writer.open_session
        """Have a session written soon, before any call of it that is started after this. Never blocks."""
        self.seen: Final[Callable[[Sequence[str]], None]] = self._writer.seen
        """Have it noted soon that clients hold these sessions (ids). Not seen for 7 days, one without calls goes."""
        self.forget: Final[Callable[[str, Sequence[str]], None]] = self._writer.forget
        """Have the results of a session's calls (request keys) dropped soon, since their client has them."""
        self.close_session: Final[Callable[[str], None]] = self._writer.close_session
        """Have a session and its calls removed soon, since nobody can come back to it; those that run when they end."""

    @property
    def path(self) -> Path:
        """The database's file."""
        return self._path

    @property
    def chain(self) -> str:
        """The name of the audit's chain, which goes with its key."""
        return self._writer.chain

    @property
    def problem(self) -> str | None:
        """Why rows cannot be written at present; None where they can."""
        return self._writer.problem

    @property
    def damage(self) -> str | None:
        """What a read found first that is broken in the file, and what to do; None as long as none has."""
        return self._reader.damage

    @property
    def written(self) -> int:
        """Rows committed since the start."""
        return self._writer.written

    @property
    def copied(self) -> int:
        """Changes when there may be new copies."""
        return self._writer.copied

    @property
    def dropped(self) -> int:
        """Rows lost since the start: the disk refused for too long, SQLite cannot hold them, or the file was damaged
        where a crash left them.
        """
        return self._writer.dropped

    def go_by(self, content: Content, retention: Retention, *, copying: bool = False) -> None:
        """From now on, keep this of calls' arguments, what is kept for so long, and copy conversations or do not."""
        self.copying = copying
        self._result_ttl_s = retention.result_ttl_s
        self._writer.go_by(content, retention)

    async def start(self, started: CallStart) -> bool:
        """Return once it is on the disk that a call starts, safe from a power cut too; then it may.

        False: this id of this session is known already, and nothing was written. A wait that is cut off may have
        written it: tell the call's end all the same.

        Raises:
            StoreError: the disk refuses, and the call is not written down, now or later.
        """
        return await asyncio.wrap_future(self._writer.start(started))

    async def end(self, ended: CallEnd) -> None:
        """Return once it is on the disk how a call ended, with its result and its audit row: all of it or nothing.

        Of a call that is not written down as started only the row is kept. Results past their bound of bytes are not.

        Raises:
            StoreError: the disk refuses; it is written when the disk is well again, as long as the process lives.
        """
        await asyncio.wrap_future(self._writer.end(ended))

    async def child(self, run: str, name: str, principal: str) -> StoredCall | None:
        """What is known of a child of a run; None where it never started, is forgotten, or is somebody else's.

        Raises:
            StoreError: the file cannot be read.
        """
        await self.flush()
        since = time.time() - self._result_ttl_s
        return await self._reader.read(
            lambda connection: session_sql.child(connection, run, name, principal, results_since=since)
        )

    async def run(self, call_id: str, principal: str, tool: str) -> str | None:
        """The run of a principal's call of this tool; None where there is no such call, or it is too long ago.

        Raises:
            StoreError: the file cannot be read.
        """
        await self.flush()
        return await self._reader.read(lambda connection: run_sql.find(connection, call_id, principal, tool))

    async def take_up(self, call_id: str, run: str) -> None:
        """Return once it is on the disk that a call that has started goes on with an earlier run.

        Raises:
            StoreError: the disk refuses, and it is not written down, now or later.
        """
        await asyncio.wrap_future(self._writer.take_up(call_id, run))

    async def detached(self) -> list[StoredDetachedCall]:
        """The detached calls that have started and not ended, the oldest first.

        Raises:
            StoreError: the file cannot be read.
        """
        await self.flush()
        return await self._reader.read(detached_sql.begun)

    async def call(self, call_id: str, principal: str) -> CallRow | None:
        """A principal's call that has ended, where it is among the last ``calls.SEARCHED_ROWS`` of all.

        Raises:
            StoreError: the file cannot be read.
        """
        await self.flush()
        return await self._reader.read(lambda connection: audit_sql.find(connection, call_id, principal))

    async def keep(self, answers: Sequence[StoredCall]) -> None:
        """Return once the results of local calls are on the disk. Those of sessions that were not opened are left out.

        Raises:
            StoreError: the disk refuses, and none is written, now or later.
        """
        await asyncio.wrap_future(self._writer.keep(answers))

    async def session(self, key_hash: bytes) -> StoredSession | None:
        """The session of a key's hash, with its calls that have ended, which counts as seen; None where there is none.

        Its last 4,096 calls at most; local ones only as long as their result is kept.

        Raises:
            StoreError: the file cannot be read.
        """
        await self.flush()
        since = time.time() - self._result_ttl_s
        found = await self._reader.read(
            lambda connection: session_sql.session(connection, key_hash, results_since=since)
        )
        if found:
            self.seen([found.row.id])
        return found

    async def answered(self, session_id: str, request_key: str) -> StoredCall | None:
        """A session's journalled call that has ended, also one that is past its last 4,096; None where there is none.

        Raises:
            StoreError: the file cannot be read.
        """
        await self.flush()
        since = time.time() - self._result_ttl_s
        return await self._reader.read(
            lambda connection: session_sql.answered(connection, session_id, request_key, results_since=since)
        )

    async def states(self, session_id: str, request_keys: Sequence[str]) -> dict[str, StoredCallState]:
        """What is known of these of a session's journalled calls, of each that is; ``expired`` also where one has not
        ended as far as the disk knows.

        Raises:
            StoreError: the file cannot be read.
        """
        await self.flush()
        since = time.time() - self._result_ttl_s
        return await self._reader.read(
            lambda connection: session_sql.states(connection, session_id, request_keys, results_since=since)
        )

    async def conversation(self, conversation_id: str, principal: str) -> StoredConversation | None:
        """A principal's conversation as it is now; None where there is none, or it is somebody else's.

        Raises:
            StoreError: the file cannot be read.
        """
        await self.flush()
        return await self._reader.read(lambda connection: conversation_sql.find(connection, conversation_id, principal))

    async def go_on(self, spoken: ConversationUpdate) -> None:
        """Return once it is committed how a conversation went on. A power cut may undo it, as long as no call that
        came after it has ended.

        Raises:
            StoreError: the disk refuses; it is written when the disk is well again, as long as the process lives.
        """
        await asyncio.wrap_future(self._writer.go_on(spoken))

    async def flush(self) -> None:
        """Return once all rows recorded so far have been committed, or the disk has refused them."""
        await asyncio.wrap_future(self._writer.flush())

    async def sync(self) -> None:
        """Return once a commit, with nothing of its own, has reached the disk.

        Raises:
            StoreError: the disk refuses.
        """
        await asyncio.wrap_future(self._writer.sync())

    async def ended(
        self, principal: str, limit: int, *, tool: str | None = None, outcome: str | None = None
    ) -> list[CallRow]:
        """A principal's calls that ended last, the last one first: those of a tool, or with an outcome (``error`` is
        every code), among the last ``calls.SEARCHED_ROWS`` of all.

        Raises:
            StoreError: the file cannot be read.
        """
        return await self._reader.read(lambda connection: audit_sql.ended(connection, principal, limit, tool, outcome))

    async def recent(self, limit: int) -> list[CallRow]:
        """The calls that ended last, the last one first; those of the last 100 ms may not be there yet.

        Raises:
            StoreError: the file cannot be read.
        """
        return await self._reader.read(lambda connection: audit_sql.recent(connection, limit))

    async def totals(self) -> CallTotals:
        """The sums of all calls ever recorded.

        Raises:
            StoreError: the file cannot be read.
        """
        return await self._reader.read(audit_sql.totals)

    async def spent_since(self, day: str) -> list[DaySpent]:
        """What was spent at the vendors on this day (``YYYY-MM-DD``, UTC) and after it, the newest day first.

        Raises:
            StoreError: the file cannot be read.
        """
        return await self._reader.read(lambda connection: spending_sql.since(connection, day))

    async def outbox(self) -> AuditOutboxState:
        """How far the calls have been sent to Supabase.

        Raises:
            StoreError: the file cannot be read.
        """
        return await self._reader.read(audit_outbox.state)

    async def unsent(self, after: int, limit: int) -> list[ChainedRow]:
        """The oldest calls after a seq (``AuditOutboxState.settled_seq``), in order. They outlive a power cut:
        what somebody
        else has, and its number, must not be given to another call.

        Seqs have no gaps but where retention has removed calls.

        Raises:
            StoreError: the file cannot be read, or the disk refuses.
        """
        rows = await self._reader.read(lambda connection: audit_outbox.unsent(connection, after, limit))
        if rows:
            await asyncio.wrap_future(self._writer.secure(rows[-1].seq))
        return rows

    async def unsent_checkpoints(self, limit: int) -> list[Checkpoint]:
        """The oldest checkpoints that Supabase does not have as they are.

        Raises:
            StoreError: the file cannot be read.
        """
        return await self._reader.read(lambda connection: chain_checkpoints.unsent(connection, limit))

    async def copies(self) -> ConversationOutboxState:
        """How far copies of conversations have been sent to Supabase.

        Raises:
            StoreError: the file cannot be read.
        """
        return await self._reader.read(conversation_outbox.state)

    async def unsent_copies(self, after: int, limit: int, max_bytes: int) -> list[ConversationCopy]:
        """The oldest copies after a number (``ConversationCopy.number``), in order: so many, and of so many bytes, at
        most, but one
        in any case. They outlive a power cut: an id that Supabase has must not be given to another message.

        None as long as nothing is to be copied: what waits stays here.

        Raises:
            StoreError: the file cannot be read, or the disk refuses.
        """
        if not self.copying:
            return []
        found = await self._reader.read(
            lambda connection: conversation_outbox.unsent(connection, after, limit, max_bytes)
        )
        if found:
            await self.sync()
        return found

    async def close(self) -> None:
        """Write what is left, within 5 s, and close the file. A read that takes more than 1 s more is left behind."""
        # The reader first: SQLite moves the log into the database when the last connection that may write is closed.
        await self._reader.close()
        # On a thread that nobody else can keep busy.
        closer = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="store-closer")
        closing = asyncio.get_running_loop().run_in_executor(closer, self._writer.close, CLOSE_TIMEOUT_S)
        closer.shutdown(wait=False)
        await closing
