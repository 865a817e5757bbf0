"""Signing in and out: the sign-in page, the links of ``toold ui``, the cookie."""

from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ....protocol.authorization import Authenticate, AuthorizationDenied
from ...access import hash_of
from ..http_io import BodyTooLargeError
from .browser_sessions import SESSION_S, BrowserSessions
from .dashboard_port import Viewer
from .page_answers import PageAnswers
from .page_guard import Form, PageGuard, cookie_name, own_path, read_form
from .sign_in_rate import SignInRate

COOKIE_S: Final = 2 * SESSION_S
"""How long a browser keeps the cookie: longer than the session, so that the sign-in page can say that it has ended."""


class BrowserSignIn:
    """Signs browsers in."""

    def __init__(self, answers: PageAnswers, sessions: BrowserSessions, authenticate: Authenticate) -> None:
        self._answers = answers
        self._sessions = sessions
        self._authenticate = authenticate
        self._rate = SignInRate()

    def routes(self, guard: PageGuard) -> list[Route]:
        async def sign_in(request: Request) -> Response:
            return await self._sign_in(request, guard)

        return [
            Route("/ui/sign-in", sign_in, methods=["GET", "POST"]),
            Route("/ui/open", self._open),
            Route("/ui/sign-out", guard.action(self._sign_out), methods=["POST"]),
        ]

    def signed_in(self, request: Request, token_sha256: str, target: str) -> Response:
        """Redirects to a page, with the cookie of a new session."""
        response = RedirectResponse(target, 303)
        secure = request.url.scheme == "https" or request.headers.get("x-forwarded-proto") == "https"
        response.set_cookie(
            cookie_name(request, self._sessions),
            self._sessions.create(token_sha256),
            max_age=int(COOKIE_S),
            path="/ui",
            secure=secure,
            httponly=True,
            samesite="strict",
        )
        return response

    async def _sign_in(self, request: Request, guard: PageGuard) -> Response:
        target = own_path(request.query_params.get("next", ""))
        if request.method == "GET":
            return self._answers.sign_in(target, ended=guard.has_ended(request))
        if not guard.is_own_origin(request):
            return self._answers.message("Refused", "This request comes from a page of another site.", 403)
        try:
            form = await read_form(request)
        except (BodyTooLargeError, TimeoutError, ValueError):
            form = {}
        target = own_path(form.get("next", ""))
        token = form.get("token", "").strip()
        if not token:
            return self._answers.sign_in(target, problem="Enter a token.", status=400)
        wait_s = self._rate.wait_s(request.client.host if request.client else "")
        if wait_s:
            problem = f"Too many attempts; try again in {wait_s:.0f} s."
            response = self._answers.sign_in(target, problem=problem, status=429)
            response.headers["retry-after"] = f"{wait_s:.0f}"
            return response
        access = await self._authenticate(token)
        if isinstance(access, AuthorizationDenied):
            return self._answers.sign_in(target, problem=f"The token is {access.message}", status=401)
        if access.expires_at is not None and not access.credential:
            problem = "Sign in with a token of the daemon, not one of an OAuth issuer."
            return self._answers.sign_in(target, problem=problem, status=401)
        return self.signed_in(request, hash_of(token), target)

    async def _open(self, request: Request) -> Response:
        """Opens a link of `toold ui`."""
        token_sha256 = self._sessions.redeem_link(request.query_params.get("code", ""))
        if token_sha256 is None:
            text = "A link works once, within a minute. Run `toold ui` again, or sign in."
            return self._answers.message("This link has ended", text, 410)
        return self.signed_in(request, token_sha256, "/ui/now")

    async def _sign_out(self, request: Request, viewer: Viewer, _: Form) -> Response:
        self._sessions.end(viewer.secret)
        response = RedirectResponse("/ui/sign-in", 303)
        response.delete_cookie(cookie_name(request, self._sessions), path="/ui")
        response.headers["clear-site-data"] = '"cache"'
        return response
