"""The HTTP port: MCP, tools over REST, OpenAI's API, A2A, the platform API, health, metrics and the operator API, with
CORS for pages of allowed origins.

Most requests are MCP. They bypass Starlette, which would add a tenth to the cost of a call (decision 46). Pages
send their token in ``Authorization``, so CORS responses never allow credentials and never allow every origin.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...protocol.a2a.a2a_route import is_a2a_path
from ...protocol.daemon_address import is_loopback
from ...protocol.rest.rest_request import is_rest_path
from ...version import __version__
from ..access import WELL_KNOWN
from ..observability.metrics import CONTENT_TYPE

Health = Callable[[], dict[str, Any]]
"""Returns the object of ``/readyz``: ``status`` is ``ready`` if calls are accepted; otherwise ``reasons`` says why
not."""

AgentHealth = Callable[[], dict[str, Any] | None]
"""Returns the object of ``/health``, whose ``status`` is ``healthy`` if the agent accepts calls; None if the daemon
does not run as one agent."""

Metadata = Callable[[str], Mapping[str, Any] | None]
"""Returns the OAuth metadata at ``WELL_KNOWN`` plus this path (RFC 9728); None if there is none."""


def side_app(
    *,
    health: Health,
    agent_health: AgentHealth,
    metrics: Callable[[], bytes],
    metrics_of_all: Callable[[], Awaitable[bytes]] | None = None,
    mcp: ASGIApp,
    sse: ASGIApp,
    openai: ASGIApp,
    rest: ASGIApp,
    a2a: ASGIApp,
    platform: ASGIApp,
    dashboard: ASGIApp | None = None,
    registry: ASGIApp,
    is_registry: Callable[[str, str], bool],
    resource: Metadata,
    operator: ASGIApp,
    loopback_only: bool,
    allowed_origins: tuple[str, ...],
    sign_ins: Sequence[Route] = (),
) -> ASGIApp:
    """Returns the app of the HTTP port; ``operator`` serves the unlisted paths below ``/operator``.

    ``mcp`` and ``sse`` get the requested toolset, or None, in the scope's ``toolset``. ``openai`` serves ``/v1/``,
    ``rest`` and ``a2a`` serve the paths of ``rest_request`` and ``a2a_route``, ``platform`` serves paths below
    ``/api/v1/``, and ``registry`` serves the requests for which ``is_registry``, given path and method, is true. With
    ``loopback_only``, requests must address the port by a loopback name. ``sign_ins`` are the routes below ``/oauth``.
    Pages of ``allowed_origins`` may read the responses of all these apps and the OAuth metadata.
    """
    pages = Starlette(
        routes=[
            Route("/", _index if dashboard is None else _first_page),
            Route("/healthz", _alive),
            Route("/readyz", _readiness(health)),
            Route("/health", _agent_health(agent_health)),
            Route("/metrics", _metrics(metrics, metrics_of_all)),
            Route(WELL_KNOWN, _resource(resource)),
            Route(f"{WELL_KNOWN}/{{path:path}}", _resource(resource)),
            *sign_ins,
            Mount("/operator", operator),
        ],
        exception_handlers=REFUSALS,
    )
    origins = frozenset(origin.encode() for origin in allowed_origins)
    apps: dict[str | None, ASGIApp] = {"openai": openai, "rest": rest, "platform": platform, "a2a": a2a}
    if dashboard is not None:
        apps["dashboard"] = dashboard

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        host, origin = b"", None
        for name, value in scope["headers"]:
            if name == b"host":
                host = value
            elif name == b"origin":
                origin = value
        if loopback_only and not _names_loopback(host):
            refused = refusal(403, "PERMISSION_DENIED", "address this port as 127.0.0.1, [::1] or localhost")
            await refused(scope, receive, send)
            return
        path: str = scope["path"]
        method = scope["method"]
        root = _mcp_root(path)
        if root is not None:
            app, scope["toolset"] = mcp if root == "/mcp" else sse, path[len(root) + 1 :] or None
        else:
            app = registry if is_registry(path, method) else apps.get(_protocol(path, method), pages)
        if origin in origins and (app is not pages or path.startswith(WELL_KNOWN)):
            if is_preflight(method, scope["headers"]):
                await answer_preflight(send, origin)
                return
            send = shared_with(send, origin)
        await app(scope, receive, send)

    return serve


def _protocol(path: str, method: str) -> str | None:
    """The protocol, other than MCP, to which a path belongs; None for a page of the port."""
    if path.startswith("/v1/"):
        return "openai"
    if path.startswith("/api/v1/"):
        return "platform"
    if is_rest_path(path):
        return "rest"
    if path == "/ui" or path.startswith("/ui/"):
        return "dashboard"
    return "a2a" if is_a2a_path(path) or (path == "/" and method == "POST") else None


def _mcp_root(path: str) -> str | None:
    """``/mcp`` or ``/sse`` for these paths and toolsets below them; ``/messages`` for messages of a stream; otherwise
    None.
    """
    for root in ("/mcp", "/sse", "/messages"):
        if path == root or (path.startswith(f"{root}/") and "/" not in path[len(root) + 1 :]):
            return root
    return None


@lru_cache(maxsize=64)
def _names_loopback(host: bytes) -> bool:
    """Whether a ``Host`` header is a loopback name. Any other name may belong to a web page (DNS rebinding)."""
    return is_loopback(host_name(host.decode("latin-1")))


async def _index(_: Request) -> Response:
    return JSONResponse(
        {
            "server": "toold",
            "version": __version__,
            "paths": {
                "/healthz": "200 while the process runs",
                "/readyz": "200 if calls are accepted, otherwise 503 with the reasons",
                "/metrics": "metrics in the Prometheus text format",
            },
            "mcp": "POST /mcp or /mcp/{toolset}: the Model Context Protocol, over Streamable HTTP",
            "rest": "POST /tools/{name}: a call of a tool; GET /openapi.json describes the tools",
            "openai": "/v1: OpenAI's API; the token is the API key",
            "a2a": "/agents: the hosted agents, for clients of A2A 1.0 and 0.3",
            "platform": "/api/v1: the platform API",
            "registry": "/registry: the registry of agents, if it is served",
            "ui": "/ui: the dashboard, for browsers",
        }
    )


async def _first_page(request: Request) -> Response:
    """The dashboard for browsers, the index for others."""
    if "text/html" in request.headers.get("accept", ""):
        return RedirectResponse("/ui/now", 307, {"cache-control": "no-store", "vary": "accept"})
    return await _index(request)


async def _alive(_: Request) -> Response:
    return JSONResponse({"status": "alive"})


def _readiness(health: Health) -> Callable[[Request], Any]:
    async def readiness(_: Request) -> Response:
        state = health()
        return JSONResponse(msgspec.to_builtins(state), 200 if state["status"] == "ready" else 503)

    return readiness


def _agent_health(health: AgentHealth) -> Callable[[Request], Any]:
    async def agent_health(request: Request) -> Response:
        state = health()
        if state is None:
            return await _not_found(request, HTTPException(404))
        return JSONResponse(state, 200 if state["status"] == "healthy" else 503)

    return agent_health


def _metrics(
    render: Callable[[], bytes], render_all: Callable[[], Awaitable[bytes]] | None
) -> Callable[[Request], Any]:
    async def metrics(request: Request) -> Response:
        if render_all is not None and request.query_params.get("nodes") == "all":
            return Response(await render_all(), media_type=CONTENT_TYPE)
        return Response(render(), media_type=CONTENT_TYPE)

    return metrics


def _resource(metadata: Metadata) -> Callable[[Request], Any]:
    async def resource(request: Request) -> Response:
        document = metadata(request.url.path.removeprefix(WELL_KNOWN).rstrip("/"))
        return await _not_found(request, HTTPException(404)) if document is None else JSONResponse(document)

    return resource


async def _not_found(request: Request, _: Exception) -> Response:
    return refusal(404, "NOT_FOUND", f"{request.url.path[:100]} does not exist; / lists the paths")


async def _method_not_allowed(request: Request, error: Exception) -> Response:
    allowed = error.headers["Allow"] if isinstance(error, HTTPException) and error.headers else "GET"
    return refusal(405, "INVALID_REQUEST", f"{request.url.path[:100]} accepts {allowed} only")


_HOST: Final = re.compile(r"(?:\[([^\[\]]*)\]|([^\[\]:@/]*))(?::[0-9]*)?")

REFUSALS: Final[Mapping[Any, Callable[[Request, Exception], Awaitable[Response]]]] = {
    404: _not_found,
    405: _method_not_allowed,
}


def refusal(status: int, code: str, message: str) -> Response:
    """Returns an error in the format of the HTTP port."""
    return JSONResponse({"error": {"code": code, "message": message}}, status)


def host_name(host: str) -> str:
    """Returns the host name or address in a ``Host`` header, without the port; empty if the header is malformed."""
    parts = _HOST.fullmatch(host)
    return (parts[1] or parts[2]).removesuffix(".").lower() if parts else ""


_ALLOWED_HEADERS: Final = (
    b"a2a-version, last-event-id, if-match, if-none-match, "
    b"accept, authorization, content-type, mcp-method, mcp-name, mcp-protocol-version, mcp-session-id, "
    b"toold-result-text, traceparent, idempotency-key, openai-organization, openai-project, x-stainless-arch, "
    b"x-stainless-lang, x-stainless-os, x-stainless-package-version, x-stainless-retry-count, x-stainless-runtime, "
    b"x-stainless-runtime-version, x-stainless-timeout"
)
"""Headers that start with ``x-stainless-`` come from OpenAI's SDK in a browser."""
_ALLOWED: Final = (
    (b"access-control-allow-methods", b"GET, POST, PUT, PATCH, DELETE"),
    (b"access-control-allow-headers", _ALLOWED_HEADERS),
    (b"access-control-max-age", b"600"),  # the longest delay of a changed setting
)
_EXPOSED: Final = (
    b"access-control-expose-headers",
    (
        b"etag, mcp-session-id, retry-after, retry-after-ms, toold-metadata, www-authenticate, x-request-id, "
        b"x-should-retry"
    ),
)
"""The headers that a page may read."""
_VARY: Final = (b"vary", b"origin")


def is_preflight(method: str, headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether the request is a CORS preflight."""
    return method == "OPTIONS" and any(name == b"access-control-request-method" for name, _ in headers)


async def answer_preflight(send: Send, origin: bytes) -> None:
    """Allows the page of this origin to send MCP requests. Browsers send no token with a preflight."""
    headers = [(b"access-control-allow-origin", origin), *_ALLOWED, _VARY]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body"})


def shared_with(send: Send, origin: bytes) -> Send:
    """Returns a ``send`` that lets the page of this origin read the response, errors included."""

    async def share(message: Message) -> None:
        if message["type"] == "http.response.start":
            allowed = (b"access-control-allow-origin", origin)
            message = {**message, "headers": [*message["headers"], allowed, _EXPOSED, _VARY]}
        await send(message)

    return share
