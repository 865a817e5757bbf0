"""The ASGI app of ``/api/v1``: the platform API, with a toold token.

headers ▸ route ▸ body ▸ handler ─▶ JSON, or ``{"detail": …}``
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec
import structlog
from starlette.types import Receive, Scope, Send

from ....protocol.authorization import Authenticate
from ....protocol.error_codes import CallError
from ....protocol.json_pieces import decode_in_pieces, finite
from ....protocol.user_credential import USER_HEADER
from ....serving import COMPLETE, PEER, HttpPeer
from ...observability.logging_setup import shown_content
from ..http_client import client_of
from ..http_intake import HttpIntake
from ..http_io import read_headers, send_json
from ..request_guard import RequestRefused, authorize, refuse_content
from .platform_error import PlatformError, error_of
from .platform_route import PlatformRequest, PlatformRoute, find_route

PREFIX: Final = "/api/v1/"

_HEADERS: Final = {
    name.encode(): name
    for name in ("authorization", "content-encoding", "content-type", "host", "origin", "user-agent", USER_HEADER)
}
"""The headers that are read, in lower case."""
_NO_STORE: Final = (b"cache-control", b"no-store")

_decode: Final = msgspec.json.Decoder(float_hook=finite).decode
_encode: Final = msgspec.json.Encoder().encode
_log = structlog.get_logger("toold.platform")


class PlatformServer:
    """Serves the paths below ``PREFIX``."""

    def __init__(
        self,
        intake: HttpIntake,
        routes: Sequence[PlatformRoute],
        *,
        origins: tuple[str, ...],
        authenticate: Authenticate,
    ) -> None:
        self._intake = intake
        self._routes = tuple(routes)
        self._origins = origins
        self._authenticate = authenticate

    def __repr__(self) -> str:
        return f"<PlatformServer {self._intake!r}>"

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
        try:
            route, path = find_route(self._routes, scope["method"], scope["path"])
        except PlatformError as error:
            await _fail(send, error, close=whole)
            return
        excess = self._intake.refuse_excess(peer) or (refuse_content(headers) if route.takes_body else None)
        if excess is not None:
            await _refuse(send, excess, close=whole)
            return
        async with self._intake.serving(partial(_refuse, send)):
            try:
                body, size = await self._body(route, access.principal.name, receive, whole=whole)
                query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
                answer = await route.handler(
                    PlatformRequest(access, client_of(headers, "platform"), path, query, body, size)
                )
            except (PlatformError, CallError) as error:
                await _fail(send, error_of(error) if isinstance(error, CallError) else error)
            else:
                await send_json(send, _encode(answer.body), answer.status, [_NO_STORE])

    async def _body(
        self, route: PlatformRoute, principal: str, receive: Receive, *, whole: bool
    ) -> tuple[dict[str, Any], int]:
        if not route.takes_body:
            return {}, 0
        body, size = await self._intake.receive(receive, principal, _decoded, _decoded_long, whole=whole)
        if isinstance(body, PlatformError):
            raise body
        if not isinstance(body, dict):
            raise PlatformError(422, "The body must be a JSON object.")
        return body, size


def _decoded(body: bytes) -> Any:
    """Returns the body's value, or a ``PlatformError``."""
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return PlatformError(400, f"The body is not JSON: {error}")


def _decoded_long(body: bytes) -> Any:
    """``_decoded`` for a body of any length, in steps of some 25 ms."""
    try:
        return decode_in_pieces(body)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        return PlatformError(400, f"The body is not JSON, or too complex: {error}")


async def _refuse(send: Send, refused: RequestRefused, *, close: bool = False) -> None:
    """Sends an error instead of serving the request; closes the connection if the rest of the body stays unread."""
    await _fail(send, PlatformError(refused.status, refused.message, refused.headers), close=close)


async def _fail(send: Send, error: PlatformError, *, close: bool = False) -> None:
    _log.info("request refused", status=error.status, reason=shown_content(str(error.detail)))
    headers = [(name.encode(), value.encode()) for name, value in error.headers]
    if close:
        headers.append((b"connection", b"close"))
    await send_json(send, _encode({"detail": error.detail}), error.status, [_NO_STORE, *headers])
