"""The paths below ``/peer`` of the HTTP port, for the other nodes of the cluster: this node's running calls."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ...protocol.error_codes import CallError
from ...tools import CallInfo
from .peer_key import PEER_HEADER, PeerKey

PEER_PATH: Final = "/peer"

PeerOperation = Callable[[dict[str, Any]], Awaitable[Any]]


class PeerOperations(Protocol):
    """The operations that a node performs for another node. Each method raises a ``CallError`` if it fails."""

    def running_calls(self) -> Sequence[dict[str, Any]]:
        """Returns the rows of the calls that run here."""
        ...

    async def find_call(self, principal: str, call_id: str) -> CallInfo:
        """Returns a principal's call, if this node knows it."""
        ...

    async def cancel_call(self, principal: str | None, call_id: str) -> bool:
        """Cancels a call of a principal; None stands for any principal. Returns False if the call does not run here or
        is ending.
        """
        ...

    def cancel_request(self, request_id: str | int, label: str, principal: str) -> bool:
        """Cancels the request of an MCP client. Returns whether the request runs here."""
        ...

    def metrics(self) -> str:
        """Returns the page of metrics of this node."""
        ...

    def summary(self) -> dict[str, Any]:
        """Returns the figures of this node for ``status``."""
        ...


class _CallQuery(msgspec.Struct):
    call_id: str
    principal: str | None = None


class _RequestQuery(msgspec.Struct):
    request_id: str | int
    label: str
    principal: str


def peer_app(operations: PeerOperations, key: PeerKey, epoch: str) -> ASGIApp:
    """Returns the app below ``/peer``. It admits requests that are signed for this process."""

    async def calls(_: bytes) -> Any:
        return {"running": operations.running_calls(), "connections": operations.summary()["connections"]}

    async def find(body: bytes) -> Any:
        query = msgspec.json.decode(body, type=_CallQuery)
        return await operations.find_call(query.principal or "", query.call_id)

    async def cancel(body: bytes) -> Any:
        query = msgspec.json.decode(body, type=_CallQuery)
        return {"cancelled": await operations.cancel_call(query.principal, query.call_id)}

    async def cancel_request(body: bytes) -> Any:
        query = msgspec.json.decode(body, type=_RequestQuery)
        return {"cancelled": operations.cancel_request(query.request_id, query.label, query.principal)}

    def endpoint(answer: Callable[[bytes], Awaitable[Any]]) -> Callable[[Request], Awaitable[Response]]:
        async def serve(request: Request) -> Response:
            body = await _signed_body(request, key, epoch)
            try:
                content = await answer(body)
            except CallError as error:
                return _json({"error": {"code": error.code, "message": error.message}}, 503)
            except msgspec.DecodeError as error:
                return _json({"error": {"code": "VALIDATION_ERROR", "message": str(error)}}, 400)
            return _json(content)

        return serve

    routes = {
        "/calls": calls,
        "/calls/find": find,
        "/calls/cancel": cancel,
        "/summary": _plain(operations.summary),
        "/metrics": _plain(lambda: {"page": operations.metrics()}),
    }
    routes["/requests/cancel"] = cancel_request
    return Starlette(routes=[Route(path, endpoint(each), methods=["POST"]) for path, each in routes.items()])


def _plain(read: Callable[[], Any]) -> Callable[[bytes], Awaitable[Any]]:
    """The answer to a request without content."""

    async def answer(_: bytes) -> Any:
        return read()

    return answer


_MAX_BODY_BYTES: Final = 16 * 1024


async def _signed_body(request: Request, key: PeerKey, epoch: str) -> bytes:
    """Returns the body of a request that a node of this cluster signed for this process.

    Raises:
        HTTPException: it is not signed, or too long.
    """
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MAX_BODY_BYTES:
            raise HTTPException(413)
    signature = request.headers.get(PEER_HEADER, "")
    if not key.verifies(signature, epoch, PEER_HEADER, request.url.path, body.decode("utf-8", "surrogateescape")):
        raise HTTPException(403)
    return body


def _json(content: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(content), status, media_type="application/json")
