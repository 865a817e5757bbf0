"""A2A by HTTP+JSON, version 1.0: one request of one caller, and its answer."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import structlog
from starlette.types import Receive, Send

from ....protocol.a2a.a2a_error import PARSE, VERSION, A2AError, error_of_call, invalid_field
from ....protocol.a2a.a2a_request import read_task
from ....protocol.a2a.a2a_route import A2ARoute
from ....protocol.a2a.a2a_version import version_of
from ....protocol.a2a.task_page import read_list
from ....protocol.error_codes import CallError
from ....protocol.json_pieces import decode_in_pieces, finite
from ...observability.logging_setup import shown_content
from ..http_io import send_json
from .a2a_caller import A2ACaller
from .a2a_operations import A2AOperations, read_message
from .agent_catalogue import AgentCatalogue
from .push_operations import PushOperations
from .task_stream import TaskEvents, answer_unless_disconnected, send_events

A2A_JSON: Final = "application/a2a+json"
"""A2A's media type; clients may also send and accept plain JSON."""

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(float_hook=finite).decode
_NUMBERS: Final = frozenset({"historyLength", "pageSize"})
_log = structlog.get_logger("toold.a2a")


def decode_rest(body: bytes) -> Any:
    """The body of a request; an ``A2AError`` if it is not JSON. An empty body is an empty object."""
    if not body:
        return {}
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return A2AError(PARSE, f"The body is not JSON: {error}")


def decode_long_rest(body: bytes) -> Any:
    """``decode_rest`` for a body of any length, in steps of some 25 ms."""
    try:
        return decode_in_pieces(body)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        return A2AError(PARSE, f"The body is not JSON, or too complex: {error}")


class A2ARest:
    """Serves the requests of all callers."""

    def __init__(self, operations: A2AOperations, pushes: PushOperations, agents: AgentCatalogue) -> None:
        self._operations = operations
        self._pushes = pushes
        self._agents = agents

    async def serve(
        self,
        caller: A2ACaller,
        route: A2ARoute,
        body: Any,
        query: Mapping[str, str],
        requested: str,
        last_event: int | None,
        receive: Receive,
        send: Send,
        *,
        media_type: str,
    ) -> None:
        """Answers one request to ``route``. ``requested``: the version that the request names."""
        try:
            params = _params(route, body, query, requested)
            events = await self._events(caller, route, params, last_event)
            if events is not None:
                await send_events(events, _encode, receive, send)
                return
            answer = await answer_unless_disconnected(self._answer(caller, route, params), receive)
            if answer is not None:
                await send_json(send, _encode(answer), media_type=media_type)
        except (A2AError, CallError) as error:
            known = error_of_call(error) if isinstance(error, CallError) else error
            _log.info("request refused", status=known.kind.status, reason=shown_content(known.message))
            await send_json(send, _encode(known.http_body()), known.kind.status, media_type=media_type)

    async def _events(
        self, caller: A2ACaller, route: A2ARoute, params: Mapping[str, Any], last_event: int | None
    ) -> TaskEvents | None:
        match route.operation:
            case "SendStreamingMessage":
                return await self._operations.stream(caller, await read_message(caller, params))
            case "SubscribeToTask":
                return await self._operations.subscribe(caller, read_task(params), last_event)
        return None

    async def _answer(self, caller: A2ACaller, route: A2ARoute, params: Mapping[str, Any]) -> Any:
        match route.operation:
            case "SendMessage":
                return await self._operations.send(caller, await read_message(caller, params))
            case "GetTask":
                return await self._operations.get(caller, read_task(params))
            case "CancelTask":
                return await self._operations.cancel(caller, read_task(params))
            case "ListTasks":
                return await self._operations.list_tasks(caller, read_list(params))
            case "Create" | "Get" | "List" | "Delete" as action:
                return await self._pushes.run(caller, action, params, "1.0")
            case "GetExtendedAgentCard":
                return self._agents.extended_card(caller.agent, "1.0", caller.origin)
            case operation:
                raise AssertionError(f"no path has the operation {operation}")


def _params(route: A2ARoute, body: Any, query: Mapping[str, str], requested: str) -> dict[str, Any]:
    """The parameters of a request, from its body, its query and its path.

    Raises:
        A2AError: they are invalid, or the request names another version.
    """
    if version_of(requested) != "1.0":
        why = "HTTP+JSON is served in version 1.0: send the header A2A-Version: 1.0; version 0.3 has JSON-RPC."
        raise A2AError(VERSION, why, metadata={"supportedVersions": "1.0"})
    if isinstance(body, A2AError):
        raise body
    if not isinstance(body, dict):
        raise invalid_field("body", "must be an object")
    params = {**{name: _query_value(name, value) for name, value in query.items()}, **body}
    if route.config_id is not None:
        return {**params, "taskId": route.task_id, **({"id": route.config_id} if route.config_id else {})}
    return params if route.task_id is None else {**params, "id": route.task_id}


def _query_value(name: str, value: str) -> Any:
    if name in _NUMBERS:
        return int(value) if value.isascii() and value.isdecimal() and len(value) < 10 else value
    return {"true": True, "false": False}.get(value, value) if name == "includeArtifacts" else value
