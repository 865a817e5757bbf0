"""The audit's way to Supabase. No call waits for it."""

import asyncio
from collections.abc import Callable
from typing import Any

from ..store import ChainedRow, ConversationCopy, Store
from .outbox_batches import CallBatches, ConversationBatches
from .outbox_sender import OutboxSender
from .supabase_writer import AuditRemote


class AuditSender:
    """Sends calls and copies of conversations, each in a lane of its own: what keeps one from Supabase, such as a table
    that is missing there, holds up no other.
    """

    def __init__(self, store: Store, connect: Callable[[], AuditRemote]) -> None:
        """``connect`` is called in a thread, once a lane; it may take its time, and raise ImportError."""
        self._outgoing = CallBatches(store)
        self._calls: OutboxSender[ChainedRow] = OutboxSender(store, self._outgoing, connect)
        self._copies: OutboxSender[ConversationCopy] = OutboxSender(store, ConversationBatches(store), connect)

    @property
    def backlog(self) -> int:
        """Calls that are in the store and not yet sent."""
        return self._outgoing.backlog

    async def status(self) -> dict[str, Any]:
        """``OutboxSender.status`` of the calls, and under ``copies`` of the copies.

        Raises:
            StoreError: the outbox cannot be read.
        """
        return {**await self._calls.status(), "copies": await self._copies.status()}

    def start(self) -> None:
        """Begin. Whatever Supabase and the store do, it goes on until it is closed."""
        self._calls.start()
        self._copies.start()

    async def close(self, within_s: float) -> None:
        """Send what is left as long as that works, for at most so many seconds, and end. Does nothing before start."""
        await asyncio.gather(self._calls.close(within_s), self._copies.close(within_s))
