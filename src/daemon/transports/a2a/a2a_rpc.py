"""A2A by JSON-RPC, in versions 1.0 and 0.3: one request of one caller, and its answer."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import msgspec
import structlog
from starlette.types import Receive, Send

from ....protocol import json_rpc
from ....protocol.a2a.a2a_error import (
    UNKNOWN_METHOD,
    A2AError,
    error_of_call,
)
from ....protocol.a2a.a2a_request import read_task
from ....protocol.a2a.a2a_version import (
    A2AVersion,
    methods_of,
    operation_of,
    to_0_3,
    version_of,
)
from ....protocol.a2a.task_page import read_list
from ....protocol.error_codes import CallError
from ....protocol.json_pieces import LONG_BYTES
from ....protocol.json_rpc import JsonRpcId, MalformedMessage, Message, MessageProblem, RpcRequest
from ...observability.logging_setup import shown_content
from ...off_loop import off_loop
from ..http_io import send_json
from .a2a_caller import A2ACaller
from .a2a_operations import A2AOperations, read_message
from .agent_catalogue import AgentCatalogue
from .push_operations import PushOperations
from .task_stream import TaskEvents, answer_unless_disconnected, send_event, send_events
from .task_view import encoded_bytes

_log = structlog.get_logger("toold.a2a")

_NO_REQUEST: Final = MessageProblem(
    json_rpc.INVALID_REQUEST, "Send one request with an id per POST; batches are not supported."
)

_STREAMS: Final = frozenset({"SendStreamingMessage", "SubscribeToTask"})
"""The methods whose errors in 0.3 are sent as the only event of a stream, because clients read no other answer to
them.
"""


class A2ARpc:
    """Serves the requests of all callers."""

    def __init__(self, operations: A2AOperations, pushes: PushOperations, agents: AgentCatalogue) -> None:
        self._operations = operations
        self._pushes = pushes
        self._agents = agents

    async def serve(
        self,
        caller: A2ACaller,
        message: Message | list[Message],
        requested: str,
        last_event: int | None,
        receive: Receive,
        send: Send,
    ) -> None:
        """Answers one message. ``requested``: the version that the message names; ``last_event``: where its stream
        begins."""
        if isinstance(message, MalformedMessage):
            await send_json(send, json_rpc.failure(message.id, message.problem))
            return
        if not isinstance(message, RpcRequest):
            await send_json(send, json_rpc.failure(None, _NO_REQUEST))
            return
        version: A2AVersion | None = None
        try:
            version = version_of(requested)
            events = await self._events(caller, message, version, last_event)
            if events is not None:
                await send_events(events, partial(_event, message.id, version), receive, send)
                return
            answer = await answer_unless_disconnected(self._encoded(caller, message, version), receive)
            if answer is not None:
                await send_json(send, answer)
        except (A2AError, CallError) as error:
            failure = json_rpc.failure(message.id, _problem(error))
            if version == "0.3" and operation_of(message.method, version) in _STREAMS:
                await send_event(failure, send)
            else:
                await send_json(send, failure)

    async def _events(
        self, caller: A2ACaller, request: RpcRequest, version: A2AVersion, last_event: int | None
    ) -> TaskEvents | None:
        """The events that answer a request; None if it is answered once."""
        match operation_of(request.method, version):
            case "SendStreamingMessage":
                return await self._operations.stream(
                    caller, await read_message(caller, request.params, version), version
                )
            case "SubscribeToTask":
                return await self._operations.subscribe(caller, read_task(request.params), last_event, version)
        return None

    async def _encoded(self, caller: A2ACaller, request: RpcRequest, version: A2AVersion) -> bytes:
        """The encoded answer; its result may be null."""
        return json_rpc.answer(request.id, await self._answer(caller, request, version))

    async def _answer(self, caller: A2ACaller, request: RpcRequest, version: A2AVersion) -> Any:
        old, params = version == "0.3", request.params
        match operation_of(request.method, version):
            case "SendMessage":
                answer = await self._operations.send(caller, await read_message(caller, params, version), version)
                return await _in_0_3(answer) if old else answer
            case "GetTask":
                task = await self._operations.get(caller, read_task(params))
            case "CancelTask":
                task = await self._operations.cancel(caller, read_task(params))
            case "ListTasks":
                return await self._operations.list_tasks(caller, read_list(params))
            case None:
                raise unknown_method(request.method, version)
            case "GetExtendedAgentCard":
                return self._agents.extended_card(caller.agent, version, caller.origin)
            case operation:
                return await self._pushes.run(caller, operation.partition("Task")[0], params, version)
        return await _in_0_3({"task": task}) if old else task


def unknown_method(method: str, version: A2AVersion) -> A2AError:
    """The error for a method that the version does not have, or that this server does not offer."""
    other: A2AVersion = "0.3" if version == "1.0" else "1.0"
    if operation_of(method, other) is not None:
        hint = f"it is a method of version {other}: send the header A2A-Version: {other}"
    else:
        hint = f"there are {', '.join(methods_of(version))}"
    return A2AError(UNKNOWN_METHOD, f"A2A {version} has no method {method[:100]!r} here; {hint}.")


async def _in_0_3(answer: Mapping[str, Any]) -> msgspec.Raw:
    """The task or message in the format of 0.3, encoded; a long one is encoded outside of the event loop."""
    (content,) = answer.values()
    return await off_loop(_encode_0_3, answer) if encoded_bytes(content) > LONG_BYTES else _encode_0_3(answer)


def _encode_0_3(answer: Mapping[str, Any]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(to_0_3(answer)))


def _event(request_id: JsonRpcId, version: A2AVersion, event: dict[str, Any]) -> bytes:
    return json_rpc.answer(request_id, to_0_3(event) if version == "0.3" else event)


def _problem(error: A2AError | CallError) -> MessageProblem:
    known = error_of_call(error) if isinstance(error, CallError) else error
    _log.info("request refused", code=known.kind.code, reason=shown_content(known.message))
    details = known.details
    return MessageProblem(known.kind.code, known.message, details) if details else _plain(known)


def _plain(error: A2AError) -> MessageProblem:
    return MessageProblem(error.kind.code, error.message)
