"""The MCP methods of each revision, except ``tools/call``."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from ....protocol import json_rpc
from ....protocol.error_codes import CallError, InvalidArgumentsError, NotFoundError, OverCapacityError
from ....protocol.json_rpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_CLIENT_CAPABILITY,
    MessageProblem,
    RpcRequest,
)
from ....protocol.mcp.catalog_result import FOLLOWING_METHODS, catalog_answer, catalog_result
from ....protocol.mcp.mcp_result import discover_result, empty_result, initialize_result, list_result
from ....protocol.mcp.mcp_revision import negotiated
from ....protocol.mcp.request_envelope import TASKS_EXTENSION
from ....protocol.tool_call import Metadata, Timings, ToolResult
from ....resource_catalog import CALLS, LISTS, CatalogMethods, ResourceFollowers
from ....tools import ToolsetView
from ...dispatch import RETRY_AFTER_MS, UNCOUNTED_BYTES, HeldBytes, Router, Session
from . import mcp_tasks
from .client_streams import ClientStreams
from .mcp_caller import McpCaller, read_label
from .mcp_calls import McpCalls
from .mcp_exchange import ALIVE, question_event
from .mcp_tasks import CALL, McpTasks
from .tool_listing import ToolListing
from .tool_subscriptions import ToolSubscriptions

_CANCEL_TIMEOUT_S: Final = 3.0
"""How long ``tasks/cancel`` waits for the call to end, in revisions where the answer contains the task."""

Method = Callable[[RpcRequest, McpCaller], Awaitable[Any]]
"""Returns the result, or a problem with the request."""


class McpMethods:
    """Answers requests by method and revision."""

    def __init__(
        self,
        router: Router,
        calls: McpCalls,
        tasks: McpTasks,
        instructions: Callable[[ToolsetView], str],
        catalog: CatalogMethods,
        followers: ResourceFollowers,
    ) -> None:
        self._router = router
        self._calls = calls
        self._tasks = tasks
        self._catalog = catalog
        self._followers = followers
        self._instructions = instructions
        self._listing = ToolListing()
        self.subscriptions = ToolSubscriptions(router, followers)
        self.streams = ClientStreams(router, followers)
        handshake: dict[str, Method] = {
            "initialize": self._initialize,
            "ping": _acknowledge,
            **dict.fromkeys(FOLLOWING_METHODS, self._change_followed),
            "tools/list": self._list,
            **dict.fromkeys(LISTS, self._list_catalog),
        }
        self._by_kind: Mapping[tuple[bool, str | None], Mapping[str, Method]] = {
            (False, None): handshake,
            (False, "requested"): {
                **handshake,
                "tasks/get": self._get_task,
                "tasks/result": self._task_result,
                "tasks/cancel": self._cancel_task,
            },
            (True, "offered"): {
                "server/discover": self._discover,
                "tools/list": self._list,
                **dict.fromkeys(LISTS, self._list_catalog),
                "tasks/get": _declared(self._get_task),
                "tasks/update": _declared(self._update_task),
                "tasks/cancel": _declared(self._cancel_task),
            },
        }

    async def answer(self, request: RpcRequest, caller: McpCaller) -> bytes | MessageProblem | None:
        """Answers a request; None if the client disconnected."""
        revision = caller.envelope.revision
        if request.method == "subscriptions/listen" and revision.stateless:
            return await self.subscriptions.listen(request, caller)
        if request.method in CALLS:
            return await self._call_method(request, caller)
        method = self._by_kind[revision.stateless, revision.tasks].get(request.method)
        if method is None:
            message = f"The method {request.method[:80]!r} is not available in {revision.name}."
            return MessageProblem(METHOD_NOT_FOUND, message)
        try:
            result = await method(request, caller)
        except (InvalidArgumentsError, NotFoundError) as error:
            return MessageProblem(INVALID_PARAMS, error.message, error.to_tool_error())
        except CallError as error:
            return MessageProblem(INTERNAL_ERROR, error.message, error.to_tool_error())
        return result if isinstance(result, MessageProblem) else json_rpc.answer(request.id, result)

    async def _initialize(self, request: RpcRequest, caller: McpCaller) -> dict[str, Any]:
        return initialize_result(negotiated(request.params.get("protocolVersion")), self._instructions_for(caller))

    async def _discover(self, _: RpcRequest, caller: McpCaller) -> dict[str, Any]:
        return discover_result(caller.envelope.revision, self._instructions_for(caller))

    async def _list(self, request: RpcRequest, caller: McpCaller) -> dict[str, Any] | MessageProblem:
        revision = caller.envelope.revision
        self._router.on_listing()
        tools = self._router.catalog.view(caller.toolset)
        page = await self._listing.page(tools, revision, request.params.get("cursor"))
        return page if isinstance(page, MessageProblem) else list_result(*page, revision)

    # --- resources and prompts ---------------------------------------------------------------------------------------

    async def _call_method(self, request: RpcRequest, caller: McpCaller) -> bytes | MessageProblem | None:
        try:
            tool = self._catalog.tool_for(request.method, request.params, self._router.catalog.view(caller.toolset))
        except CallError as error:
            refused = ToolResult(Metadata(0.0, Timings()), error=error.to_tool_error())
            problem = catalog_answer(request.method, request.params, refused, caller.envelope.revision)
            return problem if isinstance(problem, MessageProblem) else None
        return await self._calls.run_method(request, caller, tool)

    async def _list_catalog(self, request: RpcRequest, caller: McpCaller) -> dict[str, Any]:
        view, files = self._router.catalog.view(caller.toolset), self._router.files
        result = await self._catalog.list(request.method, request.params, view, caller.principal, files)
        return catalog_result(request.method, result, caller.envelope.revision)

    async def _change_followed(self, request: RpcRequest, caller: McpCaller) -> dict[str, Any]:
        if not caller.labelled and request.method == "logging/setLevel":
            return empty_result(caller.envelope.revision)  # without an error: some clients set a level but never listen
        if not caller.labelled:
            raise InvalidArgumentsError("Send the Mcp-Session-Id of initialize, by which notifications find you.")
        label = read_label(caller.label)
        self._router.node_tokens.require_mark_here("" if label is None else label.node)
        follower = self.streams.follower(caller.access, caller.toolset, caller.label)
        self._followers.change(follower, request.method, request.params)
        return empty_result(caller.envelope.revision)

    # --- tasks -------------------------------------------------------------------------------------------------------

    async def _get_task(self, request: RpcRequest, caller: McpCaller) -> dict[str, Any] | MessageProblem:
        known_task = await self._tasks.lookup(request.params.get("taskId"), caller.principal)
        if known_task is None:
            return _NO_TASK
        task, session = known_task
        if task.result is not None:
            self._count(session, caller)
        return mcp_tasks.get_task_result(task, caller.envelope.revision)

    def _count(self, session: Session, caller: McpCaller) -> None:
        """Counts a task's result as unread until it is sent.

        Raises:
            OverCapacityError: the unread answers have reached a limit.
        """
        size, unread = self._router.result_bytes(session, CALL), self._router.unread
        if size <= UNCOUNTED_BYTES:
            return
        exceeded = unread.exceeded(session, size)
        if exceeded is not None:
            raise OverCapacityError(
                f"With this result, unread answers would exceed the limit of {exceeded}; read the others first.",
                retry_after_ms=RETRY_AFTER_MS,
            )
        unread.add(session, size)
        caller.unsent.append(_UnsentResult(unread, session, size))

    async def _task_result(self, request: RpcRequest, caller: McpCaller) -> Any:
        known_task = await self._tasks.lookup(request.params.get("taskId"), caller.principal)
        asked: set[str] = set()
        while known_task is not None:
            task, session = known_task
            if task.result is not None:
                self._count(session, caller)
                return mcp_tasks.task_result(task.id, task.result, caller.envelope.revision)
            if caller.stream is not None:
                for entry in task.questions:
                    if entry.token not in asked:
                        asked.add(entry.token)
                        await caller.stream.write(question_event(entry))
            await self._tasks.wait_ended(session, self._router.limits.progress_interval_s)
            known_task = await self._tasks.lookup(task.id, caller.principal)
            if caller.stream is not None and known_task is not None and known_task[0].working:
                await caller.stream.write(ALIVE)
        return _NO_TASK

    async def _update_task(self, request: RpcRequest, caller: McpCaller) -> dict[str, Any] | MessageProblem:
        responses = request.params.get("inputResponses", {})
        if not isinstance(responses, dict):
            return MessageProblem(INVALID_PARAMS, "params.inputResponses must be an object.")
        known_task = await self._tasks.lookup(request.params.get("taskId"), caller.principal)
        if known_task is None:
            return _NO_TASK
        # Responses to other questions are ignored, as the extension requires.
        for entry in known_task[0].questions:
            if entry.id in responses:
                self._router.questions.answer(entry, responses[entry.id])
        return empty_result(caller.envelope.revision)

    async def _cancel_task(self, request: RpcRequest, caller: McpCaller) -> dict[str, Any] | MessageProblem:
        revision = caller.envelope.revision
        known_task = await self._tasks.lookup(request.params.get("taskId"), caller.principal)
        if known_task is None:
            return _NO_TASK
        task, session = known_task
        if revision.tasks == "offered":
            self._tasks.cancel(session)
            return empty_result(revision)
        if not task.working:
            return MessageProblem(INVALID_PARAMS, f"The task has already ended; its status is {task.status(revision)}.")
        self._tasks.cancel(session)
        await self._tasks.wait_ended(session, _CANCEL_TIMEOUT_S)
        known_task = await self._tasks.lookup(task.id, caller.principal)
        return _NO_TASK if known_task is None else mcp_tasks.get_task_result(known_task[0], revision)

    def _instructions_for(self, caller: McpCaller) -> str:
        return self._instructions(self._router.catalog.view(caller.toolset))


class _UnsentResult:
    """A task's result that is being sent."""

    def __init__(self, unread: HeldBytes, session: Session, size: int) -> None:
        self._unread = unread
        self._session = session
        self._size = size

    def close(self) -> None:
        self._unread.remove(self._session, self._size)


_NO_TASK: Final = MessageProblem(INVALID_PARAMS, "params.taskId is not a task of yours with a retained result.")


async def _acknowledge(_: RpcRequest, caller: McpCaller) -> dict[str, Any]:
    return empty_result(caller.envelope.revision)


def _declared(method: Method) -> Method:
    """Restricts a method to clients that declare the tasks extension."""

    async def guarded(request: RpcRequest, caller: McpCaller) -> Any:
        if not caller.envelope.tasks:
            required: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
            message = f"{request.method} requires the client to declare the extension {TASKS_EXTENSION}."
            return MessageProblem(MISSING_CLIENT_CAPABILITY, message, required)
        return await method(request, caller)

    return guarded
