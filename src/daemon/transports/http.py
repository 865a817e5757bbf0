"""The HTTP side port: whether the daemon lives and takes calls, and its metrics. For probes and for people."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ...protocol.rendezvous import is_loopback
from ...version import __version__
from ..metrics import CONTENT_TYPE

Health = Callable[[], dict[str, Any]]
"""What ``/readyz`` shows: ``status`` is ``ready`` where calls are accepted; elsewhere ``reasons`` says why not."""


def side_app(*, health: Health, metrics: Callable[[], bytes], operator: ASGIApp, loopback_only: bool) -> Starlette:
    """What the side port serves; ``operator`` answers below ``/operator``, which nobody is told of.

    With ``loopback_only`` it answers only those who call it by a loopback name.
    """
    return Starlette(
        routes=[
            Route("/", _contents),
            Route("/healthz", _alive),
            Route("/readyz", _readiness(health)),
            Route("/metrics", _metrics(metrics)),
            Mount("/operator", operator),
        ],
        middleware=[Middleware(_LoopbackHost)] if loopback_only else [],
        exception_handlers=REFUSALS,
    )


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


async def _not_found(request: Request, _: Exception) -> Response:
    return refusal(404, "NOT_FOUND", f"there is no {request.url.path[:100]} here; / lists what is")


async def _method_not_allowed(request: Request, error: Exception) -> Response:
    allowed = error.headers["Allow"] if isinstance(error, HTTPException) and error.headers else "GET"
    return refusal(405, "INVALID_REQUEST", f"{request.url.path[:100]} takes {allowed} only")


REFUSALS: Final[Mapping[Any, Callable[[Request, Exception], Awaitable[Response]]]] = {
    404: _not_found,
    405: _method_not_allowed,
}


def refusal(status: int, code: str, message: str) -> Response:
    """An error as the side port tells it."""
    return JSONResponse({"error": {"code": code, "message": message}}, status)


class _LoopbackHost:
    """Refuses requests that reach a loopback port under another name: a web page may have rebound its own to it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not is_loopback(host_name(HTTPConnection(scope).headers.get("host", ""))):
            told = refusal(403, "PERMISSION_DENIED", "ask for this port as 127.0.0.1, [::1] or localhost")
            await told(scope, receive, send)
            return
        await self._app(scope, receive, send)


def host_name(host: str) -> str:
    """What a ``Host`` header names: ``127.0.0.1:8080``, ``[::1]:8080``, ``localhost``, with or without a port."""
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    return name.removesuffix(".").lower()
