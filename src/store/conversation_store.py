"""Stored conversations, and the copies of them that still have to be sent to Supabase."""

import asyncio

from .conversation_rows import (
    ConversationCopy,
    ConversationOutboxState,
    ConversationReleased,
    ConversationUpdate,
    SettledConversationCopies,
    StoredConversation,
)
from .store_port import StoreReader
from .store_writer import StoreWriter


class ConversationStore:
    """Reads raise StoreError if the database cannot be read.

    With ``shared``, other nodes use the database, so a conversation has to be claimed before a call uses it, and
    released afterwards.
    """

    def __init__(self, writer: StoreWriter, reader: StoreReader, *, copy_enabled: bool, shared: bool = False) -> None:
        self._writer = writer
        self._reader = reader
        self.shared = shared
        self.copy_enabled = copy_enabled
        """Whether conversations are copied, and queued copies may be sent."""

    @property
    def copy_changes(self) -> int:
        """A count that changes when there may be new copies."""
        return self._writer.copy_changes

    async def load(self, conversation_id: str, principal: str) -> StoredConversation | None:
        """Returns a principal's conversation after all earlier updates; None if it does not exist or is not the
        principal's."""
        return await self._reader.query_flushed(lambda queries: queries.load_conversation(conversation_id, principal))

    async def claim(self, conversation_id: str, principal: str) -> StoredConversation | None:
        """Claims a principal's conversation for this process and returns it; None if it does not exist or belongs to
        another principal.

        Raises:
            ConversationHeldError: a call on another node uses it.
            NodeFencedError: this node has been declared dead.
        """
        claiming = asyncio.ensure_future(self._reader.claim_conversation(conversation_id, principal))
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            # The claim may still succeed, although the caller no longer waits for it.
            claiming.add_done_callback(lambda done: self._release_if_claimed(conversation_id, done))
            raise

    def _release_if_claimed(self, conversation_id: str, claiming: asyncio.Future[StoredConversation | None]) -> None:
        if not claiming.cancelled() and claiming.exception() is None:
            self.release(conversation_id)

    def release(self, conversation_id: str) -> None:
        """Lets other nodes use a conversation, after all updates so far. Never blocks."""
        if self.shared:
            self._writer.enqueue(ConversationReleased(conversation_id))

    def begin(self, update: ConversationUpdate) -> None:
        """Stores a new conversation asynchronously, before any call that starts after this. Never blocks."""
        self._writer.enqueue(update)

    async def newest(self, principal: str, limit: int) -> list[tuple[str, float, int]]:
        """Returns the most recently used conversations of a principal: id, time and bytes, newest first."""
        return await self._reader.query(lambda queries: queries.newest_conversations(principal, limit))

    async def update(self, update: ConversationUpdate) -> None:
        """Returns once a new or continued conversation is committed. A power cut may undo this until a later call ends.

        Raises:
            StoreError: the write fails; it is retried until it succeeds or the process ends.
        """
        await asyncio.wrap_future(self._writer.commit(update))

    async def outbox_state(self) -> ConversationOutboxState:
        """Returns the state of the outbox to Supabase."""
        return await self._reader.query(lambda queries: queries.copies_state())

    async def unsent_copies(self, after: int, limit: int, max_bytes: int) -> list[ConversationCopy]:
        """Returns the oldest copies after a number (``ConversationCopy.number``), in order.

        At most ``limit`` copies and ``max_bytes`` bytes, but at least one copy if there is one; none while copying is
        disabled. The copies are synced to disk first: otherwise a power cut could free the id of a sent copy for
        another message.

        Raises:
            StoreError: the database cannot be read, or the sync fails.
        """
        if not self.copy_enabled:
            return []
        stored = await self._reader.query(lambda queries: queries.unsent_copies(after, limit, max_bytes))
        if stored:
            await asyncio.wrap_future(self._writer.sync())
        return stored

    def settle(self, settled: SettledConversationCopies) -> None:
        """Records asynchronously which copies were sent or refused. Never blocks.

        Copies whose record is lost in a crash are sent again, which is harmless.
        """
        self._writer.enqueue(settled)
