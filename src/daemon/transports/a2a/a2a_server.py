"""The ASGI app of A2A: the catalogue, the cards and the JSON-RPC of hosted agents.

headers ▸ route ▸ body ▸ version ▸ method ─▶ JSON
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import parse_qs

import structlog
from starlette.types import Receive, Scope, Send

from ....protocol import json_rpc
from ....protocol.a2a.a2a_error import (
    PUSH_NOT_SUPPORTED,
    UNKNOWN_METHOD,
    UNSUPPORTED_OPERATION,
    A2AError,
    error_of_call,
)
from ....protocol.a2a.a2a_request import read_send, read_task
from ....protocol.a2a.a2a_route import A2ARoute, route_of
from ....protocol.a2a.a2a_version import (
    VERSION_HEADER,
    A2AVersion,
    methods_of,
    operation_of,
    send_params_of_0_3,
    task_to_0_3,
    version_of,
)
from ....protocol.authorization import Authenticate, Authorization
from ....protocol.error_codes import CallError
from ....protocol.json_rpc import MalformedMessage, Message, MessageProblem, RpcRequest
from ....protocol.trace_context import TRACEPARENT, usable_traceparent
from ....serving import COMPLETE, PEER, HttpPeer
from ...observability.logging_setup import shown_content
from ..http_client import client_of
from ..http_intake import INTAKE_ERRORS, HttpIntake
from ..http_io import ClientDisconnectedError, read_headers, send_json, wait_disconnected
from ..request_guard import RequestRefused, authorize, refuse_content
from .a2a_operations import A2ACaller, A2AOperations
from .agent_catalogue import AgentCatalogue, etag_of

CARD_MAX_AGE_S: Final = 300
"""How long a client may use a card without asking again."""

_READ: Final = (
    *("authorization", "content-encoding", "content-type", "host", "origin", "user-agent", "if-none-match"),
    *(VERSION_HEADER, TRACEPARENT),
)
_HEADERS: Final = {name.encode(): name for name in _READ}
"""The headers that are read, in lower case."""

T = TypeVar("T")

_log = structlog.get_logger("toold.a2a")


class A2AServer:
    """Serves the paths of ``a2a_route``."""

    def __init__(
        self,
        intake: HttpIntake,
        operations: A2AOperations,
        agents: AgentCatalogue,
        *,
        origins: tuple[str, ...],
        authenticate: Authenticate,
    ) -> None:
        self._intake = intake
        self._operations = operations
        self._agents = agents
        self._origins = origins
        self._authenticate = authenticate

    def __repr__(self) -> str:
        return f"<A2AServer {self._intake!r}>"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = read_headers(scope, _HEADERS)
        whole = COMPLETE in scope.get("extensions", ())
        access = await authorize(
            headers, scheme=scope["scheme"], authenticate=self._authenticate, origins=self._origins
        )
        if isinstance(access, RequestRefused):
            await _refuse(send, access, close=whole)
            return
        peer: HttpPeer = scope["state"][PEER]
        route = route_of(scope["path"])
        excess = self._intake.refuse_excess(peer) or _wrong_route(route, scope, headers)
        if excess is not None or route is None:
            await _refuse(send, excess or _NOT_FOUND, close=whole)
            return
        if route.kind == "catalogue":
            await send_json(send, self._agents.cards(access, _origin(scope, headers)))
            return
        agent = self._agents.find(route.agent, access)
        if agent is None:
            await _refuse(send, _no_agent(route), close=whole)
        elif route.kind == "card":
            card = self._agents.card(*agent, route.version or "1.0", _origin(scope, headers))
            await _send_card(send, card, headers)
        else:
            await self._receive(scope, headers, access, route, agent, receive, send)

    async def _receive(
        self,
        scope: Scope,
        headers: Mapping[str, str],
        access: Authorization,
        route: A2ARoute,
        agent: tuple[str, str],
        receive: Receive,
        send: Send,
    ) -> None:
        whole = COMPLETE in scope.get("extensions", ())
        self._intake.active += 1
        try:
            message, size = await self._intake.receive(
                receive, access.principal.name, json_rpc.decode, json_rpc.decode_long, whole=whole
            )
            traceparent = usable_traceparent(headers[TRACEPARENT]) if TRACEPARENT in headers else None
            caller = A2ACaller(access, agent[1], agent[0], client_of(headers, "a2a"), traceparent, size)
            answer = await _unless_disconnected(self._answer(caller, message, _version(route, scope, headers)), receive)
            if answer is not None:
                await send_json(send, answer)
        except ClientDisconnectedError:
            pass
        except INTAKE_ERRORS as error:
            refused, close = self._intake.refusal_of(error)
            await _refuse(send, refused, close=close)
        finally:
            self._intake.active -= 1

    async def _answer(self, caller: A2ACaller, message: Message | list[Message], requested: str) -> bytes:
        """The answer to one JSON-RPC message; errors are answers too."""
        request_id = message.id if isinstance(message, RpcRequest | MalformedMessage) else None
        try:
            if isinstance(message, MalformedMessage):
                return json_rpc.failure(request_id, message.problem)
            if not isinstance(message, RpcRequest):
                return json_rpc.failure(None, _NO_REQUEST)
            version = version_of(requested)
            return json_rpc.answer(message.id, await self._run(caller, message, version))
        except A2AError as error:
            problem = error
        except CallError as error:
            problem = error_of_call(error)
        _log.info("request refused", code=problem.kind.code, reason=shown_content(problem.message))
        return json_rpc.failure(request_id, _rpc_problem(problem))

    async def _run(self, caller: A2ACaller, request: RpcRequest, version: A2AVersion) -> dict[str, Any]:
        old, params = version == "0.3", request.params
        match operation_of(request.method, version):
            case "SendMessage":
                task = await self._operations.send(caller, read_send(send_params_of_0_3(params) if old else params))
                return task_to_0_3(task) if old else {"task": task}
            case "GetTask":
                task = await self._operations.get(caller, read_task(params))
            case "CancelTask":
                task = await self._operations.cancel(caller, read_task(params))
            case None:
                raise _unknown_method(request.method, version)
            case _:
                raise A2AError(UNSUPPORTED_OPERATION, f"This agent does not support {request.method}; see its card.")
        return task_to_0_3(task) if old else task


_NO_REQUEST: Final = MessageProblem(
    json_rpc.INVALID_REQUEST, "Send one request with an id per POST; batches are not supported."
)
_NOT_FOUND: Final = RequestRefused(
    404,
    "This path does not exist; there are GET /agents, and for each agent POST /agents/NAME/ and "
    "GET /agents/NAME/.well-known/agent-card.json.",
)


def _wrong_route(route: A2ARoute | None, scope: Scope, headers: Mapping[str, str]) -> RequestRefused | None:
    """Refuses a path that does not exist, its wrong method, and a body that is not JSON."""
    if route is None:
        return _NOT_FOUND
    if scope["method"] != route.method:
        return RequestRefused(405, f"This path accepts {route.method} only.", (("allow", route.method),))
    return refuse_content(headers) if route.method == "POST" else None


def _no_agent(route: A2ARoute) -> RequestRefused:
    if route.agent is None:
        message = "There is no default agent for you: name one by /agents/NAME/; GET /agents lists yours."
        return RequestRefused(404, message)
    return RequestRefused(404, f"You have no agent {route.agent[:64]!r}; GET /agents lists yours.")


def _version(route: A2ARoute, scope: Scope, headers: Mapping[str, str]) -> str:
    """The version that a request names: by its path, its header, or its query."""
    if route.version is not None:
        return route.version
    if VERSION_HEADER in headers:
        return headers[VERSION_HEADER]
    query = parse_qs(scope["query_string"].decode("latin-1"))
    return next((values[0] for name, values in query.items() if name.lower() == VERSION_HEADER), "")


def _origin(scope: Scope, headers: Mapping[str, str]) -> str:
    return f"{scope['scheme']}://{headers.get('host', '')}"


def _unknown_method(method: str, version: A2AVersion) -> A2AError:
    other: A2AVersion = "0.3" if version == "1.0" else "1.0"
    if operation_of(method, other) is not None:
        hint = f"it is a method of version {other}: send the header A2A-Version: {other}"
    elif "ushNotification" in method:
        return A2AError(PUSH_NOT_SUPPORTED, "This agent sends no push notifications; poll the task.")
    else:
        hint = f"there are {', '.join(methods_of(version))}"
    return A2AError(UNKNOWN_METHOD, f"A2A {version} has no method {method[:100]!r} here; {hint}.")


def _rpc_problem(error: A2AError) -> MessageProblem:
    details = error.details
    return MessageProblem(error.kind.code, error.message, details) if details else _plain(error)


def _plain(error: A2AError) -> MessageProblem:
    return MessageProblem(error.kind.code, error.message)


async def _unless_disconnected(answering: Any, receive: Receive) -> bytes | None:
    """The answer; None if the client disconnects before. What the request began goes on."""
    answer = asyncio.ensure_future(answering)
    watch = asyncio.ensure_future(wait_disconnected(receive))
    try:
        await asyncio.wait((answer, watch), return_when=asyncio.FIRST_COMPLETED)
        return answer.result() if answer.done() else None
    finally:
        watch.cancel()
        answer.cancel()


async def _send_card(send: Send, card: bytes, headers: Mapping[str, str]) -> None:
    etag = etag_of(card)
    shared = [
        (b"etag", etag.encode()),
        (b"cache-control", f"private, max-age={CARD_MAX_AGE_S}".encode()),
        (b"vary", b"authorization, host"),
    ]
    known = {tag.strip().removeprefix("W/") for tag in headers.get("if-none-match", "").split(",")}
    if etag in known or "*" in known:
        await send_json(send, b"", 304, shared)
    else:
        await send_json(send, card, 200, shared)


async def _refuse(send: Send, refused: RequestRefused, *, close: bool = False) -> None:
    """Answers a request that is not served, as HTTP+JSON has errors; the connection is closed if the rest of its body
    is not read.
    """
    _log.info("request refused", status=refused.status, reason=refused.message)
    headers: Sequence[tuple[bytes, bytes]] = [(name.encode(), value.encode()) for name, value in refused.headers]
    body = json_rpc.failure(None, MessageProblem(json_rpc.INVALID_REQUEST, refused.message))
    await send_json(send, body, refused.status, [*headers, *([(b"connection", b"close")] if close else [])])
