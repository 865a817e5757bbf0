"""The rows that are sent to Supabase: calls with their checkpoints, and copies of conversations."""

import time
from collections.abc import Sequence
from typing import Any, Final, Protocol, TypeVar

import structlog

from ..store import (
    AuditOutboxState,
    ChainedRow,
    ConversationCopy,
    ConversationOutboxState,
    SettledCalls,
    SettledConversationCopies,
    Store,
)
from .supabase_writer import AuditRemote, SupabaseWriteError

MAX_COPIED_BYTES: Final = 256 * 1024
"""The maximum size of the messages in one batch, before redaction. A longer message is sent alone. Encoding a batch
blocks the event loop for some milliseconds.
"""
MAX_CHECKPOINTS: Final = 200
"""The maximum number of checkpoints per request."""

Row = TypeVar("Row")

_log = structlog.get_logger(__name__)


class OutboxBatches(Protocol[Row]):
    """Unsent rows of the store, oldest first.

    Reading rows raises StoreError if the store cannot be read. Writing rows raises SupabaseWriteError.
    """

    name: str
    """The name in the log."""

    @property
    def enabled(self) -> bool:
        """Whether rows should be sent."""
        ...

    @property
    def changes(self) -> int:
        """A count that changes when there may be new rows."""
        ...

    async def counts(self) -> dict[str, Any]:
        """Returns the backlog, and the counts of rows ever sent, refused and dropped."""
        ...

    async def unsent(self, limit: int) -> Sequence[Row]:
        """Returns the oldest rows that are neither sent nor refused, at most ``limit``."""
        ...

    async def write(self, remote: AuditRemote, rows: Sequence[Row]) -> None:
        """Writes these rows to Supabase."""
        ...

    def settle(self, rows: Sequence[Row], refused: str | None = None) -> None:
        """Records that these rows were sent, or that one row was refused and why."""
        ...

    async def finish(self, remote: AuditRemote) -> None:
        """Writes related data, such as checkpoints. Called after each batch, and also without a batch."""
        ...


class CallBatches:
    """Audit rows in the order of the chain, and the checkpoints. Implements ``OutboxBatches``."""

    name = "calls"
    enabled = True

    def __init__(self, store: Store) -> None:
        self._store = store
        # The last settled row and the settled checkpoints. The store records them asynchronously, so it may be behind.
        self._cursor = 0
        self._settling: set[bytes] = set()  # checkpoints, by their macs

        # Used for the backlog between two reads of the outbox.
        self._unsent = 0
        self._written = 0

    @property
    def changes(self) -> int:
        return self._store.audit.rows_written

    @property
    def backlog(self) -> int:
        """The number of stored calls that have not been sent."""
        return self._unsent + self._store.audit.rows_written - self._written

    async def counts(self) -> dict[str, Any]:
        return _counts(await self._store.audit.outbox_state())

    async def unsent(self, limit: int) -> Sequence[ChainedRow]:
        written = self._store.audit.rows_written
        self._update_backlog(await self._store.audit.outbox_state(), written)
        return await self._store.audit.unsent_calls(self._cursor, limit)

    def _update_backlog(self, outbox: AuditOutboxState, written: int) -> None:
        self._cursor = max(self._cursor, outbox.settled_seq)
        self._unsent = outbox.backlog - max(0, self._cursor - outbox.settled_seq)
        self._written = written

    async def write(self, remote: AuditRemote, rows: Sequence[ChainedRow]) -> None:
        await remote.write(rows)

    def settle(self, rows: Sequence[ChainedRow], refused: str | None = None) -> None:
        up_to = rows[-1].seq
        if refused is not None:
            _log.warning("Supabase refused an audit row", call=rows[0].call.id, reason=refused)
        # Seqs are consecutive, except where retention removed rows.
        dropped = up_to - self._cursor - len(rows)
        if dropped:
            _log.warning("audit rows removed by retention before they were sent", calls=dropped)
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
        unsent = {
            checkpoint.mac: checkpoint for checkpoint in await self._store.audit.unsent_checkpoints(MAX_CHECKPOINTS)
        }
        self._settling &= unsent.keys()
        checkpoints = tuple(checkpoint for mac, checkpoint in unsent.items() if mac not in self._settling)
        if not checkpoints:
            return
        try:
            await remote.write_checkpoints(checkpoints)
        except SupabaseWriteError as error:
            if error.failure.kind != "refused":
                raise
            _log.warning("Supabase refused checkpoints of the audit chain", reason=error.failure.reason)
        self._store.audit.settle(SettledCalls(up_to=self._cursor, at=time.time(), checkpoints=checkpoints))
        self._settling |= {checkpoint.mac for checkpoint in checkpoints}


class ConversationBatches:
    """Copies of conversations, while copying is enabled. Implements ``OutboxBatches``."""

    name = "copies of conversations"

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cursor = 0  # as in ``CallBatches``

    @property
    def enabled(self) -> bool:
        return self._store.conversations.copy_enabled

    @property
    def changes(self) -> int:
        return self._store.conversations.copy_changes

    async def counts(self) -> dict[str, Any]:
        return _counts(await self._store.conversations.outbox_state())

    async def unsent(self, limit: int) -> Sequence[ConversationCopy]:
        return await self._store.conversations.unsent_copies(self._cursor, limit, MAX_COPIED_BYTES)

    async def write(self, remote: AuditRemote, rows: Sequence[ConversationCopy]) -> None:
        await remote.write_copies(rows)

    def settle(self, rows: Sequence[ConversationCopy], refused: str | None = None) -> None:
        if refused is None:
            settled = SettledConversationCopies(at=time.time(), sent=[copy.number for copy in rows])
        else:
            _log.warning("Supabase refused a copy", id=rows[0].id, reason=refused)
            settled = SettledConversationCopies(at=time.time(), refused={rows[0].number: refused})
        self._store.conversations.settle(settled)
        self._cursor = rows[-1].number

    async def finish(self, remote: AuditRemote) -> None:
        """Does nothing: copies have no related data."""


def _counts(state: AuditOutboxState | ConversationOutboxState) -> dict[str, Any]:
    return {
        "backlog": state.backlog,
        "sent": state.sent,
        "refused": state.refused,
        "dropped": state.dropped,
        "last_sent_at": state.last_sent_at,
    }
