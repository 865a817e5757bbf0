"""Decides who may see a page and send an action: cookie ▸ origin and CSRF token of actions ▸ endpoint."""

import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl, quote, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ....protocol.authorization import Authorization, AuthorizationDenied
from ....protocol.error_codes import CallError, ErrorCode
from ....serving import PEER
from ..http_intake import HttpIntake
from ..http_io import BodyTooLargeError, read_body
from .browser_sessions import BrowserSessions, is_csrf_token
from .dashboard_port import Viewer
from .page_answers import PageAnswers

FORM_BYTES: Final = 64 * 1024
MAX_FORM_FIELDS: Final = 5_000
_STATUS: Final = {
    ErrorCode.NOT_FOUND: HTTPStatus.NOT_FOUND,
    ErrorCode.TOOL_NOT_FOUND: HTTPStatus.NOT_FOUND,
    ErrorCode.VALIDATION_ERROR: HTTPStatus.BAD_REQUEST,
    ErrorCode.PERMISSION_DENIED: HTTPStatus.FORBIDDEN,
    ErrorCode.SERVICE_UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
}

Form = Mapping[str, str]
Endpoint = Callable[[Request, Viewer], Awaitable[Response]]
ActionEndpoint = Callable[[Request, Viewer, Form], Awaitable[Response]]
Handler = Callable[[Request], Awaitable[Response]]


class PageGuard:
    """Wraps the endpoints of pages and actions. ``by_hash`` is ``Authenticator.by_hash``."""

    def __init__(
        self,
        answers: PageAnswers,
        sessions: BrowserSessions,
        intake: HttpIntake,
        *,
        by_hash: Callable[[str], Authorization | AuthorizationDenied],
        origins: tuple[str, ...],
        attention: Callable[[Viewer], Awaitable[Mapping[str, int]]],
        sign_in_unasked: Callable[[Request], Response] | None,
    ) -> None:
        """``attention`` returns ``Viewer.attention``. ``sign_in_unasked`` signs each visitor in, if the daemon requires
        no token.
        """
        self._answers = answers
        self._sessions = sessions
        self._intake = intake
        self._by_hash = by_hash
        self._origins = origins
        self._attention = attention
        self._sign_in_unasked = sign_in_unasked

    def is_valid(self, viewer: Viewer) -> bool:
        """Whether a viewer is still signed in, with the rights that it had."""
        current = self._viewer_of(viewer.secret)
        return current is not None and current.access == viewer.access and current.operator == viewer.operator

    def page(self, endpoint: Endpoint, *, operators: bool = False) -> Handler:
        """An endpoint for signed-in browsers; with ``operators``, only for those of operators."""

        async def page(request: Request) -> Response:
            viewer = self._viewer_of(request.cookies.get(cookie_name(request, self._sessions), ""))
            if viewer is None and self._sign_in_unasked is not None:
                return self._sign_in_unasked(request)
            if viewer is None:
                return self._refuse_signed_out(request)
            if operators and not viewer.operator:
                return self._answers.missing()
            refused = self._intake.refuse_excess(request.scope["state"][PEER])
            if refused is not None:
                return self._answers.message("The daemon is busy", refused.message, refused.status)
            if shows_page(request):
                viewer = dataclasses.replace(viewer, attention=await self._attention(viewer))
            try:
                return await endpoint(request, viewer)
            except CallError as error:
                status = _STATUS.get(error.code, HTTPStatus.INTERNAL_SERVER_ERROR)
                return self._answers.problem("This did not work", error.message, status)

        return page

    def action(self, endpoint: ActionEndpoint, *, large: bool = False, operators: bool = False) -> Handler:
        """An endpoint with an effect, only for forms of the dashboard's pages.

        ``large``: the form may be as large as a call's arguments.
        """

        async def action(request: Request, viewer: Viewer) -> Response:
            if not self.is_own_origin(request):
                return self._answers.message("Refused", "This request comes from a page of another site.", 403)
            try:
                form = await self._large_form(request, viewer) if large else await read_form(request)
            except BodyTooLargeError:
                return self._answers.problem("Too large", "This form is too large.", 413)
            except ValueError:
                return self._answers.problem("Refused", "This form cannot be read.", 400)
            presented = request.headers.get("x-csrf-token") or form.get("csrf", "")
            if not is_csrf_token(viewer.secret, presented):
                text = "You have signed in again since this page was opened; reload it, and try again."
                return self._answers.problem("This page is out of date", text, 403, back=_came_from(request))
            return await endpoint(request, viewer, form)

        return self.page(action, operators=operators)

    def is_own_origin(self, request: Request) -> bool:
        """Whether a page of this server sent the request, according to the browser; pages cannot forge these
        headers."""
        site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
        if site is not None:
            return site == "same-origin"
        if origin is None or origin in self._origins:
            return True
        try:
            return urlsplit(origin).netloc.lower() == page_host(request).lower() != ""
        except ValueError:
            return False

    def has_ended(self, request: Request) -> bool:
        """Whether the browser was signed in, and its session has ended: it expired, or its token is no longer valid."""
        secret = request.cookies.get(cookie_name(request, self._sessions), "")
        return secret != "" and self._viewer_of(secret) is None

    def _refuse_signed_out(self, request: Request) -> Response:
        """The answer to a browser that is not signed in: it never was, or its session has ended."""
        if not shows_page(request):
            return self._answers.problem("Signed out", "Your session has ended; reload this page and sign in.", 401)
        if request.method in {"GET", "HEAD"}:
            return RedirectResponse(f"/ui/sign-in?next={quote(_path_and_query(str(request.url)))}", 303)
        # The form of a page that was open when the session ended: the sign-in leads back to that page.
        target = _came_from(request)
        problem = "Your session has ended, so this was not done. Sign in, and do it again."
        return self._answers.sign_in(target, problem=problem, status=401)

    def _viewer_of(self, secret: str) -> Viewer | None:
        session = self._sessions.find(secret) if secret else None
        if session is None:
            return None
        access = self._by_hash(session.token_sha256)
        return None if isinstance(access, AuthorizationDenied) else Viewer(access, secret)

    async def _large_form(self, request: Request, viewer: Viewer) -> Form:
        if not _is_form(request):
            return {}
        form, _ = await self._intake.receive(request.receive, viewer.name, _decode, _decode, whole=False)
        return form


def shows_page(request: Request) -> bool:
    """Whether the answer is a whole page, not something for a script of a page."""
    path = request.url.path
    streams = path == "/ui/live" or path.startswith("/ui/live/")
    return not streams and path != "/ui/session" and "hx-request" not in request.headers


def own_path(path: str) -> str:
    """The path of a page of the dashboard, with its query; the first page for any other path."""
    return path if path.startswith("/ui/") and "\\" not in path and path.isprintable() else "/ui/now"


def _came_from(request: Request) -> str:
    """The page from which a form was sent."""
    return own_path(_path_and_query(request.headers.get("referer", "")))


def _path_and_query(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def page_host(request: Request) -> str:
    """The host and port that the browser requested; a proxy forwards them. No page can set this header."""
    return request.headers.get("x-forwarded-host") or request.headers.get("host", "")


def cookie_name(request: Request, sessions: BrowserSessions) -> str:
    """The name of the cookie on the requested port."""
    return sessions.cookie_name(request.scope["server"][1])


async def read_form(request: Request) -> Form:
    """The fields of a form; none if the body is not a form.

    Raises:
        BodyTooLargeError: it has more than ``FORM_BYTES``.
        ValueError: it cannot be read.
        ClientDisconnectedError, TimeoutError: it did not arrive.
    """
    return _decode(await read_body(request.receive, FORM_BYTES)) if _is_form(request) else {}


def _is_form(request: Request) -> bool:
    return request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded")


def _decode(body: bytes) -> Form:
    return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS))
