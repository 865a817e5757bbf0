"""The ASGI app of A2A: the catalogue and cards of hosted agents, and the requests to them.

headers ▸ route ▸ body ▸ version ▸ operation ─▶ JSON, or events
"""

from collections.abc import Mapping
from functools import partial
from typing import Final
from urllib.parse import parse_qsl

from starlette.types import Receive, Scope, Send

from ....protocol import json_rpc
from ....protocol.a2a.a2a_route import JWKS_PATH, A2ARoute, route_of
from ....protocol.a2a.a2a_version import VERSION_HEADER
from ....protocol.authorization import Authenticate, Authorization
from ....protocol.error_codes import CallError, ErrorCode
from ....protocol.trace_context import TRACEPARENT, usable_traceparent
from ....protocol.user_credential import USER_HEADER
from ....serving import COMPLETE, PEER, HttpPeer
from ..http_client import client_of
from ..http_intake import HttpIntake
from ..http_io import JSON_TYPE, read_headers, send_json
from ..request_guard import RequestRefused, authorize, refuse_content
from .a2a_caller import A2ACaller
from .a2a_operations import A2AOperations
from .a2a_refusal import refuse
from .a2a_rest import A2A_JSON, A2ARest, decode_long_rest, decode_rest
from .a2a_rpc import A2ARpc
from .agent_catalogue import AgentCatalogue, etag_of
from .push_operations import PushOperations
from .result_parts import ResultParts

CARD_MAX_AGE_S: Final = 300
"""How long a client may cache a card."""

_LAST_EVENT: Final = "last-event-id"
_READ: Final = (
    *(
        "authorization",
        "content-encoding",
        "content-type",
        "host",
        "origin",
        "user-agent",
        USER_HEADER,
        "if-none-match",
    ),
    *("accept", _LAST_EVENT, VERSION_HEADER, TRACEPARENT),
)
_HEADERS: Final = {name.encode(): name for name in _READ}
"""The headers that are read, in lower case."""


class A2AServer:
    """Serves the paths of ``a2a_route``."""

    def __init__(
        self,
        intake: HttpIntake,
        operations: A2AOperations,
        pushes: PushOperations,
        agents: AgentCatalogue,
        results: ResultParts,
        *,
        origins: tuple[str, ...],
        authenticate: Authenticate,
    ) -> None:
        self._intake = intake
        self._rpc = A2ARpc(operations, pushes, agents)
        self._rest = A2ARest(operations, pushes, agents)
        self._agents = agents
        self._results = results
        self._origins = origins
        self._authenticate = authenticate

    def __repr__(self) -> str:
        return f"<A2AServer {self._intake!r}>"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = read_headers(scope, _HEADERS)
        whole = COMPLETE in scope.get("extensions", ())
        if scope["path"] == JWKS_PATH:  # public keys need no token
            await self._send_keys(scope["method"], send, close=whole)
            return
        route = route_of(scope["path"], scope["method"])
        access = await authorize(
            headers, scheme=scope["scheme"], authenticate=self._authenticate, origins=self._origins
        )
        if isinstance(access, RequestRefused):
            if access.status != 401 or not await self._sent_public(route, scope, headers, send):
                await refuse(route, send, access, close=whole)
            return
        peer: HttpPeer = scope["state"][PEER]
        excess = self._intake.refuse_excess(peer) or _wrong_route(route, scope, headers)
        if excess is not None or route is None:
            await refuse(route, send, excess or _NOT_FOUND, close=whole)
            return
        if route.kind == "catalogue":
            await send_json(send, self._agents.cards(access, _origin(scope, headers)))
            return
        agent = self._agents.find(route.agent, access)
        if agent is None:
            await refuse(route, send, _no_agent(route), close=whole)
        elif route.kind == "card":
            card = self._agents.card(agent[0], route.version or "1.0", _origin(scope, headers))
            await _send_card(send, card, headers)
        elif route.kind == "result":
            await self._send_result(route, access, send)
        else:
            await self._receive(scope, headers, access, route, agent, receive, send)

    async def _sent_public(self, route: A2ARoute | None, scope: Scope, headers: Mapping[str, str], send: Send) -> bool:
        """Answers a request without a token if anyone may read its target; returns whether it was answered."""
        if route is None or scope["method"] != "GET" or "authorization" in headers:
            return False
        origin = _origin(scope, headers)
        if route.kind == "catalogue":
            cards = self._agents.public_cards(origin)
            if cards is not None:
                await send_json(send, cards)
            return cards is not None
        if route.kind != "card":
            return False
        card = self._agents.public_card(route.agent, route.version or "1.0", origin)
        if card is not None:
            await _send_card(send, card, headers)
        return card is not None

    async def _send_result(self, route: A2ARoute, access: Authorization, send: Send) -> None:
        async with self._intake.serving(partial(refuse, route, send)):
            try:
                await self._results.send(access.principal, route.handle, send)
            except CallError as error:
                missing = error.code in {ErrorCode.NOT_FOUND, ErrorCode.RESULT_EXPIRED}
                await refuse(route, send, RequestRefused(404 if missing else 503, error.message))

    async def _send_keys(self, method: str, send: Send, *, close: bool) -> None:
        keys = self._agents.jwks
        if keys is None or method != "GET":
            why = "There are no keys: the cards of this server are not signed." if keys is None else "GET the keys."
            await refuse(None, send, RequestRefused(404 if keys is None else 405, why), close=close)
        else:
            await send_json(send, keys, 200, [(b"cache-control", f"max-age={CARD_MAX_AGE_S}".encode())])

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
        rest = route.kind == "rest"
        decode, decode_long = (decode_rest, decode_long_rest) if rest else (json_rpc.decode, json_rpc.decode_long)
        async with self._intake.serving(partial(refuse, route, send)):
            message, size = await self._intake.receive(receive, access.principal.name, decode, decode_long, whole=whole)
            traceparent = usable_traceparent(headers[TRACEPARENT]) if TRACEPARENT in headers else None
            origin, by_message = _origin(scope, headers), self._agents.answers_by_message(agent[0])
            caller = A2ACaller(
                access, agent[1], agent[0], client_of(headers, "a2a"), traceparent, size, origin, by_message
            )
            query = _query(scope)
            requested = route.version or headers.get(VERSION_HEADER) or query.pop(VERSION_HEADER, "")
            last_event = _number(headers.get(_LAST_EVENT, ""))
            if rest:
                media_type = A2A_JSON if _prefers_a2a_json(headers) else JSON_TYPE
                await self._rest.serve(
                    caller, route, message, query, requested, last_event, receive, send, media_type=media_type
                )
            else:
                await self._rpc.serve(caller, message, requested, last_event, receive, send)


_NOT_FOUND: Final = RequestRefused(
    404,
    "This path does not exist; there are GET /agents, and for each agent POST /agents/NAME/ and "
    "GET /agents/NAME/.well-known/agent-card.json.",
)


def _wrong_route(route: A2ARoute | None, scope: Scope, headers: Mapping[str, str]) -> RequestRefused | None:
    """Refuses a path that does not exist, a wrong method, and a body that is not JSON."""
    if route is None:
        return _NOT_FOUND
    if route.method not in {"*", scope["method"]}:
        return RequestRefused(405, f"This path accepts {route.method} only.", (("allow", route.method),))
    if scope["method"] != "POST" or (route.kind == "rest" and "content-type" not in headers):
        return None  # actions on tasks have no body
    return refuse_content(headers, (JSON_TYPE, A2A_JSON) if route.kind == "rest" else (JSON_TYPE,))


def _no_agent(route: A2ARoute) -> RequestRefused:
    if route.agent is None:
        message = "There is no default agent for you: name one by /agents/NAME/; GET /agents lists yours."
        return RequestRefused(404, message)
    return RequestRefused(404, f"You have no agent {route.agent[:64]!r}; GET /agents lists yours.")


def _query(scope: Scope) -> dict[str, str]:
    """The query, with the name of the version's parameter in lower case."""
    pairs = parse_qsl(scope["query_string"].decode("latin-1"))
    return {name.lower() if name.lower() == VERSION_HEADER else name: value for name, value in pairs}


def _number(last_event: str) -> int | None:
    """The number of the last event that a client has; None if the id is not from this server."""
    return int(last_event) if last_event.isascii() and last_event.isdecimal() and len(last_event) < 16 else None


def _prefers_a2a_json(headers: Mapping[str, str]) -> bool:
    """Whether a client of HTTP+JSON uses A2A's media type."""
    return A2A_JSON in headers.get("accept", "") or headers.get("content-type", "").startswith(A2A_JSON)


def _origin(scope: Scope, headers: Mapping[str, str]) -> str:
    return f"{scope['scheme']}://{headers.get('host', '')}"


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
