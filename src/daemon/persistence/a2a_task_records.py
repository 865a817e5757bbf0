"""Gives the A2A transport access to the stored tasks. Converts the errors of the store."""

from collections.abc import Awaitable
from typing import TypeVar

from ...protocol.error_codes import ServiceUnavailableError
from ...protocol.tool_call import Principal
from ...store import (
    A2AEarlier,
    A2AEvent,
    A2APushDeleted,
    A2APushProgress,
    A2APushRow,
    A2ATaskPage,
    A2ATaskQuery,
    A2ATaskRow,
    Store,
    StoreError,
)

T = TypeVar("T")


class A2ATaskRecords:
    """Each method raises ServiceUnavailableError if the database cannot be read or written."""

    def __init__(self, store: Store) -> None:
        self._store = store.a2a_tasks

    async def save(self, row: A2ATaskRow, *, soon: bool = True) -> None:
        """Stores a changed task; if not ``soon``, together with later entries."""
        await _available(self._store.save(row, soon=soon))

    async def earlier(self, message_key: bytes, conversation_id: str, principal: Principal) -> A2AEarlier:
        """Returns the stored data about a message that arrives."""
        return await _available(self._store.earlier(message_key, conversation_id, principal.name))

    async def find(self, task_id: str, principal: Principal) -> A2ATaskRow | None:
        """Returns a principal's task; None if it does not exist or belongs to another principal."""
        return await _available(self._store.find(task_id, principal.name))

    async def events(self, task_id: str, after: int) -> list[A2AEvent]:
        """Returns the first events of a task after a number, in order; none if there are no more."""
        return await _available(self._store.events(task_id, after))

    async def page(self, query: A2ATaskQuery) -> A2ATaskPage:
        """Returns a page of a principal's tasks."""
        return await _available(self._store.page(query))

    async def unfinished(self) -> list[A2ATaskRow]:
        """Returns the tasks of all principals that have not ended, without their history."""
        return await _available(self._store.unfinished())


class A2APushRecords:
    """The push configurations of tasks. Each method raises ServiceUnavailableError as above."""

    def __init__(self, store: Store) -> None:
        self._store = store.a2a_tasks

    async def write(self, entry: A2APushRow | A2APushDeleted | A2APushProgress) -> None:
        """Stores a change."""
        await _available(self._store.write_push(entry))

    async def of_task(self, task_id: str) -> list[A2APushRow]:
        """Returns the configurations of a task."""
        return await _available(self._store.pushes_of(task_id))

    async def count(self, principal: Principal) -> int:
        """Returns how many configurations of a principal may have notifications to send, now or later."""
        return await _available(self._store.push_count(principal.name))

    async def pending(self, of_each: int) -> list[tuple[A2APushRow, str, str]]:
        """Returns configurations with events to send, some of each principal, with their principals and agents."""
        return await _available(self._store.pending_pushes(of_each))

    async def events(self, task_id: str, after: int) -> list[A2AEvent]:
        """Returns the first events of a task after a number, in order; none if there are no more."""
        return await _available(self._store.events(task_id, after))


async def _available(answer: Awaitable[T]) -> T:
    try:
        return await answer
    except StoreError as error:
        message = f"Tasks cannot be read or stored at present ({error.reason}); try again later."
        raise ServiceUnavailableError.content_free(message, executed="maybe") from error
