"""The tasks of A2A: detached calls, as clients of A2A see them.

What a task is now is always read from its call; the stored state is the one that was seen last.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final, Protocol

import msgspec
import structlog

from ....protocol.a2a.a2a_error import task_not_found
from ....protocol.a2a.a2a_request import A2AMessage
from ....protocol.a2a.a2a_task import (
    FAILED,
    INPUT_REQUIRED,
    WORKING,
    artifact_of,
    error_message,
    input_message,
    last_messages,
    state_of_result,
    task_of,
    user_message,
)
from ....protocol.a2a.a2a_version import is_final, is_interrupted
from ....protocol.error_codes import CallError, ErrorCode, ToolError
from ....protocol.input_request import InputRequest
from ....protocol.tool_call import Principal, stored_principal
from ....store import A2ATaskRow
from ....tools import CallInfo
from ...dispatch import Router
from ...observability.logging_setup import error_text

MAX_HISTORY_BYTES: Final = 256 * 1024
"""Of a task's messages, as JSON; beyond it the oldest are deleted."""
_GONE: Final = ToolError(
    ErrorCode.RESULT_EXPIRED, "The task has ended, and its result is no longer stored.", "maybe", retryable=False
)

_log = structlog.get_logger("toold.a2a")


class TaskRecordPort(Protocol):
    """Stores tasks. Each method raises ServiceUnavailableError if the database cannot be read or written."""

    async def save(self, row: A2ATaskRow) -> None: ...

    async def find(self, task_id: str, principal: Principal) -> A2ATaskRow | None: ...

    async def unfinished(self) -> list[A2ATaskRow]: ...


class TaskView(msgspec.Struct, frozen=True, gc=False):
    """A task at one moment."""

    row: A2ATaskRow
    requests: tuple[InputRequest, ...] = ()
    """What it asks a person."""
    message: dict[str, Any] | None = None
    artifacts: tuple[dict[str, Any], ...] = ()

    @property
    def state(self) -> str:
        return self.row.state

    @property
    def waits(self) -> bool:
        """Whether nothing more happens without its client."""
        return is_final(self.state) or is_interrupted(self.state)

    @property
    def history(self) -> list[dict[str, Any]]:
        return list(msgspec.json.decode(self.row.history))

    def as_task(self, history_length: int | None = None) -> dict[str, Any]:
        """The task as A2A 1.0 has it."""
        return task_of(
            self.row.id,
            self.row.context_id,
            self.state,
            self.row.changed_at,
            message=self.message,
            artifacts=self.artifacts,
            history=last_messages(self.history, history_length),
        )


class _LiveTask:
    """A task that has not ended."""

    __slots__ = ("changed", "lock", "row")

    def __init__(self, row: A2ATaskRow) -> None:
        self.row = row
        self.changed = asyncio.Event()
        """Set when its call changes; replaced by a new event then."""
        self.lock = asyncio.Lock()
        """One look at a time, so that states are stored in their order."""


class A2ATasks:
    """The tasks of all principals."""

    def __init__(self, router: Router, records: TaskRecordPort) -> None:
        self._router = router
        self._records = records
        self._live: dict[str, _LiveTask] = {}
        self._looking: set[asyncio.Task[None]] = set()
        self._closing = False
        router.on_detached_change(self._changed)

    def __repr__(self) -> str:
        return f"<A2ATasks unfinished={len(self._live)}>"

    async def load(self) -> None:
        """Loads the tasks that the previous process left unfinished.

        Raises:
            ServiceUnavailableError: the database cannot be read.
        """
        for row in await self._records.unfinished():
            self._live.setdefault(row.id, _LiveTask(row))
        for task_id in tuple(self._live):  # a call may have ended just before the daemon did
            self._changed(task_id)

    def close(self) -> None:
        """At shutdown: those that wait for a task get it as it is."""
        self._closing = True
        for live in self._live.values():
            live.changed.set()

    async def add(self, task_id: str, agent: str, context_id: str, principal: Principal, message: A2AMessage) -> None:
        """Stores a new task with its first message, unless it is stored.

        Raises:
            ServiceUnavailableError: the database cannot be read or written.
        """
        if task_id in self._live or await self._records.find(task_id, principal) is not None:
            return
        history = _encoded([user_message(message.id, message.parts, context_id, task_id)])
        row = A2ATaskRow(
            id=task_id,
            principal=principal.name,
            agent=agent,
            context_id=context_id,
            state=WORKING,
            changed_at=time.time(),
            ended=False,
            history=history,
        )
        await self._records.save(row)
        self._live.setdefault(task_id, _LiveTask(row))

    async def get(self, task_id: str, agent: str, principal: Principal) -> TaskView:
        """The principal's task of this agent, as it is now.

        Raises:
            A2AError: there is none.
            ServiceUnavailableError: the database cannot be read.
        """
        row = await self._find(task_id, principal)
        if row is None or row.agent != agent:
            raise task_not_found(task_id)
        return await self._look(row)

    async def wait(self, task_id: str, agent: str, principal: Principal) -> TaskView:
        """The task once it has ended or waits for its client; at shutdown, as it is.

        Raises:
            A2AError: there is none.
            ServiceUnavailableError: the database cannot be read.
        """
        while True:
            live = self._live.get(task_id)
            changed = None if live is None else live.changed
            view = await self.get(task_id, agent, principal)
            if view.waits or changed is None or self._closing:
                return view
            await changed.wait()

    async def add_message(self, view: TaskView, message: A2AMessage) -> None:
        """Adds what the task asked, and a message of its client, to its history.

        Raises:
            ServiceUnavailableError: the database cannot be written.
        """
        live = self._live.get(view.row.id)
        if live is None:
            return
        async with live.lock:
            sent = user_message(message.id, message.parts, live.row.context_id, live.row.id)
            history = [*msgspec.json.decode(live.row.history), *([view.message] if view.message else []), sent]
            live.row = msgspec.structs.replace(live.row, history=_encoded(history))
            await self._records.save(live.row)

    def _changed(self, call_id: str) -> None:
        if call_id in self._live:
            looking = asyncio.create_task(self._refresh(call_id))
            self._looking.add(looking)
            looking.add_done_callback(self._looking.discard)

    async def _refresh(self, task_id: str) -> None:
        live = self._live.get(task_id)
        if live is None:
            return
        try:
            await self._look(live.row)
        except CallError as error:
            _log.warning("state of a task not stored", task=task_id, reason=error_text(error))
        live.changed.set()
        live.changed = asyncio.Event()

    async def _find(self, task_id: str, principal: Principal) -> A2ATaskRow | None:
        live = self._live.get(task_id)
        if live is not None:
            return live.row if live.row.principal == principal.name else None
        return await self._records.find(task_id, principal)

    async def _look(self, row: A2ATaskRow) -> TaskView:
        """The task as its call is now; stores its state if that has changed."""
        live = self._live.get(row.id)
        principal = stored_principal(row.principal)
        if live is None:
            return _view(row, await self._router.lookup.look_up(principal, row.id))
        async with live.lock:
            view = _view(live.row, await self._router.lookup.look_up(principal, row.id))
            if view.row != live.row:
                await self._records.save(view.row)
                live.row = view.row
            if view.row.ended:
                self._live.pop(row.id, None)
                live.changed.set()
        return view


def _view(row: A2ATaskRow, info: CallInfo) -> TaskView:
    if info.is_unfinished:
        if info.state != "paused":
            return TaskView(_in_state(row, WORKING))
        message = input_message(info.requests, row.context_id, row.id)
        return TaskView(_in_state(row, INPUT_REQUIRED), info.requests, message)
    if info.result is None:
        row = row if row.ended else _in_state(row, FAILED)
        return TaskView(row, message=error_message(_GONE, row.context_id, row.id))
    error = info.result.error
    ended = _in_state(row, state_of_result(error))
    if error is not None:
        return TaskView(ended, message=error_message(error, row.context_id, row.id))
    return TaskView(ended, artifacts=(artifact_of(info.result),))


def _in_state(row: A2ATaskRow, state: str) -> A2ATaskRow:
    if row.state == state:
        return row
    return msgspec.structs.replace(row, state=state, changed_at=time.time(), ended=is_final(state))


def _encoded(history: Sequence[dict[str, Any]]) -> bytes:
    """The newest messages that fit into ``MAX_HISTORY_BYTES``, as JSON."""
    kept: list[msgspec.Raw] = []
    size = 2
    for message in reversed(history):
        encoded = msgspec.json.encode(message)
        size += len(encoded) + 1
        if size > MAX_HISTORY_BYTES:
            break
        kept.insert(0, msgspec.Raw(encoded))
    return msgspec.json.encode(kept)
