"""The ASGI app of ``/ui``: its routes, and the headers of all its responses."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route, Router
from starlette.types import Message, Receive, Scope, Send

from ....dashboard import Assets, Pages
from ....protocol.authorization import Authenticate, Authorization, AuthorizationDenied
from ....protocol.error_codes import CallError
from ..http_intake import HttpIntake
from ..request_guard import RequestRefused
from .agent_pages import AgentPages
from .browser_sessions import BrowserSessions
from .browser_sign_in import BrowserSignIn
from .call_pages import CallPages
from .cost_pages import CostPages
from .daemon_pages import DaemonPages
from .dashboard_port import DashboardPorts, Viewer
from .live_feed import LiveFeed
from .page_answers import PageAnswers
from .page_guard import PageGuard
from .source_pages import SourcePages
from .tool_pages import ToolPages

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Images of results are shown from memory (``blob:``), which pages of other origins cannot address."""
_HEADERS: Final = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_NO_STORE: Final = (b"cache-control", b"no-store")


class DashboardServer:
    """Serves ``/ui/…``. ``by_hash`` is ``Authenticator.by_hash``."""

    def __init__(
        self,
        pages: Pages,
        assets: Assets,
        ports: DashboardPorts,
        feed: LiveFeed,
        sessions: BrowserSessions,
        intake: HttpIntake,
        *,
        authenticate: Authenticate,
        by_hash: Callable[[str], Authorization | AuthorizationDenied],
        origins: tuple[str, ...],
        has_auth: bool,
    ) -> None:
        self._assets = assets
        self._feed = feed
        self._intake = intake
        self._ports = ports
        self._answers = answers = PageAnswers(pages, signs_out=has_auth)
        sign_in = BrowserSignIn(answers, sessions, authenticate)

        def sign_in_unasked(request: Request) -> Response:
            return sign_in.signed_in(request, "", str(request.url.path))

        self._guard = guard = PageGuard(
            answers,
            sessions,
            intake,
            by_hash=by_hash,
            origins=origins,
            attention=self._attention,
            sign_in_unasked=None if has_auth else sign_in_unasked,
        )
        self._calls = CallPages(answers, ports.calls, ports.results, feed)
        self._router = Router(
            [
                Route("/ui", self._first_page),
                Route("/ui/", self._first_page),
                Route("/ui/assets/{name}", self._asset),
                Route("/ui/session", guard.page(self._session)),
                *sign_in.routes(guard),
                *self._calls.routes(guard),
                *ToolPages(answers, ports.calls, ports.router).routes(guard),
                *CostPages(answers, ports.cost).routes(guard),
                *AgentPages(answers, ports.agents).routes(guard),
                *DaemonPages(answers, ports.daemon).routes(guard),
                *SourcePages(answers, ports.sources).routes(guard),
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

        async def refuse(refused: RequestRefused, *, close: bool) -> None:
            response = self._answers.problem("Refused", refused.message, refused.status)
            if close:
                response.headers["connection"] = "close"
            await response(scope, receive, protected)

        async with self._intake.serving(refuse):
            await self._router(scope, receive, protected)

    def viewer_is_valid(self, viewer: Viewer) -> bool:
        """Whether a viewer is still signed in, with the rights that it had."""
        return self._guard.is_valid(viewer)

    def live_now(self, viewer: Viewer, ended: list[dict[str, Any]]) -> dict[str, str]:
        """``CallPages.live_now``."""
        return self._calls.live_now(viewer, ended)

    def live_call(self, viewer: Viewer, call_id: str) -> dict[str, str] | None:
        """``CallPages.live_call``."""
        return self._calls.live_call(viewer, call_id)

    async def _attention(self, viewer: Viewer) -> dict[str, int]:
        """The items that wait for the viewer: changed tools to approve, and requests of runs of agents."""
        waiting = {}
        if viewer.operator:
            waiting["sources"] = sum(state["quarantined"] for state in self._ports.sources.states())
        with suppress(CallError):  # the database may not be readable; a page that needs it reports this
            calls = await self._ports.agents.waiting(viewer)
            waiting["agents"] = sum(len(call["requests"]) for call in calls if call["own"])
        return waiting

    async def _first_page(self, _: Request) -> Response:
        return RedirectResponse("/ui/now", 307)

    async def _asset(self, request: Request) -> Response:
        asset = self._assets.find(request.path_params["name"])
        if asset is None:
            return self._answers.missing()
        compresses = "gzip" in request.headers.get("accept-encoding", "")
        headers = {"cache-control": "public, max-age=31536000, immutable", "vary": "accept-encoding"}
        if compresses:
            headers["content-encoding"] = "gzip"
        body = asset.compressed if compresses else asset.content
        return Response(body, media_type=asset.media_type, headers=headers)

    async def _session(self, _: Request, __: Viewer) -> Response:
        """Whether the browser is signed in."""
        return Response(status_code=204)

    async def _unknown(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._answers.missing()(scope, receive, send)
