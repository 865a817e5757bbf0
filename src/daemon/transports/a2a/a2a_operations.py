"""A2A's operations on tasks, as calls on the call path (decision 92).

A new message is a call of the agent with ``detach``; a message to a task that waits for a person is a call of
``agent_decide``. The message's id is the key of the call's session, so a repeated message gets the same answer.
"""

import asyncio
import time
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any, Final, Protocol

import msgspec
from msgspec.structs import replace

from ....protocol.a2a.a2a_decisions import decisions_in
from ....protocol.a2a.a2a_error import (
    CONTENT_TYPE,
    TASK_NOT_CANCELABLE,
    UNSUPPORTED_OPERATION,
    A2AError,
    error_of_call,
    invalid_field,
)
from ....protocol.a2a.a2a_request import A2AMessage, SendRequest, TaskRequest, read_send
from ....protocol.a2a.a2a_task import CANCELED, text_artifact
from ....protocol.a2a.a2a_version import A2AVersion, is_final, send_params_of_0_3
from ....protocol.a2a.push_config import PushConfig
from ....protocol.a2a.task_page import MAX_PAGE_BYTES, ListRequest, page_token
from ....protocol.json_pieces import LONG_BYTES
from ....protocol.tool_call import Principal, ToolCall, ToolResult
from ....store import A2ATaskQuery
from ...dispatch import AbsentResultPort, AwaitedResultPort, PreparedCall, Router, conflict_of, prepared
from ...observability.logging_setup import bind_session
from ...off_loop import off_loop
from ..http_client import toolset_with
from ..keyed_sessions import KeyedSessions
from ..mcp.mcp_caller import make_label
from .a2a_caller import TRANSPORT, A2ACaller
from .a2a_tasks import A2ATasks
from .new_tasks import NewTasks
from .task_stream import TaskEvents
from .task_view import TaskView

_DECIDING_TOOL: Final = "agent_decide"


class PushPort(Protocol):
    """Stores the push configurations of messages."""

    async def check(self, values: Mapping[str, Any] | None, principal: Principal) -> PushConfig | None: ...

    async def add(self, task_id: str, config: PushConfig, version: A2AVersion) -> None: ...


async def read_message(caller: A2ACaller, params: Mapping[str, Any], version: A2AVersion = "1.0") -> SendRequest:
    """The parameters of ``SendMessage``; long ones are read outside of the event loop.

    Raises:
        A2AError: they are invalid.
    """
    read = _read_0_3 if version == "0.3" else read_send
    return await off_loop(read, params) if caller.size > LONG_BYTES else read(params)


class A2AOperations:
    """Sends messages to agents, and reads and cancels tasks."""

    def __init__(self, router: Router, tasks: A2ATasks, new_tasks: NewTasks) -> None:
        self._router = router
        self._tasks = tasks
        self._new_tasks = new_tasks
        self._sessions = KeyedSessions(router, transport=TRANSPORT, absent_port=AbsentResultPort())
        self.pushes: PushPort | None = None
        """Takes the push configurations of messages."""
        # Referenced so that they are not collected.
        self._accepting: set[asyncio.Future[str]] = set()

    async def send(self, caller: A2ACaller, request: SendRequest, version: A2AVersion = "1.0") -> dict[str, Any]:
        """``SendMessage``: returns the task, which has ended or waits for its client, unless the request asks not to
        wait. If the agent answers with messages, returns the message.

        Raises:
            A2AError: the message is refused, or its task does not exist.
            ServiceUnavailableError: the database cannot be read or written.
        """
        task_id = await self._accepted(caller, request, version)
        look = self._tasks.get if request.return_immediately else self._tasks.wait
        view = await look(task_id, caller.agent, caller.principal)
        if caller.by_message and not request.return_immediately:
            return view.as_answer()
        return {"task": view.as_task(request.history_length)}

    async def stream(self, caller: A2ACaller, request: SendRequest, version: A2AVersion = "1.0") -> TaskEvents:
        """``SendStreamingMessage``: the task, then its events until it has ended or waits for its client. If the agent
        answers by messages, only the message.

        Raises:
            A2AError: the message is refused, or its task does not exist.
            ServiceUnavailableError: the database cannot be read or written.
        """
        task_id = await self._accepted(caller, request, version)
        view = await self._tasks.get(task_id, caller.agent, caller.principal)
        if caller.by_message:
            return self._answer_events(caller, view)
        return self._events(view, request.history_length, goes_on=not view.waits)

    async def subscribe(
        self, caller: A2ACaller, request: TaskRequest, last_event: int | None, version: A2AVersion = "1.0"
    ) -> TaskEvents:
        """``SubscribeToTask``: the events after a given event, or the current task and then its events.

        Raises:
            A2AError: there is no such task, or it has ended and no event is named.
            ServiceUnavailableError: the database cannot be read.
        """
        view = await self._tasks.get(request.task_id, caller.agent, caller.principal)
        if last_event is not None:
            return self._tasks.follow(request.task_id, last_event)
        if is_final(view.state):
            reading = "GetTask" if version == "1.0" else "tasks/get"
            why = f"The task has ended ({view.state}); read it with {reading}."
            raise A2AError(UNSUPPORTED_OPERATION, why, metadata={"taskId": request.task_id, "state": view.state})
        return self._events(view, request.history_length, goes_on=True)

    async def list_tasks(self, caller: A2ACaller, request: ListRequest) -> dict[str, Any]:
        """``ListTasks``: the caller's tasks of this agent, the latest change first.

        Raises:
            ServiceUnavailableError: the database cannot be read.
        """
        query = A2ATaskQuery(
            principal=caller.principal.name,
            agent=caller.agent,
            context_id=request.context_id,
            state=request.state,
            changed_after=request.changed_after,
            before=request.before,
            limit=request.page_size,
            max_bytes=MAX_PAGE_BYTES,
            with_history=request.history_length != 0,
        )
        page = await self._tasks.page(query, results=request.artifacts)
        tasks = [view.as_task(request.history_length, with_artifacts=request.artifacts) for view in page.views]
        token = "" if page.last is None else page_token(page.last.changed_at, page.last.number)
        return {"tasks": tasks, "nextPageToken": token, "pageSize": request.page_size, "totalSize": page.total}

    async def _events(self, view: TaskView, history_length: int | None, *, goes_on: bool) -> TaskEvents:
        task = view.as_task(history_length)
        if not view.artifacts and (begun := await self._tasks.text_so_far(view)):
            task["artifacts"] = [text_artifact(begun)]  # later pieces are appended to this artifact
        yield view.row.last_event, {"task": msgspec.Raw(msgspec.json.encode(task))}
        if goes_on:
            async with aclosing(self._tasks.follow(view.row.id, view.row.last_event)) as events:
                async for event in events:
                    yield event

    async def _answer_events(self, caller: A2ACaller, view: TaskView) -> TaskEvents:
        if not view.waits:
            async with aclosing(self._tasks.follow(view.row.id, view.row.last_event)) as events:
                async for event in events:
                    if event is None:
                        yield None
            view = await self._tasks.get(view.row.id, caller.agent, caller.principal)
        ((kind, answer),) = view.as_answer().items()
        yield view.row.last_event, {kind: msgspec.Raw(msgspec.json.encode(answer))}

    async def _accepted(self, caller: A2ACaller, request: SendRequest, version: A2AVersion) -> str:
        """Starts a new task for a message, or passes the message to the task that waits for it. Returns the task's id.

        Shielded: if the client disconnects, a task that has begun is still stored.
        """
        accepting = asyncio.ensure_future(self._accept(caller, request, version))
        self._accepting.add(accepting)
        accepting.add_done_callback(self._forget)
        return await asyncio.shield(accepting)

    async def _accept(self, caller: A2ACaller, request: SendRequest, version: A2AVersion) -> str:
        push = None if self.pushes is None else await self.pushes.check(request.push, caller.principal)
        task_id = await self._take(caller, request.message)
        if push is not None and self.pushes is not None:
            await self.pushes.add(task_id, push, version)
        return task_id

    async def _take(self, caller: A2ACaller, message: A2AMessage) -> str:
        if message.task_id is None:
            return await self._new_tasks.begin(caller, message)
        view = await self._tasks.get(message.task_id, caller.agent, caller.principal)
        await self._answer(caller, message, view)
        return message.task_id

    async def get(self, caller: A2ACaller, request: TaskRequest) -> dict[str, Any]:
        """``GetTask``.

        Raises:
            A2AError: there is no such task.
            ServiceUnavailableError: the database cannot be read.
        """
        view = await self._tasks.get(request.task_id, caller.agent, caller.principal)
        return view.as_task(request.history_length)

    async def cancel(self, caller: A2ACaller, request: TaskRequest) -> dict[str, Any]:
        """``CancelTask``: the task once it has ended.

        Raises:
            A2AError: there is no such task, or it has ended.
            ServiceUnavailableError: the database cannot be read or written.
        """
        view = await self._tasks.get(request.task_id, caller.agent, caller.principal)
        if not is_final(view.state):
            await self._router.lookup.cancel(caller.principal, request.task_id)
            view = await self._tasks.wait(request.task_id, caller.agent, caller.principal)
            if view.state == CANCELED:
                return view.as_task()
        message = f"The task has ended ({view.state}), so it cannot be cancelled."
        raise A2AError(TASK_NOT_CANCELABLE, message, metadata={"taskId": request.task_id, "state": view.state})

    def _forget(self, accepting: asyncio.Future[str]) -> None:
        self._accepting.discard(accepting)
        if not accepting.cancelled():
            accepting.exception()  # retrieved, so that asyncio does not log it if the client has disconnected

    async def _answer(self, caller: A2ACaller, message: A2AMessage, view: TaskView) -> None:
        """Applies the decisions in a client's message to a waiting task. A repeated message has no effect."""
        if message.context_id is not None and message.context_id != view.row.context_id:
            raise invalid_field("message.contextId", "is not that of the task")
        if view.has_message(message.id):
            return
        if message.has_files:
            why = "An answer to a task has text and data, no files; send files in a message without taskId."
            raise A2AError(CONTENT_TYPE, why)
        if not view.requests:
            state = "has ended" if is_final(view.state) else "is working and takes no message now"
            why = f"The task {state} ({view.state}); send the message without taskId, with the task's contextId."
            raise A2AError(UNSUPPORTED_OPERATION, why, metadata={"taskId": view.row.id, "state": view.state})
        decisions = decisions_in(message, view.requests)
        toolset = toolset_with(self._router.catalog, caller.access, _DECIDING_TOOL) or caller.toolset
        arguments = {"call_id": view.row.id, "decisions": decisions}
        await self._call(caller, toolset, _DECIDING_TOOL, arguments, message.id, view.row.id)
        await self._tasks.add_message(view, message)

    async def _call(
        self,
        caller: A2ACaller,
        toolset: str,
        tool: str,
        arguments: Mapping[str, Any],
        message_id: str,
        place: str,
    ) -> ToolResult:
        """Calls a tool. A repeat of the message in the same context gets the same answer, marked as ``replayed``.

        Raises:
            A2AError: the call failed.
            ServiceUnavailableError: the database cannot be read.
        """
        session = await self._sessions.find_or_open(
            caller.access,
            toolset,
            caller.client,
            key=f"{place}\n{message_id}",
            label=make_label(caller.client),
            streams=False,
        )
        bind_session(session.label)
        call = ToolCall(message_id, tool, dict(arguments), None, caller.size, traceparent=caller.traceparent)
        ready = await prepared(self._router.catalog, session, call)
        call = ready.request if isinstance(ready, PreparedCall) else ready
        conflict = conflict_of(session, call, now := time.monotonic())
        if conflict is not None:  # requests that wait for the other message are not affected
            self._router.refuse(session, call, conflict, now)
            raise error_of_call(conflict.to_tool_error())
        port = AwaitedResultPort()
        earlier, _ = self._router.connect(session, port)
        if isinstance(earlier, AwaitedResultPort):
            port.pass_on_to(earlier)
        submitted = self._router.submit(session, ready, port)
        if isinstance(submitted, ToolResult):
            port.settle(submitted)
        try:
            result = await port.answer
        finally:
            self._router.disconnect(session, port)
        if result.error is None:
            if port.shared:
                return replace(result, metadata=replace(result.metadata, replayed=True))
            return result
        raise error_of_call(result.error)


def _read_0_3(params: Mapping[str, Any]) -> SendRequest:
    return read_send(send_params_of_0_3(params))
