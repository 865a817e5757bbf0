"""Tasks of A2A: the detached calls that are tasks, with their agents, contexts and messages."""

import asyncio

from .a2a_push_rows import A2APushDeleted, A2APushProgress, A2APushRow
from .a2a_task_rows import A2AEarlier, A2AEvent, A2ATaskPage, A2ATaskQuery, A2ATaskRow
from .store_port import StoreReader
from .store_writer import StoreWriter


class A2ATaskStore:
    """Reads raise StoreError if the database cannot be read; they see all earlier writes."""

    def __init__(self, writer: StoreWriter, reader: StoreReader) -> None:
        self._writer = writer
        self._reader = reader

    async def save(self, row: A2ATaskRow, *, soon: bool = True) -> None:
        """Returns once a changed task is committed. A power cut may undo this until a later call ends. Unless ``soon``,
        the commit may wait ``GROUP_WINDOW_S`` for other entries.

        Raises:
            StoreError: the write fails; it is not retried.
        """
        await asyncio.wrap_future(self._writer.commit(row, soon=soon))

    async def earlier(self, message_key: bytes, conversation_id: str, principal: str) -> A2AEarlier:
        """Returns the stored data about a message that arrives. It may miss queued entries. This is safe: no client
        knows the id of a task before the commit of its message, or the id of a conversation before the commit of its
        first call.
        """
        return await self._reader.query(
            lambda queries: queries.earlier_message(message_key, conversation_id, principal)
        )

    async def find(self, task_id: str, principal: str) -> A2ATaskRow | None:
        """Returns a principal's task; None if it does not exist or belongs to another principal."""
        return await self._reader.query_flushed(lambda queries: queries.find_task(task_id, principal))

    async def events(self, task_id: str, after: int) -> list[A2AEvent]:
        """Returns the first events of a task after a number, in order; none if there are no more."""
        return await self._reader.query_flushed(lambda queries: queries.task_events(task_id, after))

    async def page(self, query: A2ATaskQuery) -> A2ATaskPage:
        """Returns a page of a principal's tasks."""
        return await self._reader.query_flushed(lambda queries: queries.task_page(query))

    async def write_push(self, entry: A2APushRow | A2APushDeleted | A2APushProgress) -> None:
        """Returns once a change of a push configuration is committed.

        Raises:
            StoreError: the write fails; it is not retried.
        """
        await asyncio.wrap_future(self._writer.commit(entry))

    async def pushes_of(self, task_id: str) -> list[A2APushRow]:
        """Returns the push configurations of a task."""
        return await self._reader.query_flushed(lambda queries: queries.pushes_of_task(task_id))

    async def pending_pushes(self, of_each: int) -> list[tuple[A2APushRow, str, str]]:
        """Returns push configurations with events to send, some of each principal, with their principals and agents."""
        return await self._reader.query_flushed(lambda queries: queries.pending_pushes(of_each))

    async def push_count(self, principal: str) -> int:
        """Returns how many push configurations of a principal may have notifications to send, now or later."""
        return await self._reader.query_flushed(lambda queries: queries.push_count(principal))

    async def unfinished(self) -> list[A2ATaskRow]:
        """Returns the tasks of all principals that have not ended, without their history."""
        return await self._reader.query_flushed(lambda queries: queries.unfinished_tasks())
