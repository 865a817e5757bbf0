"""The operator API of the HTTP port, ``/operator/…``, for commands on this machine that send the daemon's token or a
named token with the operator right."""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, Protocol

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...protocol.authorization import Authenticate, AuthorizationDenied
from ...protocol.daemon_address import is_loopback
from ...protocol.error_codes import CallError, ErrorCode, InvalidArgumentsError
from ...protocol.user_credential import USER_HEADER
from .http_port import REFUSALS, host_name, refusal

MAX_RECENT: Final = 100
"""The maximum number of ended calls in one response; ``toold audit`` shows all."""

MAX_BODY_BYTES: Final = 64 * 1024
"""The limit of a request body, which is the answer of an authorization server."""

_STATUS: Final = {
    ErrorCode.NOT_FOUND: HTTPStatus.NOT_FOUND,
    ErrorCode.VALIDATION_ERROR: HTTPStatus.BAD_REQUEST,
    ErrorCode.SERVICE_UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
}
"""The HTTP status of the errors that ``OperatorPort`` raises; 500 for all others."""

_FORWARDED: Final = ("forwarded", "via", "x-forwarded-for", "x-real-ip")
"""Headers by which a proxy forwards its peer's address."""

Endpoint = Callable[[Request], Awaitable[dict[str, Any]]]


class SignInOperations(Protocol):
    """The operator's sign-ins to sources. Each method raises a ``CallError`` if it fails."""

    async def begin_daemon(self, source: str, redirect_uri: str) -> dict[str, Any]: ...

    async def finish_daemon(self, answer: Mapping[str, Any]) -> dict[str, Any]: ...

    async def sign_out(self, source: str, principal: str | None) -> dict[str, Any]: ...


class OperatorPort(Protocol):
    """The operations. Each method raises a ``CallError`` if it fails."""

    @property
    def sign_ins(self) -> SignInOperations: ...

    async def calls(self, recent: int) -> dict[str, Any]: ...

    async def cancel(self, id_or_prefix: str) -> dict[str, Any]: ...

    async def reload(self) -> dict[str, Any]: ...

    async def settings(self) -> dict[str, Any]: ...

    async def sources(self) -> dict[str, Any]: ...

    async def registry(self) -> dict[str, Any]: ...

    async def registered_agent(self, name: str) -> dict[str, Any]: ...

    async def quarantined(self, source: str) -> dict[str, Any]: ...

    async def approve(self, source: str, tool: str, version: str) -> dict[str, Any]: ...

    async def ui_link(self) -> dict[str, Any]: ...

    async def stubs(self, toolset: str) -> dict[str, Any]: ...


def operator_app(operations: OperatorPort, *, authenticate: Authenticate, host: str) -> ASGIApp:
    """Returns the app below ``/operator``; ``host`` is the address of the HTTP port in the settings."""

    async def calls(request: Request) -> dict[str, Any]:
        return await operations.calls(_recent(request))

    async def cancel(request: Request) -> dict[str, Any]:
        return await operations.cancel(request.path_params["id"])

    async def registered_agent(request: Request) -> dict[str, Any]:
        return await operations.registered_agent(request.path_params["name"])

    async def approve(request: Request) -> dict[str, Any]:
        query = request.query_params
        return await operations.approve(request.path_params["source"], query.get("tool", ""), query.get("version", ""))

    async def quarantined(request: Request) -> dict[str, Any]:
        return await operations.quarantined(request.path_params["source"])

    async def stubs(request: Request) -> dict[str, Any]:
        return await operations.stubs(request.path_params["toolset"])

    routes = [
        Route("/calls", _answer(calls)),
        Route("/settings", _answer(_plain(operations.settings))),
        Route("/sources", _answer(_plain(operations.sources))),
        Route("/registry", _answer(_plain(operations.registry))),
        Route("/registry/{name}", _answer(registered_agent)),
        Route("/sources/{source}/quarantined", _answer(quarantined)),
        Route("/sources/{source}/approve", _answer(approve), methods=["POST"]),
        *_sign_in_routes(operations.sign_ins),
        Route("/stubs/{toolset}", _answer(stubs)),
        Route("/calls/{id:path}/cancel", _answer(cancel), methods=["POST"]),  # ids of child calls contain slashes
        Route("/ui-link", _answer(_plain(operations.ui_link)), methods=["POST"]),
        Route("/reload", _answer(_plain(operations.reload)), methods=["POST"]),
    ]
    return _Guard(Starlette(routes=routes, exception_handlers=REFUSALS), authenticate, host)


def _plain(operation: Callable[[], Awaitable[dict[str, Any]]]) -> Endpoint:
    """The endpoint of an operation without parameters."""
    return lambda _: operation()


def _sign_in_routes(sign_ins: SignInOperations) -> list[Route]:
    async def login(request: Request) -> dict[str, Any]:
        redirect_uri = request.query_params.get("redirect_uri", "")
        return await sign_ins.begin_daemon(request.path_params["source"], redirect_uri)

    async def finish_login(request: Request) -> dict[str, Any]:
        return await sign_ins.finish_daemon(await _object(request))

    async def logout(request: Request) -> dict[str, Any]:
        principal = request.query_params.get("principal")
        return await sign_ins.sign_out(request.path_params["source"], principal)

    return [
        Route("/sources/{source}/login", _answer(login), methods=["POST"]),
        Route("/sources/{source}/logout", _answer(logout), methods=["POST"]),
        Route("/login", _answer(finish_login), methods=["POST"]),
    ]


def _answer(ask: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            return Response(msgspec.json.encode(await ask(request)), media_type="application/json")
        except CallError as error:
            return refusal(_STATUS.get(error.code, HTTPStatus.INTERNAL_SERVER_ERROR), error.code, error.message)

    return endpoint


async def _object(request: Request) -> dict[str, Any]:
    read = bytearray()
    async for part in request.stream():
        read += part
        if len(read) > MAX_BODY_BYTES:
            raise InvalidArgumentsError("The body is too long.")
    try:
        return msgspec.json.decode(bytes(read), type=dict[str, Any])
    except msgspec.DecodeError:
        raise InvalidArgumentsError("The body must be a JSON object.") from None


def _recent(request: Request) -> int:
    text = request.query_params.get("recent", "0")
    if not (text.isascii() and text.isdigit() and len(text) < 4 and int(text) <= MAX_RECENT):
        raise InvalidArgumentsError(f"recent: must be a number from 0 to {MAX_RECENT}.")
    return int(text)


class _Guard:
    """Admits requests from this machine whose token has the operator right and that do not come from a web page.

    Requests from elsewhere are refused even with the token, because it would have crossed a network in plain text.
    """

    def __init__(self, app: ASGIApp, authenticate: Authenticate, host: str) -> None:
        self._app = app
        self._authenticate = authenticate
        self._host = host.lower()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def uncached(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["cache-control"] = "no-store"
            await send(message)

        await (await self._refusal(Request(scope)) or self._app)(scope, receive, uncached)

    async def _refusal(self, request: Request) -> Response | None:
        if not _is_local(request):
            return refusal(403, "PERMISSION_DENIED", "the operator API accepts requests from the daemon's machine only")
        if "origin" in request.headers or not self._is_named(request):
            return refusal(403, "PERMISSION_DENIED", "the operator API does not accept requests of web pages")
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        access = await self._authenticate(token if scheme.lower() == "bearer" else None)
        if isinstance(access, AuthorizationDenied):
            refused = refusal(401, "UNAUTHORIZED", "send the daemon's token: Authorization: Bearer …")
            refused.headers["www-authenticate"] = "Bearer"
            return refused
        if USER_HEADER in request.headers:
            return refusal(403, "PERMISSION_DENIED", "the operator API acts for no user; omit X-User-Id")
        if not access.principal.operator:
            return refusal(403, "PERMISSION_DENIED", "this token has no operator right; use the daemon's token")
        return None

    def _is_named(self, request: Request) -> bool:
        """Whether ``Host`` names this machine and is safe from DNS rebinding."""
        name = host_name(request.headers.get("host", ""))
        return is_loopback(name) or name in {request.scope["server"][0], self._host}


def _is_local(request: Request) -> bool:
    """Whether the peer is a process on this machine: its own address is loopback or equals the address it connected to.
    Requests forwarded by a proxy are not local, wherever the proxy runs."""
    client, server = request.client, request.scope["server"]
    if client is None or any(name in request.headers for name in _FORWARDED):
        return False
    return is_loopback(client.host) or client.host == server[0]
