"""The ASGI app of the served registry, below ``/registry`` and, on request, at the root.

path ▸ token ▸ right ▸ body ▸ operation ─▶ JSON
"""

from functools import partial
from typing import Final
from urllib.parse import parse_qsl

import msgspec
import structlog
from starlette.types import Receive, Scope, Send

from ....protocol.authorization import Authenticate, Authorization
from ....protocol.name_suggestions import close_names, did_you_mean
from ....protocol.user_credential import USER_HEADER
from ....served_registry import Kind, RegistryRefusedError
from ....serving import COMPLETE, PEER, HttpPeer
from ...observability.logging_setup import shown_content
from ..a2a.task_stream import answer_unless_disconnected
from ..http_client import client_of
from ..http_intake import HttpIntake
from ..http_io import read_headers, send_json
from ..request_guard import RequestRefused, authorize, refuse_content
from .registry_operations import RegistryOperations
from .registry_request import (
    READING,
    REGISTRY_PREFIX,
    RegistryAnswer,
    RegistryRequest,
    RegistryRoute,
    decode_body,
    decode_long_body,
    methods_of,
)

_READ: Final = (
    *("authorization", "content-encoding", "content-type", "host", "origin", "user-agent"),
    *("if-match", "if-none-match", USER_HEADER),
)
_HEADERS: Final = {name.encode(): name for name in _READ}
"""The headers that are read, in lower case."""
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})

_log = structlog.get_logger("toold.registry")


class RegistryServer:
    """Serves the paths of ``methods_of``."""

    def __init__(
        self,
        intake: HttpIntake,
        operations: RegistryOperations,
        *,
        origins: tuple[str, ...],
        authenticate: Authenticate,
    ) -> None:
        self._intake = intake
        self._operations = operations
        self._origins = origins
        self._authenticate = authenticate

    def __repr__(self) -> str:
        return f"<RegistryServer {self._intake!r}>"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        whole = COMPLETE in scope.get("extensions", ())
        headers = read_headers(scope, _HEADERS)
        path = scope["path"]
        methods = methods_of(path.removeprefix(REGISTRY_PREFIX) if path.startswith(REGISTRY_PREFIX) else path)
        route = methods.get(scope["method"])
        if route is not None and route.operation == "health":
            await _send(send, self._operations.health())
            return
        access = await authorize(
            headers, scheme=scope["scheme"], authenticate=self._authenticate, origins=self._origins
        )
        if isinstance(access, RequestRefused):
            await _refuse(send, access, close=whole)
            return
        peer: HttpPeer = scope["state"][PEER]
        if (excess := self._intake.refuse_excess(peer)) is not None:
            await _refuse(send, excess, close=whole)
            return
        if route is None:
            await _refuse(send, _no_route(path, list(methods)), close=whole)
            return
        refused = _without_right(route, access)
        if refused is None and scope["method"] in _WITH_BODY:
            refused = refuse_content(headers)
        if refused is not None:
            await _refuse(send, refused, close=whole)
            return
        async with self._intake.serving(partial(_refuse, send)):
            body, size = None, 0
            if scope["method"] in _WITH_BODY:
                body, size = await self._intake.receive(
                    receive, access.principal.name, decode_body, decode_long_body, whole=whole
                )
            request = RegistryRequest(
                access=access,
                client=client_of(headers, "registry"),
                route=route,
                query=dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)),
                body=body,
                size=size,
                if_match=headers.get("if-match"),
                if_none_match=headers.get("if-none-match"),
                origin=f"{scope['scheme']}://{headers.get('host', '')}",
            )
            await self._serve(request, receive, send)

    async def _serve(self, request: RegistryRequest, receive: Receive, send: Send) -> None:
        try:
            if isinstance(request.body, RegistryRefusedError):
                raise request.body
            answering = self._operations.answer(request)
            # Only a run is cancelled with its client. A change must complete: it has to be both on disk and in memory.
            runs = request.route.operation == "invoke"
            answer = await answer_unless_disconnected(answering, receive) if runs else await answering
        except RegistryRefusedError as error:
            _log.info("request refused", status=error.status, reason=shown_content(str(error)))
            headers = [(b"retry-after", b"1")] if error.status == 503 else []
            await send_json(send, msgspec.json.encode({"detail": error.detail}), error.status, headers)
        else:
            if answer is not None:
                await _send(send, answer)


async def _send(send: Send, answer: RegistryAnswer) -> None:
    headers = [(b"cache-control", b"no-store" if answer.etag is None else b"private, no-cache")]
    if answer.etag is not None:
        headers.append((b"etag", answer.etag.encode()))
    await send_json(send, answer.body, answer.status, headers)


def _without_right(route: RegistryRoute, access: Authorization) -> RequestRefused | None:
    if route.operation in READING or access.principal.operator or access.writes_registry:
        return None
    why = "This token may read the registry, but not change it; that needs a token made with --writes-registry or"
    return RequestRefused(403, f"{why} --operator (toold token create).")


def _no_route(path: str, methods: list[str]) -> RequestRefused:
    if methods:
        allowed = ", ".join(methods)
        return RequestRefused(405, f"{path[:100]} accepts {allowed} only", (("allow", allowed),))
    known = [*(kind.value for kind in Kind), "builtin-tools", "mcp-servers", "discover", "health"]
    first = path.removeprefix(REGISTRY_PREFIX).strip("/").partition("/")[0]
    hint = did_you_mean(close_names(first, known, n=1)) or f"there are {', '.join(known)}"
    return RequestRefused(404, f"{path[:100]} does not exist; {hint}")


async def _refuse(send: Send, refused: RequestRefused, *, close: bool = False) -> None:
    _log.info("request refused", status=refused.status, reason=refused.message)
    headers = [(name.encode(), value.encode()) for name, value in refused.headers]
    if close:
        headers.append((b"connection", b"close"))
    await send_json(send, msgspec.json.encode({"detail": refused.message}), refused.status, headers)
