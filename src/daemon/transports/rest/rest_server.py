"""The ASGI app of ``/tools``, ``/toolsets`` and ``/openapi.json``: the REST API, with toold tokens as bearer tokens.

headers ▸ route ▸ body ▸ call ─▶ JSON, or the events of a stream
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qsl, quote

import structlog
from starlette.types import Receive, Scope, Send

from ....protocol.authorization import Authenticate, Authorization
from ....protocol.error_codes import CallError
from ....protocol.rest.openapi_document import openapi_document
from ....protocol.rest.rest_answer import error_answer
from ....protocol.rest.rest_request import (
    DOCUMENT_PATH,
    TOOLSETS_PREFIX,
    RestProblem,
    RestRoute,
    decode_arguments,
    decode_long_arguments,
    key_problem,
    refused_request,
    route_of,
    timeout_of,
)
from ....protocol.trace_context import TRACEPARENT, usable_traceparent
from ....protocol.user_credential import USER_HEADER
from ....serving import COMPLETE, PEER, HttpPeer
from ...dispatch import Router
from ...observability.logging_setup import shown_content
from ..http_client import client_of
from ..http_intake import HttpIntake
from ..http_io import read_headers, send_json
from ..request_guard import RequestRefused, authorize, no_such_toolset, refuse_content
from .rest_calls import RestCalls, RestPost, send_answer

_KEY: Final = "idempotency-key"
_HEADERS: Final = {
    name.encode(): name
    for name in (
        *("accept", "authorization", "content-encoding", "content-length", "content-type", "host", "origin"),
        *("transfer-encoding", "user-agent", USER_HEADER, _KEY, TRACEPARENT),
    )
}
"""The headers that are read, in lower case."""
_EVENTS: Final = "text/event-stream"

_log = structlog.get_logger("toold.rest")


class RestServer:
    """Serves the paths of ``rest_request.is_rest_path``."""

    def __init__(
        self,
        router: Router,
        intake: HttpIntake,
        origins: tuple[str, ...],
        authenticate: Authenticate,
        metadata: Callable[[str | None], str | None],
    ) -> None:
        """``metadata`` returns the URL of the OAuth metadata of a toolset, or of the default one; None without an
        issuer."""
        self._router = router
        self._intake = intake
        self._origins = origins
        self._authenticate = authenticate
        self._metadata = metadata
        self._calls = RestCalls(router)

    def __repr__(self) -> str:
        return f"<RestServer {self._intake!r}>"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = read_headers(scope, _HEADERS)
        whole = COMPLETE in scope.get("extensions", ())
        route = route_of(scope["path"])
        access = await authorize(
            headers,
            scheme=scope["scheme"],
            authenticate=self._authenticate,
            origins=self._origins,
            metadata=self._metadata(None if route is None else route.toolset),
        )
        if isinstance(access, RequestRefused):
            await _refuse(send, access, close=whole)
            return
        peer: HttpPeer = scope["state"][PEER]
        refused = self._intake.refuse_excess(peer) or _wrong_route(route, scope["method"], scope["path"], headers)
        if refused is not None or route is None:
            await _refuse(send, refused or _NO_PATH, close=whole)
            return
        toolset = self._toolset(access, route)
        if isinstance(toolset, RequestRefused):
            await _refuse(send, toolset, close=whole)
            return
        async with self._intake.serving(partial(_refuse, send)):
            if route.tool is None:
                await self._send_document(scope, headers, route, toolset, send)
            else:
                await self._call(scope, access, headers, toolset, route.tool, receive, send, whole=whole)

    async def _call(
        self,
        scope: Scope,
        access: Authorization,
        headers: Mapping[str, str],
        toolset: str,
        tool: str,
        receive: Receive,
        send: Send,
        *,
        whole: bool,
    ) -> None:
        arguments, size = await self._intake.receive(
            receive, access.principal.name, decode_arguments, decode_long_arguments, whole=whole
        )
        timeout_ms = timeout_of(_query(scope))
        key = headers.get(_KEY)
        for part in (arguments, timeout_ms, key_problem(key)):
            if isinstance(part, RestProblem):
                await _send_problem(send, part)
                return
        parent = headers.get(TRACEPARENT)
        post = RestPost(
            access,
            toolset,
            tool,
            client_of(headers, "rest"),
            key,
            timeout_ms if isinstance(timeout_ms, float) else None,
            None if parent is None else usable_traceparent(parent),
            _EVENTS in headers.get("accept", "").lower(),
            receive,
            send,
        )
        try:
            await self._calls.run(post, arguments if isinstance(arguments, dict) else {}, size)
        except CallError as error:
            await send_answer(send, error_answer(error.to_tool_error()))

    async def _send_document(
        self, scope: Scope, headers: Mapping[str, str], route: RestRoute, toolset: str, send: Send
    ) -> None:
        below = "" if route.toolset is None else f"{TOOLSETS_PREFIX}{quote(route.toolset, safe='')}"
        host, port = scope["server"]
        server = f"{scope['scheme']}://{headers.get('host') or f'{host}:{port}'}{below}"
        self._router.on_listing()
        view = self._router.catalog.view(toolset)
        # In a thread: the schemas of hundreds of tools take some milliseconds.
        document = await asyncio.to_thread(openapi_document, view.infos, toolset=toolset, server=server)
        await send_json(send, document, headers=[(b"cache-control", b"no-store")])

    def _toolset(self, access: Authorization, route: RestRoute) -> str | RequestRefused:
        catalog = self._router.catalog
        names = catalog.names
        toolset = access.default_toolset(names, catalog.default) if route.toolset is None else route.toolset
        usable = access.usable_toolsets(names)
        if toolset in usable:
            return toolset
        return no_such_toolset(toolset, usable, access, self._metadata(route.toolset))


_NO_PATH: Final = RequestRefused(
    404, f"The paths are POST /tools/NAME and GET {DOCUMENT_PATH}, and the same below {TOOLSETS_PREFIX}TOOLSET."
)


def _wrong_route(route: RestRoute | None, method: str, path: str, headers: Mapping[str, str]) -> RequestRefused | None:
    """Refuses a path that does not exist, a wrong method, and a body that is not JSON."""
    if route is None:
        return RequestRefused(404, f"{path[:100]} does not exist. {_NO_PATH.message}")
    if method != route.method:
        return RequestRefused(405, f"{path[:100]} accepts {route.method} only.", (("allow", route.method),))
    empty = headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers
    return None if method == "GET" or empty else refuse_content(headers)


def _query(scope: Scope) -> dict[str, Any]:
    return dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))


async def _refuse(send: Send, refused: RequestRefused, *, close: bool = False) -> None:
    """Sends an error instead of serving the request; closes the connection if the rest of the body stays unread."""
    headers = (*refused.headers, ("connection", "close")) if close else refused.headers
    await _send_problem(send, refused_request(refused.status, refused.message, headers))


async def _send_problem(send: Send, problem: RestProblem) -> None:
    _log.info("request refused", status=problem.status, reason=shown_content(problem.error.message))
    await send_answer(send, error_answer(problem.error, problem.status, problem.headers))
