"""The HTTP side port: MCP, whether the daemon lives and takes calls, its metrics. For clients, probes and people.

MCP is asked most, and goes past the framework that serves the rest, which would cost a tenth of a call (decision 46).
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...protocol.daemon_address import is_loopback
from ...version import __version__
from ..access import WELL_KNOWN
from ..observability.metrics import CONTENT_TYPE

Health = Callable[[], dict[str, Any]]
"""What ``/readyz`` shows: ``status`` is ``ready`` where calls are accepted; elsewhere ``reasons`` says why not."""

Metadata = Callable[[str], Mapping[str, Any] | None]
"""What is told at ``WELL_KNOWN`` and this path of where tokens come from (RFC 9728); None where nothing is."""


def side_app(
    *,
    health: Health,
    metrics: Callable[[], bytes],
    mcp: ASGIApp,
    resource: Metadata,
    operator: ASGIApp,
    loopback_only: bool,
    allowed_origins: tuple[str, ...],
) -> ASGIApp:
    """What the side port serves; ``operator`` answers below ``/operator``, which nobody is told of.

    ``mcp`` finds the name of the toolset that it is asked for, or None, in its scope, under ``toolset``. With
    ``loopback_only`` only those are answered who call the port by a loopback name. Pages of the ``allowed_origins``
    may read what MCP, and the metadata that leads to its tokens, answer.
    """
    pages = Starlette(
        routes=[
            Route("/", _contents),
            Route("/healthz", _alive),
            Route("/readyz", _readiness(health)),
            Route("/metrics", _metrics(metrics)),
            Route(WELL_KNOWN, _resource(resource)),
            Route(f"{WELL_KNOWN}/{{path:path}}", _resource(resource)),
            Mount("/operator", operator),
        ],
        exception_handlers=REFUSALS,
    )
    origins = frozenset(origin.encode() for origin in allowed_origins)

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        host, origin = b"", None
        for name, value in scope["headers"]:
            if name == b"host":
                host = value
            elif name == b"origin":
                origin = value
        if loopback_only and not _names_loopback(host):
            told = refusal(403, "PERMISSION_DENIED", "ask for this port as 127.0.0.1, [::1] or localhost")
            await told(scope, receive, send)
            return
        path: str = scope["path"]
        is_mcp = _is_mcp(path)
        if origin in origins and (is_mcp or path.startswith(WELL_KNOWN)):
            if is_preflight(scope["method"], scope["headers"]):
                await answer_preflight(send, origin)
                return
            send = shared_with(send, origin)
        if is_mcp:
            scope["toolset"] = path[len("/mcp/") :] or None
        await (mcp if is_mcp else pages)(scope, receive, send)

    return serve


def _is_mcp(path: str) -> bool:
    """Whether it is ``/mcp`` or ``/mcp/{toolset}``."""
    return path == "/mcp" or (path.startswith("/mcp/") and "/" not in path[len("/mcp/") :])


@lru_cache(maxsize=64)
def _names_loopback(host: bytes) -> bool:
    """Whether a ``Host`` header names this machine alone. Under another name a web page may have rebound its own to a
    loopback port."""
    return is_loopback(host_name(host.decode("latin-1")))


async def _contents(_: Request) -> Response:
    return JSONResponse(
        {
            "server": "toold",
            "version": __version__,
            "paths": {
                "/healthz": "200 while the daemon lives",
                "/readyz": "200 where calls are accepted, else 503 with the reasons",
                "/metrics": "Prometheus' text format",
            },
            "mcp": "POST /mcp or /mcp/{toolset}: the Model Context Protocol, over Streamable HTTP",
        }
    )


async def _alive(_: Request) -> Response:
    return JSONResponse({"status": "alive"})


def _readiness(health: Health) -> Callable[[Request], Any]:
    async def readiness(_: Request) -> Response:
        state = health()
        return JSONResponse(msgspec.to_builtins(state), 200 if state["status"] == "ready" else 503)

    return readiness


def _metrics(render: Callable[[], bytes]) -> Callable[[Request], Any]:
    async def metrics(_: Request) -> Response:
        return Response(render(), media_type=CONTENT_TYPE)

    return metrics


def _resource(metadata: Metadata) -> Callable[[Request], Any]:
    async def resource(request: Request) -> Response:
        document = metadata(request.url.path.removeprefix(WELL_KNOWN).rstrip("/"))
        return await _not_found(request, HTTPException(404)) if document is None else JSONResponse(document)

    return resource


async def _not_found(request: Request, _: Exception) -> Response:
    return refusal(404, "NOT_FOUND", f"there is no {request.url.path[:100]} here; / lists what is")


async def _method_not_allowed(request: Request, error: Exception) -> Response:
    allowed = error.headers["Allow"] if isinstance(error, HTTPException) and error.headers else "GET"
    return refusal(405, "INVALID_REQUEST", f"{request.url.path[:100]} takes {allowed} only")


_HOST: Final = re.compile(r"(?:\[([^\[\]]*)\]|([^\[\]:@/]*))(?::[0-9]*)?")

REFUSALS: Final[Mapping[Any, Callable[[Request, Exception], Awaitable[Response]]]] = {
    404: _not_found,
    405: _method_not_allowed,
}


def refusal(status: int, code: str, message: str) -> Response:
    """An error as the side port tells it."""
    return JSONResponse({"error": {"code": code, "message": message}}, status)


def host_name(host: str) -> str:
    """What a ``Host`` header names: ``127.0.0.1:8080``, ``[::1]:8080``, ``localhost``, with or without a port; nothing
    where it is none."""
    parts = _HOST.fullmatch(host)
    return (parts[1] or parts[2]).removesuffix(".").lower() if parts else ""


_ALLOWED: Final = (
    (b"access-control-allow-methods", b"GET, POST"),
    (
        b"access-control-allow-headers",
        b"accept, authorization, content-type, mcp-method, mcp-name, mcp-protocol-version, mcp-session-id",
    ),
    (b"access-control-max-age", b"600"),  # as long as an operator may wait for a changed setting to count
)
_EXPOSED: Final = (b"access-control-expose-headers", b"mcp-session-id, retry-after, www-authenticate")
"""What the page may read of an answer, beside its type and length."""
_VARY: Final = (b"vary", b"origin")


def is_preflight(method: str, headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether the browser asks, for a page that has yet to send its request."""
    return method == "OPTIONS" and any(name == b"access-control-request-method" for name, _ in headers)


async def answer_preflight(send: Send, origin: bytes) -> None:
    """The page of this origin may send what MCP has its clients send. No token is asked for: browsers send none yet."""
    headers = [(b"access-control-allow-origin", origin), *_ALLOWED, _VARY]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body"})


def shared_with(send: Send, origin: bytes) -> Send:
    """``send`` for answers that the page of this origin may read, errors included: it has to see what went wrong."""

    async def share(message: Message) -> None:
        if message["type"] == "http.response.start":
            allowed = (b"access-control-allow-origin", origin)
            message = {**message, "headers": [*message["headers"], allowed, _EXPOSED, _VARY]}
        await send(message)

    return share
