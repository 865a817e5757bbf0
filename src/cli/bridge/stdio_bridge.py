"""MCP over a line channel: forwards an editor's requests to the daemon, and the daemon's answers and notifications to
the editor.

Each request runs as a separate task. The result of ``initialize`` applies to the whole channel; requests of stateless
revisions are self-contained.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import msgspec

from ...client import OnProgress, OnQuestion
from ...protocol import json_rpc
from ...protocol.error_codes import CallError
from ...protocol.json_rpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    MAX_BATCH,
    METHOD_NOT_FOUND,
    JsonRpcId,
    MalformedMessage,
    Message,
    MessageProblem,
    RpcNotification,
    RpcReply,
    RpcRequest,
)
from ...protocol.mcp.catalog_result import ASKING_METHODS, CATALOG_METHODS, FOLLOWING_METHODS, catalog_answer
from ...protocol.mcp.input_rounds import read_round
from ...protocol.mcp.mcp_call import parse_call, parse_method_call, request_error
from ...protocol.mcp.mcp_result import call_result, discover_result, empty_result, initialize_result, list_result
from ...protocol.mcp.mcp_revision import DEFAULT_REVISION, McpRevision, negotiated
from ...protocol.mcp.request_envelope import RequestEnvelope, client_of, stdio_envelope
from ...protocol.mcp.tool_entry import is_trivially_valid, official_types, schema_problem, tool_entry
from ...protocol.questions.client_question import kinds_declared
from ...protocol.tool_call import ToolCall, ToolInfo, ToolResult
from .bridge_questions import EditorRequests, EditorRounds, RoundCall
from .bridge_resources import BridgeResources
from .daemon_link import DaemonLink
from .daemon_starter import DaemonStarter
from .editor_notifications import BridgeSubscriptions, progress_reports
from .line_channel import LineChannel, LineTooLong

LAST_ANSWERS_S: Final = 1.0
"""The time for outstanding answers after the editor has closed its end. Editors wait about twice as long for the
process to exit."""
ROOTS_S: Final = 2.0
"""The time that calls wait for the editor to report its open directories."""

_ROOTS_REQUEST_ID: Final = "toold-roots"
"""The id of the only request that the bridge sends."""

_log = logging.getLogger(__name__)

_Method = Callable[[RpcRequest, RequestEnvelope], Awaitable[Any]]
"""Returns the result, or the problem with the request."""


class StdioBridge:
    """Serves one editor's channel until the editor closes it.

    Relative paths in arguments are resolved in the editor's open directory, otherwise in ``directory``.
    """

    def __init__(
        self, lines: LineChannel, starter: DaemonStarter, *, toolset: str | None, directory: Path | None
    ) -> None:
        self._lines = lines
        self._link = DaemonLink(starter, toolset, directory, self._tools_changed, self._notified)
        self._resources = BridgeResources(self._link)
        self._subscriptions = BridgeSubscriptions(lines, self._resources.follow)
        self._requests = EditorRequests(lines)
        self._rounds = EditorRounds()
        # The kinds of questions that the editor declared in ``initialize``.
        self._answers: tuple[str, ...] = ()
        # The revision negotiated by ``initialize``, and whether the editor accepts notifications yet.
        self._revision = DEFAULT_REVISION
        self._ready = False
        # Whether the editor can report its directories, and its answer; None before the request.
        self._supports_roots = False
        self._roots_answer: asyncio.Future[None] | None = None
        # Running requests, by the editor's ids.
        self._running: dict[JsonRpcId, asyncio.Task[None]] = {}
        # Calls of read-only tools, which are cancelled when the editor exits, and the names of these tools in the last
        # listing.
        self._read_only_calls: set[asyncio.Task[Any]] = set()
        self._read_only: frozenset[str] = frozenset()
        # The names of the tools with an output schema in the last listing. Only editors that have listed tools check
        # results.
        self._typed: frozenset[str] = frozenset()
        self._tasks: set[asyncio.Task[None]] = set()
        handshake: dict[str, _Method] = {
            "initialize": self._initialize,
            "ping": _acknowledge,
            "tools/list": self._list,
            "tools/call": self._call,
            **dict.fromkeys(CATALOG_METHODS, self._resources.answer),
            **dict.fromkeys(FOLLOWING_METHODS, self._resources.change),
        }
        stateless: dict[str, _Method] = {
            "server/discover": self._discover,
            "tools/list": self._list,
            "tools/call": self._call,
            **dict.fromkeys(CATALOG_METHODS, self._resources.answer),
            "subscriptions/listen": self._subscriptions.listen,
        }
        for methods in (handshake, stateless):
            methods.update(dict.fromkeys(ASKING_METHODS, self._call_method))
        self._methods: Mapping[bool, Mapping[str, _Method]] = {False: handshake, True: stateless}

    def __repr__(self) -> str:
        return f"<StdioBridge {self._revision.name} running={len(self._running)}>"

    async def serve(self) -> None:
        """Answer until the channel ends, then wait briefly for outstanding answers."""
        while (line := await self._lines.read()) is not None:
            self._accept(line)
        self._subscriptions.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=LAST_ANSWERS_S)

    async def restore_connection(self) -> None:
        """Reconnect if the daemon has ended while calls run. Called periodically."""
        await self._link.restore_connection()

    async def close(self) -> None:
        """Close after the editor has exited: cancel calls of read-only tools; other calls finish in the daemon."""
        self._rounds.close()
        for task in self._read_only_calls:
            task.cancel()
        if self._read_only_calls:
            await asyncio.wait(self._read_only_calls)
        await self._link.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _tools_changed(self) -> None:
        if self._ready:
            self._start(self._notify("notifications/tools/list_changed", {}))
        self._start(self._subscriptions.changed("notifications/tools/list_changed", {}))

    def _notified(self, method: str, params: dict[str, Any]) -> None:
        if self._ready:
            self._start(self._notify(method, params))
        self._start(self._subscriptions.changed(method, params))

    # --- messages ----------------------------------------------------------------------------------------------------

    def _accept(self, line: bytes | LineTooLong) -> None:
        if isinstance(line, LineTooLong):
            problem = MessageProblem(INVALID_REQUEST, "The message exceeds the daemon's size limit.")
            self._start(self._lines.write(json_rpc.failure(None, problem)))
            return
        message = json_rpc.decode(line)
        if isinstance(message, list):
            self._start(self._batch(message))
        elif isinstance(message, RpcRequest):
            task = self._start(self._request(message))
            self._running[message.id] = task
            task.add_done_callback(lambda done: self._remove(message.id, done))
        else:
            self._start(self._handle_other(message))

    async def _request(self, request: RpcRequest) -> None:
        await self._lines.write(await self._answer(request))

    async def _batch(self, batch: list[Message]) -> None:
        """Answer all requests of a batch, which run concurrently, with one array."""
        if not self._revision.batches or not 0 < len(batch) <= MAX_BATCH:
            message = (
                f"Send one message per line; only {DEFAULT_REVISION.name} has batches, of up to {MAX_BATCH} messages."
            )
            await self._lines.write(json_rpc.failure(None, MessageProblem(INVALID_REQUEST, message)))
            return
        answers = await asyncio.gather(*(self._answer(request) for request in batch if isinstance(request, RpcRequest)))
        for other in batch:
            if isinstance(other, MalformedMessage):
                answers.append(json_rpc.failure(other.id, other.problem))
            elif not isinstance(other, RpcRequest):
                await self._handle_other(other)
        if answers:
            await self._lines.write(b"[" + b",".join(answers) + b"]")

    async def _handle_other(self, message: Message) -> None:
        match message:
            case MalformedMessage():
                await self._lines.write(json_rpc.failure(message.id, message.problem))
            case RpcNotification("notifications/initialized"):
                self._ready = True
                await self._request_roots()
            case RpcNotification("notifications/roots/list_changed"):
                await self._request_roots()
            case RpcNotification("notifications/cancelled", params):
                request_id = params.get("requestId")
                running = self._running.get(request_id) if isinstance(request_id, str | int) else None
                if running is not None:  # the specification forbids an answer to a cancelled request
                    running.cancel()
            case RpcReply():
                self._handle_roots(message)
                self._requests.take(message)

    async def _answer(self, request: RpcRequest) -> bytes:
        envelope = (
            RequestEnvelope(DEFAULT_REVISION)
            if request.method == "initialize"
            else stdio_envelope(request, self._revision)
        )
        if isinstance(envelope, MessageProblem):
            return json_rpc.failure(request.id, envelope)
        if envelope.client.name:
            self._link.editor = envelope.client
        envelope = msgspec.structs.replace(envelope, revision=_without_tasks(envelope.revision))
        method = self._methods[envelope.revision.stateless].get(request.method)
        if method is None:
            message = f"Method {request.method[:80]!r} is not offered by toold."
            return json_rpc.failure(request.id, MessageProblem(METHOD_NOT_FOUND, message))
        try:
            result = await method(request, envelope)
        except CallError as error:
            result = MessageProblem(INTERNAL_ERROR, error.message, error.to_tool_error())
        if isinstance(result, MessageProblem):
            return json_rpc.failure(request.id, result)
        return json_rpc.answer(request.id, result)

    # --- methods -----------------------------------------------------------------------------------------------------

    async def _initialize(self, request: RpcRequest, _: RequestEnvelope) -> dict[str, Any]:
        params = request.params
        self._link.editor = client_of(params.get("clientInfo"))
        capabilities = params.get("capabilities")
        self._answers = kinds_declared(capabilities)
        self._supports_roots = isinstance(capabilities, dict) and isinstance(capabilities.get("roots"), dict)
        revision = _without_tasks(negotiated(params.get("protocolVersion")))
        result = initialize_result(revision, await self._link.instructions())
        self._revision = revision
        return result

    async def _discover(self, _: RpcRequest, envelope: RequestEnvelope) -> dict[str, Any]:
        return discover_result(envelope.revision, await self._link.instructions())

    async def _list(self, _: RpcRequest, envelope: RequestEnvelope) -> dict[str, Any]:
        infos = await self._link.list_tools()
        self._read_only = frozenset(info.name for info in infos if info.annotations.read_only_hint)
        self._typed = frozenset(info.name for info in infos if info.output_schema is not msgspec.UNSET)
        return list_result(await _shown(infos, envelope.revision), None, envelope.revision)

    async def _call(self, request: RpcRequest, envelope: RequestEnvelope) -> Any:
        call = parse_call(request, uuid4().hex, 0, answers=self._answers_in(envelope))
        if isinstance(call, MessageProblem):
            return call
        await self._wait_for_roots()
        result = await self._asking(call, request, envelope)
        if not isinstance(result, ToolResult):
            return result
        if call.name in self._typed:
            result = msgspec.structs.replace(result, typed=True)
        return request_error(result.error, envelope.revision) or call_result(result, envelope.revision)

    async def _call_method(self, request: RpcRequest, envelope: RequestEnvelope) -> Any:
        """Calls a method about resources or prompts, during which a server may ask questions."""
        call = parse_method_call(request, uuid4().hex, 0, answers=self._answers_in(envelope))
        if isinstance(call, MessageProblem):
            return call
        result = await self._asking(call, request, envelope)
        if not isinstance(result, ToolResult):
            return result
        return catalog_answer(call.name, call.arguments, result, envelope.revision)

    def _answers_in(self, envelope: RequestEnvelope) -> tuple[str, ...]:
        return envelope.answers if envelope.revision.stateless else self._answers

    async def _asking(
        self, call: ToolCall, request: RpcRequest, envelope: RequestEnvelope
    ) -> ToolResult | dict[str, Any] | MessageProblem:
        """Makes or continues a call. Returns its result, or the questions of the next round."""
        stateless = envelope.revision.stateless
        following = read_round(request.params) if stateless else None
        if isinstance(following, MessageProblem):
            return following
        result: ToolResult | None
        if stateless and call.answers:
            waiting = (
                RoundCall() if following is None or following.state is None else self._rounds.take(following, call)
            )
            if isinstance(waiting, MessageProblem):
                return waiting
            # Only the first round reports progress: later rounds cannot use its token.
            async with progress_reports(self._lines, envelope.progress_token) as on_progress:
                waiting.task = waiting.task or self._call_task(call, on_progress, waiting.ask)
                try:
                    result = await waiting.next_round()
                except asyncio.CancelledError:
                    waiting.task.cancel()
                    raise
            if result is None:
                return self._rounds.park(call, waiting)
        else:
            async with progress_reports(self._lines, envelope.progress_token) as on_progress:
                result = await self._call_task(call, on_progress, self._requests.ask)
        return result

    def _call_task(
        self, call: ToolCall, on_progress: OnProgress | None, on_question: OnQuestion
    ) -> asyncio.Task[ToolResult]:
        task = asyncio.ensure_future(self._link.call(call, on_progress, on_question))
        if call.name in self._read_only or call.name in ASKING_METHODS:
            self._read_only_calls.add(task)
            task.add_done_callback(self._read_only_calls.discard)
        return task

    # --- the editor's directories ------------------------------------------------------------------------------------

    async def _request_roots(self) -> None:
        if self._supports_roots and (self._roots_answer is None or self._roots_answer.done()):
            self._roots_answer = asyncio.get_running_loop().create_future()
            await self._lines.write(json_rpc.request(_ROOTS_REQUEST_ID, "roots/list"))

    def _handle_roots(self, reply: RpcReply) -> None:
        if reply.id == _ROOTS_REQUEST_ID and self._roots_answer is not None and not self._roots_answer.done():
            self._link.directory = first_directory(reply.result) or self._link.directory
            self._roots_answer.set_result(None)

    async def _wait_for_roots(self) -> None:
        if self._roots_answer is not None and not self._roots_answer.done():
            await asyncio.wait({self._roots_answer}, timeout=ROOTS_S)

    # --- tasks -------------------------------------------------------------------------------------------------------

    async def _notify(self, method: str, params: dict[str, Any]) -> None:
        await self._lines.write(json_rpc.notification(method, params))

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(_ignoring_closed_channel(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _remove(self, request_id: JsonRpcId, task: asyncio.Task[None]) -> None:
        if self._running.get(request_id) is task:  # an editor may reuse an id
            del self._running[request_id]


async def _ignoring_closed_channel(work: Coroutine[Any, Any, None]) -> None:
    with suppress(OSError):  # the editor has closed its end, which also ends serve()
        await work


async def _acknowledge(_: RpcRequest, envelope: RequestEnvelope) -> dict[str, Any]:
    return empty_result(envelope.revision)


def _without_tasks(revision: McpRevision) -> McpRevision:
    """The revision without its tasks. Editors on a pipe do not need them: their calls survive daemon restarts."""
    return replace(revision, tasks=None)


async def _shown(infos: tuple[ToolInfo, ...], revision: McpRevision) -> list[dict[str, Any]]:
    """The tool entries of the revision, without tools that its types reject. The types are imported only for tools that
    are not trivially valid."""
    tools = [tool_entry(info, revision) for info in infos]
    types = None if all(map(is_trivially_valid, tools)) else await asyncio.to_thread(official_types)
    if types is None:
        return tools
    reasons = {
        tool["name"]: None if is_trivially_valid(tool) else schema_problem(types, tool, revision) for tool in tools
    }
    for name, reason in reasons.items():
        if reason is not None:
            _log.warning("%s is omitted from the listing: %s", name, reason)
    return [tool for tool in tools if reasons[tool["name"]] is None]


def first_directory(result: Mapping[str, Any] | None) -> Path | None:
    """The first root in an answer to ``roots/list`` that is a local directory; None without one or on an error."""
    roots = result.get("roots") if result is not None else None
    for root in roots if isinstance(roots, list) else []:
        directory = _directory(root.get("uri")) if isinstance(root, dict) else None
        if directory is not None:
            return directory
    return None


def _directory(uri: object) -> Path | None:
    if not isinstance(uri, str):
        return None
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    path = unquote(parts.path)
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"} or not path.startswith("/") or "\0" in path:
        return None
    return Path(path)
