"""Answers requests of A2A that are refused before their operation is known: with JSON-RPC's errors on its paths, and
with errors of HTTP+JSON on all other paths.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
import structlog
from starlette.types import Send

from ....protocol import json_rpc
from ....protocol.a2a.a2a_error import CONTENT_TYPE, A2AError, A2AErrorKind
from ....protocol.a2a.a2a_route import A2ARoute
from ....protocol.error_codes import ErrorCode
from ....protocol.json_rpc import MessageProblem
from ..http_io import send_json, send_rpc_refusal
from ..request_guard import RequestRefused

_log = structlog.get_logger("toold.a2a")

_SERVER_ERROR: Final = -32000
_INVALID: Final = ("INVALID_ARGUMENT", ErrorCode.INVALID_REQUEST)
_STATUSES: Final[Mapping[int, tuple[str, ErrorCode]]] = {
    401: ("UNAUTHENTICATED", ErrorCode.UNAUTHORIZED),
    403: ("PERMISSION_DENIED", ErrorCode.PERMISSION_DENIED),
    404: ("NOT_FOUND", ErrorCode.NOT_FOUND),
    405: ("UNIMPLEMENTED", ErrorCode.INVALID_REQUEST),
    408: ("DEADLINE_EXCEEDED", ErrorCode.TIMEOUT),
    413: ("RESOURCE_EXHAUSTED", ErrorCode.INVALID_REQUEST),
    503: ("UNAVAILABLE", ErrorCode.SERVICE_UNAVAILABLE),
}
"""By HTTP status: its name in HTTP+JSON, and the reason."""


async def refuse(route: A2ARoute | None, send: Send, refused: RequestRefused, *, close: bool = False) -> None:
    """Answers a refused request in the binding of its path. ``route``: None if the path does not exist."""
    _log.info("request refused", status=refused.status, reason=refused.message)
    error = refusal_error(refused)
    if route is not None and route.kind == "rpc":
        await send_rpc_refusal(send, refused, _problem_of(refused, error), close=close)
        return
    headers = [(name.encode(), value.encode()) for name, value in refused.headers]
    if close:
        headers.append((b"connection", b"close"))
    await send_json(send, msgspec.json.encode(error.http_body()), refused.status, headers)


def refusal_error(refused: RequestRefused) -> A2AError:
    """A refusal as an error of A2A, which defines a separate error only for a wrong media type."""
    if refused.status == 415:
        return A2AError(CONTENT_TYPE._replace(status=415), refused.message)
    grpc, reason = _STATUSES.get(refused.status, _INVALID)
    retry_after_s = dict(refused.headers).get("retry-after")
    return A2AError(
        A2AErrorKind(_SERVER_ERROR, refused.status, grpc),
        refused.message,
        own_reason=str(reason),
        retry_after_ms=None if retry_after_s is None else int(retry_after_s) * 1000,
    )


def _problem_of(refused: RequestRefused, error: A2AError) -> MessageProblem:
    if refused.status != 415:
        return MessageProblem(json_rpc.INVALID_REQUEST, refused.message)
    return MessageProblem(error.kind.code, error.message, error.details)
