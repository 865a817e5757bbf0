"""The ASGI app of ``/ui``.

cookie ▸ origin and CSRF token of actions ▸ page
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route, Router
from starlette.types import Message, Receive, Scope, Send

from ....dashboard import Assets, Pages
from ....protocol.authorization import Authenticate, Authorization, AuthorizationDenied
from ....protocol.error_codes import CallError, ErrorCode
from ....serving import PEER
from ...access import hash_of
from ..http_intake import HttpIntake
from ..http_io import BodyTooLargeError, ClientDisconnectedError, EventStream, read_body, wait_disconnected
from . import call_detail, call_search_form
from .browser_sessions import SESSION_S, BrowserSessions, csrf_token, is_csrf_token
from .dashboard_port import DashboardPort, Viewer
from .live_feed import LiveFeed, TooManyPagesError
from .sign_in_rate import SignInRate

FORM_BYTES: Final = 64 * 1024
PAGE_CALLS: Final = 100
_STATUS: Final = {
    ErrorCode.NOT_FOUND: HTTPStatus.NOT_FOUND,
    ErrorCode.VALIDATION_ERROR: HTTPStatus.BAD_REQUEST,
    ErrorCode.PERMISSION_DENIED: HTTPStatus.FORBIDDEN,
    ErrorCode.SERVICE_UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
}
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_NO_STORE: Final = (b"cache-control", b"no-store")

Endpoint = Callable[[Request, Viewer], Awaitable[Response]]


class DashboardServer:
    """Serves ``/ui/…``. ``by_hash`` is ``Authenticator.by_hash``."""

    def __init__(
        self,
        pages: Pages,
        assets: Assets,
        data: DashboardPort,
        feed: LiveFeed,
        sessions: BrowserSessions,
        intake: HttpIntake,
        *,
        authenticate: Authenticate,
        by_hash: Callable[[str], Authorization | AuthorizationDenied],
        origins: tuple[str, ...],
        has_auth: bool,
    ) -> None:
        self._pages = pages
        self._assets = assets
        self._data = data
        self._feed = feed
        self._sessions = sessions
        self._intake = intake
        self._authenticate = authenticate
        self._by_hash = by_hash
        self._origins = origins
        self._has_auth = has_auth
        self._rate = SignInRate()
        self._router = Router(
            [
                Route("/ui", self._first_page),
                Route("/ui/", self._first_page),
                Route("/ui/assets/{name}", self._asset),
                Route("/ui/sign-in", self._sign_in, methods=["GET", "POST"]),
                Route("/ui/open", self._open),
                Route("/ui/sign-out", self._action(self._sign_out), methods=["POST"]),
                Route("/ui/session", self._page(self._session)),
                Route("/ui/now", self._page(self._now)),
                Route("/ui/live", self._page(self._live)),
                Route("/ui/calls", self._page(self._calls)),
                Route("/ui/calls/{id:path}/cancel", self._action(self._cancel), methods=["POST"]),
                Route("/ui/calls/{id:path}", self._page(self._call)),
            ],
            default=self._unknown,
        )

    def __repr__(self) -> str:
        return f"<DashboardServer {self._feed!r}>"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message["headers"])
                if not any(name == b"cache-control" for name, _ in headers):
                    headers.append(_NO_STORE)
                message = {**message, "headers": [*headers, *_HEADERS]}
            await send(message)

        async with self._intake.serving(_ignore_refusal):
            await self._router(scope, receive, protected)

    # --- who is it ---------------------------------------------------------------------------------------------------

    def viewer_is_valid(self, viewer: Viewer) -> bool:
        """Whether a viewer is still signed in, with the rights that it had."""
        current = self._viewer_of(viewer.secret)
        return current is not None and current.principal == viewer.principal

    def _viewer_of(self, secret: str) -> Viewer | None:
        session = self._sessions.find(secret) if secret else None
        if session is None:
            return None
        access = self._by_hash(session.token_sha256)
        return None if isinstance(access, AuthorizationDenied) else Viewer(access.principal, secret, access.toolsets)

    def _page(self, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint for browsers that are signed in."""

        async def page(request: Request) -> Response:
            viewer = self._viewer_of(request.cookies.get(_cookie_of(request), ""))
            if viewer is None and not self._has_auth:
                return self._signed_in(request, "", str(request.url.path))
            if viewer is None:
                if request.url.path in {"/ui/session", "/ui/live"} or "hx-request" in request.headers:
                    return Response(status_code=401)
                return RedirectResponse(f"/ui/sign-in?next={quote(request.url.path)}", 303)
            refused = self._intake.refuse_excess(request.scope["state"][PEER])
            if refused is not None:
                return self._message("The daemon is busy", refused.message, refused.status)
            try:
                return await endpoint(request, viewer)
            except CallError as error:
                status = _STATUS.get(error.code, HTTPStatus.INTERNAL_SERVER_ERROR)
                response = self._message("This did not work", error.message, status)
                response.headers["toold-problem"] = error.message.encode("ascii", "replace").decode()[:300]
                return response

        return page

    def _action(self, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint that changes something: only for forms of the dashboard's own pages."""

        async def action(request: Request, viewer: Viewer) -> Response:
            if not self._is_own_origin(request):
                return self._message("Refused", "This request comes from a page of another site.", 403)
            form = await _form_of(request)
            presented = request.headers.get("x-csrf-token") or (form or {}).get("csrf", "")
            if not is_csrf_token(viewer.secret, presented):
                response = self._message("This page is out of date", "Reload it, and try again.", 403)
                response.headers["toold-problem"] = "This page is out of date; reload it, and try again."
                return response
            return await endpoint(request, viewer)

        return self._page(action)

    def _is_own_origin(self, request: Request) -> bool:
        """Whether a page of this server sent the request. Browsers say so; pages cannot change what they say."""
        site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
        if site is not None:
            return site == "same-origin"
        if origin is None or origin in self._origins:
            return True
        try:
            return urlsplit(origin).netloc.lower() == request.headers.get("host", "").lower() != ""
        except ValueError:
            return False

    # --- signing in --------------------------------------------------------------------------------------------------

    async def _sign_in(self, request: Request) -> Response:
        target = _own_path(request.query_params.get("next", ""))
        if request.method == "GET":
            return self._sign_in_page(target)
        if not self._is_own_origin(request):
            return self._message("Refused", "This request comes from a page of another site.", 403)
        form = await _form_of(request)
        target = _own_path((form or {}).get("next", ""))
        token = (form or {}).get("token", "").strip()
        if form is None or not token:
            return self._sign_in_page(target, "Enter a token.", 400)
        wait_s = self._rate.wait_s(request.client.host if request.client else "")
        if wait_s:
            response = self._sign_in_page(target, f"Too many attempts; try again in {wait_s:.0f} s.", 429)
            response.headers["retry-after"] = f"{wait_s:.0f}"
            return response
        access = await self._authenticate(token)
        if isinstance(access, AuthorizationDenied):
            return self._sign_in_page(target, f"The token is {access.message}", 401)
        if access.expires_at is not None and not access.credential:
            return self._sign_in_page(target, "Sign in with a token of the daemon, not one of an OAuth issuer.", 401)
        return self._signed_in(request, hash_of(token), target)

    async def _open(self, request: Request) -> Response:
        """A link of `toold ui`."""
        token_sha256 = self._sessions.redeem_link(request.query_params.get("code", ""))
        if token_sha256 is None:
            return self._message(
                "This link has ended", "A link works once, within a minute. Run `toold ui` again, or sign in.", 410
            )
        return self._signed_in(request, token_sha256, "/ui/now")

    def _signed_in(self, request: Request, token_sha256: str, target: str) -> Response:
        response = RedirectResponse(target, 303)
        secure = request.url.scheme == "https" or request.headers.get("x-forwarded-proto") == "https"
        response.set_cookie(
            _cookie_of(request),
            self._sessions.create(token_sha256),
            max_age=int(SESSION_S),
            path="/ui",
            secure=secure,
            httponly=True,
            samesite="strict",
        )
        return response

    async def _sign_out(self, request: Request, viewer: Viewer) -> Response:
        self._sessions.end(viewer.secret)
        response = RedirectResponse("/ui/sign-in", 303)
        response.delete_cookie(_cookie_of(request), path="/ui")
        response.headers["clear-site-data"] = '"cache"'
        return response

    # --- pages -------------------------------------------------------------------------------------------------------

    async def _first_page(self, _: Request) -> Response:
        return RedirectResponse("/ui/now", 307)

    async def _asset(self, request: Request) -> Response:
        asset = self._assets.find(request.path_params["name"])
        if asset is None:
            return await self._missing()
        compresses = "gzip" in request.headers.get("accept-encoding", "")
        headers = {"cache-control": "public, max-age=31536000, immutable", "vary": "accept-encoding"}
        if compresses:
            headers["content-encoding"] = "gzip"
        body = asset.compressed if compresses else asset.content
        return Response(body, media_type=asset.media_type, headers=headers)

    async def _session(self, _: Request, __: Viewer) -> Response:
        """Whether the browser is signed in."""
        return Response(status_code=204)

    async def _now(self, _: Request, viewer: Viewer) -> Response:
        now = {**self._data.now(viewer.sees), "ended": []}
        return self._render("now", viewer, current="now", now=now)

    async def _live(self, _: Request, viewer: Viewer) -> Response:
        return _EventResponse(self._feed, viewer)

    async def _calls(self, request: Request, viewer: Viewer) -> Response:
        search = call_search_form.read_search(request.query_params)
        page = await self._data.search(search.filter(viewer.sees, time.time()), search.before, PAGE_CALLS)
        rows = [
            {
                "id": call.id,
                "tool": call.tool,
                "outcome": call.outcome,
                "started_at": call.started_at,
                "latency_ms": call.latency_ms,
                "session": call.session_label,
                "principal": call.principal,
            }
            for call in page.calls
        ]
        return self._render(
            "calls",
            viewer,
            current="calls",
            form=search.form,
            problems=search.problems,
            outcomes=call_search_form.OUTCOMES,
            periods=call_search_form.PERIODS,
            tools=self._data.tool_names(viewer),
            calls=rows,
            searched_to=page.searched_to,
            next_url=None if page.before is None else search.url(page.before),
        )

    async def _call(self, request: Request, viewer: Viewer) -> Response:
        call_id = request.path_params["id"]
        running = self._data.running(call_id, viewer.sees)
        if running is not None:
            return self._render("call", viewer, current="calls", **call_detail.running_call(running))
        tree = await self._data.call_tree(call_id, viewer.sees)
        if not any(row.id == call_id for row in tree):
            return await self._missing()
        return self._render("call", viewer, current="calls", **call_detail.ended_call(tree, call_id))

    async def _cancel(self, request: Request, viewer: Viewer) -> Response:
        await self._data.cancel(viewer, request.path_params["id"])
        if "hx-request" in request.headers:
            return Response(status_code=204)
        return RedirectResponse("/ui/now", 303)

    # --- answers -----------------------------------------------------------------------------------------------------

    def live_part(self, viewer: Viewer, ended: list[dict[str, Any]]) -> str:
        """The HTML of the live part of the page Now."""
        return self._pages.render("now_live", viewer=viewer, now={**self._data.now(viewer.sees), "ended": ended})

    def _render(self, template: str, viewer: Viewer, **values: Any) -> Response:
        html = self._pages.render(
            template, viewer=viewer, csrf=csrf_token(viewer.secret), signs_out=self._has_auth, **values
        )
        return _html(html)

    def _sign_in_page(self, target: str, problem: str = "", status: int = 200) -> Response:
        return _html(self._pages.render("sign_in", csrf="", next=target, problem=problem), status)

    def _message(self, title: str, text: str, status: int) -> Response:
        return _html(self._pages.render("message", csrf="", title=title, text=text), status)

    async def _missing(self) -> Response:
        return self._message("Not found", "There is no such page, or you may not see it.", 404)

    async def _unknown(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (await self._missing())(scope, receive, send)


class _EventResponse(Response):
    """The stream of a live page."""

    def __init__(self, feed: LiveFeed, viewer: Viewer) -> None:
        super().__init__()
        self._feed = feed
        self._viewer = viewer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        stream = EventStream(send)

        async def send_events() -> None:
            async for events in self._feed.events(self._viewer):
                await stream.write(events)

        sending = asyncio.create_task(send_events())
        leaving = asyncio.create_task(wait_disconnected(receive))
        try:
            await asyncio.wait([sending, leaving], return_when=asyncio.FIRST_COMPLETED)
            left = leaving.done()
        finally:
            for task in (sending, leaving):
                task.cancel()
            results = await asyncio.gather(sending, leaving, return_exceptions=True)
        if isinstance(results[0], TooManyPagesError):
            refused = Response("Too many live pages are open.", 503, {"retry-after": "5"})
            await refused(scope, receive, send)
        elif isinstance(results[0], Exception):
            raise results[0]
        elif not left:
            await stream.write(b"", last=True)


async def _ignore_refusal(*_: Any, **__: Any) -> None:
    """Forms read their bodies themselves."""


def _cookie_of(request: Request) -> str:
    """Cookies are not separate by port: each daemon of a machine needs another name."""
    return f"toold_{request.scope['server'][1]}"


async def _form_of(request: Request) -> dict[str, str] | None:
    """The fields of a form; None if it cannot be read."""
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        return None
    try:
        body = await read_body(request.receive, FORM_BYTES)
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=100))
    except (BodyTooLargeError, ClientDisconnectedError, TimeoutError, ValueError):
        return None


def _own_path(path: str) -> str:
    """The path of a page of the dashboard; the first page for any other."""
    return path if path.startswith("/ui/") and "\\" not in path and path.isprintable() else "/ui/now"


def _html(text: str, status: int = 200) -> Response:
    return Response(text.encode(errors="replace"), status, media_type="text/html; charset=utf-8")
