"""Sends the audit to Supabase, independent of running calls."""

import asyncio
from collections.abc import Callable
from typing import Any

from ..store import ChainedRow, ConversationCopy, Store
from .outbox_batches import CallBatches, ConversationBatches
from .outbox_sender import OutboxSender
from .supabase_writer import AuditRemote


class AuditSender:
    """Sends calls and copies of conversations with separate senders, so that a failure of one, such as a missing table,
    does not delay the other.
    """

    def __init__(self, store: Store, connect: Callable[[], AuditRemote]) -> None:
        """``connect`` is called in a thread, once per sender; it may block, and may raise ImportError."""
        self._call_batches = CallBatches(store)
        self._calls: OutboxSender[ChainedRow] = OutboxSender(store, self._call_batches, connect)
        self._copies: OutboxSender[ConversationCopy] = OutboxSender(store, ConversationBatches(store), connect)

    @property
    def backlog(self) -> int:
        """The number of stored calls that have not been sent."""
        return self._call_batches.backlog

    async def status(self) -> dict[str, Any]:
        """Returns ``OutboxSender.status`` of the calls, with the status of the copies in ``copies``.

        Raises:
            StoreError: the outbox cannot be read.
        """
        return {**await self._calls.status(), "copies": await self._copies.status()}

    def start(self) -> None:
        """Starts sending, which continues until ``close`` despite failures of Supabase or the store."""
        self._calls.start()
        self._copies.start()

    async def close(self, within_s: float) -> None:
        """Sends the backlog for at most ``within_s`` seconds, or until a write fails, and stops."""
        await asyncio.gather(self._calls.close(within_s), self._copies.close(within_s))
