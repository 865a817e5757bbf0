"""What is sent to Supabase: calls with the notes on their chain, and copies of conversations. One lane each."""

import time
from collections.abc import Sequence
from typing import Any, Final, Protocol, TypeVar

import structlog

from ..store import AuditOutboxState, ChainedRow, ConversationCopy, SettledCalls, SettledConversationCopies, Store
from .supabase_writer import AuditRemote, SupabaseWriteError

MAX_COPIED_BYTES: Final = 256 * 1024
"""Of the messages sent at once, as they were said; a longer one goes alone. Making their JSON holds up the event loop
for some milliseconds."""
MAX_CHECKPOINTS: Final = 200
"""Sent at once."""

Row = TypeVar("Row")

_log = structlog.get_logger(__name__)


class OutboxBatches(Protocol[Row]):
    """Rows of the store that Supabase is to have, the oldest first.

    Reading them raises StoreError where the store cannot be read, writing them NotWrittenError.
    """

    name: str
    """For the log."""

    @property
    def on(self) -> bool:
        """Whether any are to be sent."""
        ...

    @property
    def added(self) -> int:
        """Changes when there may be new ones."""
        ...

    async def counts(self) -> dict[str, Any]:
        """For people: what waits, and what became of the others since ever."""
        ...

    async def take(self, limit: int) -> Sequence[Row]:
        """The oldest that are neither sent nor refused; at most so many. Empty where none is left."""
        ...

    async def write(self, remote: AuditRemote, rows: Sequence[Row]) -> None:
        """Have these there."""
        ...

    def settle(self, rows: Sequence[Row], refused: str | None = None) -> None:
        """These are there; or the one was refused, and why."""
        ...

    async def finish(self, remote: AuditRemote) -> None:
        """Have what goes with them there, after each batch and where there was none."""
        ...


class CallBatches:
    """The audit's rows, in the order of their chain, and its checkpoints. Satisfies ``OutboxBatches``."""

    name = "calls"
    on = True

    def __init__(self, store: Store) -> None:
        self._store = store
        # What is settled is on its way to the store: these are ahead of what the store has.
        self._cursor = 0
        self._settling: set[bytes] = set()  # checkpoints, by their macs

        # For the backlog between two looks at the outbox.
        self._unsent = 0
        self._written = 0

    @property
    def added(self) -> int:
        return self._store.audit.rows_written

    @property
    def backlog(self) -> int:
        """Calls that are in the store and not yet sent."""
        return self._unsent + self._store.audit.rows_written - self._written

    async def counts(self) -> dict[str, Any]:
        outbox = await self._store.audit.outbox_state()
        return {
            "backlog": outbox.backlog,
            "sent": outbox.sent,
            "refused": outbox.refused,
            "dropped": outbox.dropped,
            "last_sent_at": outbox.last_sent_at,
        }

    async def take(self, limit: int) -> Sequence[ChainedRow]:
        written = self._store.audit.rows_written
        self._know(await self._store.audit.outbox_state(), written)
        return await self._store.audit.unsent_calls(self._cursor, limit)

    def _know(self, outbox: AuditOutboxState, written: int) -> None:
        self._cursor = max(self._cursor, outbox.settled_seq)
        self._unsent = outbox.backlog - max(0, self._cursor - outbox.settled_seq)
        self._written = written

    async def write(self, remote: AuditRemote, rows: Sequence[ChainedRow]) -> None:
        await remote.write(rows)

    def settle(self, rows: Sequence[ChainedRow], refused: str | None = None) -> None:
        up_to = rows[-1].seq
        if refused is not None:
            _log.warning("Supabase refuses a call's audit row", call=rows[0].call.id, reason=refused)
        # Seqs have no gaps of their own: what is missing was removed by retention.
        dropped = up_to - self._cursor - len(rows)
        if dropped:
            _log.warning("calls were removed before they could be sent", calls=dropped)
        self._store.audit.settle(
            SettledCalls(
                up_to=up_to,
                at=time.time(),
                sent=len(rows) if refused is None else 0,
                refused={} if refused is None else {up_to: refused},
                dropped=dropped,
            )
        )
        self._cursor = up_to
        self._unsent -= len(rows)

    async def finish(self, remote: AuditRemote) -> None:
        unsent = {one.mac: one for one in await self._store.audit.unsent_checkpoints(MAX_CHECKPOINTS)}
        self._settling &= unsent.keys()
        checkpoints = tuple(one for mac, one in unsent.items() if mac not in self._settling)
        if not checkpoints:
            return
        try:
            await remote.write_checkpoints(checkpoints)
        except SupabaseWriteError as error:
            if error.failure.verdict != "refused":
                raise
            _log.warning("Supabase refuses checkpoints of the audit's chain", reason=error.failure.reason)
        self._store.audit.settle(SettledCalls(up_to=self._cursor, at=time.time(), checkpoints=checkpoints))
        self._settling |= {one.mac for one in checkpoints}


class ConversationBatches:
    """What was said in conversations, as long as that is to be copied. Satisfies ``OutboxBatches``."""

    name = "copies of conversations"

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cursor = 0  # as that of ``CallBatches``

    @property
    def on(self) -> bool:
        return self._store.conversations.copy_enabled

    @property
    def added(self) -> int:
        return self._store.conversations.copy_changes

    async def counts(self) -> dict[str, Any]:
        state = await self._store.conversations.outbox_state()
        return {
            "backlog": state.backlog,
            "sent": state.sent,
            "refused": state.refused,
            "dropped": state.dropped,
            "last_sent_at": state.last_sent_at,
        }

    async def take(self, limit: int) -> Sequence[ConversationCopy]:
        return await self._store.conversations.unsent_copies(self._cursor, limit, MAX_COPIED_BYTES)

    async def write(self, remote: AuditRemote, rows: Sequence[ConversationCopy]) -> None:
        await remote.write_copies(rows)

    def settle(self, rows: Sequence[ConversationCopy], refused: str | None = None) -> None:
        if refused is None:
            settled = SettledConversationCopies(at=time.time(), sent=[copy.number for copy in rows])
        else:
            _log.warning("Supabase refuses a copy", of=rows[0].id, reason=refused)
            settled = SettledConversationCopies(at=time.time(), refused={rows[0].number: refused})
        self._store.conversations.settle(settled)
        self._cursor = rows[-1].number

    async def finish(self, remote: AuditRemote) -> None:
        """Nothing goes with them."""
