"""MCP over a channel of lines: messages in, answers and notifications out; the daemon does the work.

Each request is a task of its own. What the editor agreed on with ``initialize`` holds for the channel; a request of a
stateless revision says all about itself.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import msgspec

from ...protocol.error_codes import CallError
from ...protocol.mcp import json_rpc
from ...protocol.mcp.json_rpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    JsonRpcId,
    MalformedMessage,
    Message,
    MessageProblem,
    RpcNotification,
    RpcReply,
    RpcRequest,
)
from ...protocol.mcp.mcp_call import parse_call, request_error
from ...protocol.mcp.mcp_result import call_result, discover_result, empty_result, initialize_result, list_result
from ...protocol.mcp.mcp_revision import DEFAULT_REVISION, McpRevision, negotiated
from ...protocol.mcp.request_envelope import RequestEnvelope, client_of, stdio_envelope
from ...protocol.mcp.tool_entry import is_trivially_valid, official_types, schema_problem, tool_entry
from ...protocol.tool_call import ToolInfo
from .bridge_subscriptions import BridgeSubscriptions
from .daemon_link import DaemonLink
from .daemon_starter import DaemonStarter
from .line_channel import LineChannel, LineTooLong
from .progress_reports import reporting
from .workspace_roots import first_directory

LAST_ANSWERS_S: Final = 1.0
"""What was asked before the editor closed its end is answered for so long: editors wait about twice as long for the
process to end."""
ROOTS_S: Final = 2.0
"""How long calls wait for the editor to say which directories it has open."""
MAX_BATCH: Final = 32
"""Messages of one line, as of one POST."""

_ROOTS: Final = "toold-roots"
"""The id of our one request."""

_log = logging.getLogger(__name__)

_Method = Callable[[RpcRequest, RequestEnvelope], Awaitable[Any]]
"""Its result, or the problem with the request."""


class StdioBridge:
    """One editor's channel. ``serve`` returns when the editor closes it.

    Relative paths in arguments start in ``directory``, unless the editor tells of one that it has open.
    """

    def __init__(
        self, lines: LineChannel, starter: DaemonStarter, *, toolset: str | None, directory: Path | None
    ) -> None:
        self._lines = lines
        self._upstream = DaemonLink(starter, toolset, directory, self._tools_changed)
        self._subscriptions = BridgeSubscriptions(lines)
        # What ``initialize`` agreed on, and whether the editor takes notifications already.
        self._spoken = DEFAULT_REVISION
        self._ready = False
        # Whether the editor tells of its directories, and whether it has, once it was asked.
        self._has_roots = False
        self._told_roots: asyncio.Future[None] | None = None
        # Requests under way, by the editor's ids.
        self._running: dict[JsonRpcId, asyncio.Task[None]] = {}
        # Calls whose answers nobody needs once the editor has gone, and the tools that only read, by the last listing.
        self._reading: set[asyncio.Task[Any]] = set()
        self._read_only: frozenset[str] = frozenset()
        # Everything that goes on.
        self._work: set[asyncio.Task[None]] = set()
        handshake: dict[str, _Method] = {
            "initialize": self._initialize,
            "ping": _acknowledge,
            # Nothing is logged to clients, and some ask for a level whether that is offered or not.
            "logging/setLevel": _acknowledge,
            "tools/list": self._list,
            "tools/call": self._call,
        }
        stateless: dict[str, _Method] = {
            "server/discover": self._discover,
            "tools/list": self._list,
            "tools/call": self._call,
            "subscriptions/listen": self._subscriptions.listen,
        }
        self._methods: Mapping[bool, Mapping[str, _Method]] = {False: handshake, True: stateless}

    def __repr__(self) -> str:
        return f"<StdioBridge {self._spoken.name} running={len(self._running)}>"

    async def serve(self) -> None:
        """Answer until the channel ends, and for a moment longer."""
        while (line := await self._lines.read()) is not None:
            self._take(line)
        self._subscriptions.close()
        if self._work:
            await asyncio.wait(self._work, timeout=LAST_ANSWERS_S)

    async def keep_up(self) -> None:
        """To be called now and then: what runs is gone on with where the daemon has ended."""
        await self._upstream.keep_up()

    async def close(self) -> None:
        """The editor has gone: what only reads is cancelled; what may write goes on in the daemon, to its end."""
        for task in self._reading:
            task.cancel()
        if self._reading:
            await asyncio.wait(self._reading)
        await self._upstream.close()
        for work in self._work:
            work.cancel()
        if self._work:
            await asyncio.wait(self._work)

    def _tools_changed(self) -> None:
        if self._ready:
            self._start(self._tell("notifications/tools/list_changed"))
        self._start(self._subscriptions.tools_changed())

    # --- messages ----------------------------------------------------------------------------------------------------

    def _take(self, line: bytes | LineTooLong) -> None:
        if isinstance(line, LineTooLong):
            problem = MessageProblem(INVALID_REQUEST, "The message is longer than the daemon takes.")
            self._start(self._lines.write(json_rpc.failure(None, problem)))
            return
        message = json_rpc.decode(line)
        if isinstance(message, list):
            self._start(self._batch(message))
        elif isinstance(message, RpcRequest):
            task = self._start(self._request(message))
            self._running[message.id] = task
            task.add_done_callback(lambda done: self._forget(message.id, done))
        else:
            self._start(self._rest(message))

    async def _request(self, request: RpcRequest) -> None:
        await self._lines.write(await self._answer(request))

    async def _batch(self, batch: list[Message]) -> None:
        """The answers to all requests of a batch, which run side by side, as one array."""
        if not self._spoken.batches or not 0 < len(batch) <= MAX_BATCH:
            message = (
                f"Send one message per line; only {DEFAULT_REVISION.name} has batches, of up to {MAX_BATCH} messages."
            )
            await self._lines.write(json_rpc.failure(None, MessageProblem(INVALID_REQUEST, message)))
            return
        answers = await asyncio.gather(*(self._answer(one) for one in batch if isinstance(one, RpcRequest)))
        for other in batch:
            if isinstance(other, MalformedMessage):
                answers.append(json_rpc.failure(other.id, other.problem))
            elif not isinstance(other, RpcRequest):
                await self._rest(other)
        if answers:
            await self._lines.write(b"[" + b",".join(answers) + b"]")

    async def _rest(self, message: Message) -> None:
        match message:
            case MalformedMessage():
                await self._lines.write(json_rpc.failure(message.id, message.problem))
            case RpcNotification("notifications/initialized"):
                self._ready = True
                await self._ask_for_roots()
            case RpcNotification("notifications/roots/list_changed"):
                await self._ask_for_roots()
            case RpcNotification("notifications/cancelled", params):
                request_id = params.get("requestId")
                running = self._running.get(request_id) if isinstance(request_id, str | int) else None
                if running is not None:  # and nothing is answered then, as the specification has it
                    running.cancel()
            case RpcReply():
                self._hear_of_roots(message)

    async def _answer(self, request: RpcRequest) -> bytes:
        envelope = (
            RequestEnvelope(DEFAULT_REVISION)
            if request.method == "initialize"
            else stdio_envelope(request, self._spoken)
        )
        if isinstance(envelope, MessageProblem):
            return json_rpc.failure(request.id, envelope)
        if envelope.client.name:
            self._upstream.editor = envelope.client
        envelope = msgspec.structs.replace(envelope, revision=_without_tasks(envelope.revision))
        method = self._methods[envelope.revision.stateless].get(request.method)
        if method is None:
            message = f"There is no method {request.method[:80]!r} here in {envelope.revision.name}."
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
        self._upstream.editor = client_of(params.get("clientInfo"))
        capabilities = params.get("capabilities")
        self._has_roots = isinstance(capabilities, dict) and isinstance(capabilities.get("roots"), dict)
        revision = _without_tasks(negotiated(params.get("protocolVersion")))
        told = initialize_result(revision, await self._upstream.instructions(), list_changed=True)
        self._spoken = revision
        return told

    async def _discover(self, _: RpcRequest, envelope: RequestEnvelope) -> dict[str, Any]:
        return discover_result(envelope.revision, await self._upstream.instructions())

    async def _list(self, _: RpcRequest, envelope: RequestEnvelope) -> dict[str, Any]:
        infos = await self._upstream.list_tools()
        self._read_only = frozenset(info.name for info in infos if info.annotations.read_only_hint)
        return list_result(await _shown(infos, envelope.revision), None, envelope.revision)

    async def _call(self, request: RpcRequest, envelope: RequestEnvelope) -> Any:
        call = parse_call(request, uuid4().hex, 0)
        if isinstance(call, MessageProblem):
            return call
        await self._roots_known()
        async with reporting(self._lines, envelope.progress_token) as on_progress:
            calling = asyncio.ensure_future(self._upstream.call(call, on_progress))
            if call.name in self._read_only:
                self._reading.add(calling)
                calling.add_done_callback(self._reading.discard)
            result = await calling
        return request_error(result.error) or call_result(result, envelope.revision)

    # --- the editor's directories
    # ----------------------------------------------------------------------------------------

    async def _ask_for_roots(self) -> None:
        if self._has_roots and (self._told_roots is None or self._told_roots.done()):
            self._told_roots = asyncio.get_running_loop().create_future()
            await self._lines.write(json_rpc.request(_ROOTS, "roots/list"))

    def _hear_of_roots(self, reply: RpcReply) -> None:
        if reply.id == _ROOTS and self._told_roots is not None and not self._told_roots.done():
            self._upstream.directory = first_directory(reply.result) or self._upstream.directory
            self._told_roots.set_result(None)

    async def _roots_known(self) -> None:
        if self._told_roots is not None and not self._told_roots.done():
            await asyncio.wait({self._told_roots}, timeout=ROOTS_S)

    # --- tasks -------------------------------------------------------------------------------------------------------

    async def _tell(self, method: str) -> None:
        await self._lines.write(json_rpc.notification(method, {}))

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(_quietly(work))
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return task

    def _forget(self, request_id: JsonRpcId, task: asyncio.Task[None]) -> None:
        if self._running.get(request_id) is task:  # an editor may have used an id twice
            del self._running[request_id]


async def _quietly(work: Coroutine[Any, Any, None]) -> None:
    with suppress(OSError):  # the editor takes no more, which ends the whole
        await work


async def _acknowledge(_: RpcRequest, envelope: RequestEnvelope) -> dict[str, Any]:
    return empty_result(envelope.revision)


def _without_tasks(revision: McpRevision) -> McpRevision:
    """The revision as it is spoken here: an editor that waits at the other end of a pipe needs nothing to come back
    to, as its calls outlive the daemon's restarts by themselves.
    """
    return replace(revision, tasks=None)


async def _shown(infos: tuple[ToolInfo, ...], revision: McpRevision) -> list[dict[str, Any]]:
    """The tools in the revision's words, without those that its types do not take. Where all are plain, the types need
    not be imported."""
    tools = [tool_entry(info, revision) for info in infos]
    types = None if all(map(is_trivially_valid, tools)) else await asyncio.to_thread(official_types)
    if types is None:
        return tools
    objections = {
        tool["name"]: None if is_trivially_valid(tool) else schema_problem(types, tool, revision) for tool in tools
    }
    for name, reason in objections.items():
        if reason is not None:
            _log.warning("%s is left out of the listing: %s", name, reason)
    return [tool for tool in tools if objections[tool["name"]] is None]
