"""The pages ``/oauth/…`` of the HTTP port, on which a user signs in to a source: the page of the link and the page of
the redirect.

They need no token: the link is the proof, and a cookie binds the sign-in to the browser that started it. The button of
the page uses up the link. Opening the page does not, since programs open links to show previews.
"""

import html
import secrets
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ...protocol.error_codes import CallError
from ...sources import DAEMON_SIGN_IN

COOKIE: Final = "toold_sign_in"
_COOKIE_S: Final = 600
_HEADERS: Final = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
}
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
_MAX_VALUE_CHARS: Final = 8192
_TAKEN: Final = ("state", "code", "iss", "error")


class SignInPort(Protocol):
    """The sign-ins. Each method raises a ``CallError`` if it fails."""

    def describe(self, key: str) -> tuple[str, str, str] | None:
        """The source, its host and the principal of a valid link."""
        ...

    async def start(self, key: str, browser: str) -> str:
        """Uses up the link. Returns the address to redirect the browser to."""
        ...

    async def finish(self, answer: dict[str, str], browser: str | None) -> str:
        """Completes the sign-in. Returns the source's name."""
        ...


def sign_in_routes(port: SignInPort) -> list[Route]:
    """The routes below ``/oauth``."""

    async def link(request: Request) -> Response:
        key = request.path_params["key"]
        described = port.describe(key)
        if described is None:
            return _page(404, "This link was used or is too old.", "Make the call again for a new one.")
        if request.method != "POST":
            source, host, principal = described
            who = "the user of this machine" if principal == "local" else principal
            text = (
                f"You connect {source} ({host}) to toold. From then on, calls of {who} are made there in your name. "
                f"Continue only if you are {who}, and asked for this."
            )
            if principal == DAEMON_SIGN_IN:
                text = (
                    f"You connect {source} ({host}) to toold. From then on, the daemon calls it in your name, for all "
                    "of its callers. Continue only if you asked for this."
                )
            return _page(200, f"Sign in to {source}", text, button="Continue")
        if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
            return _page(403, "This page was opened by another site.", "Open the link of the call's error instead.")
        browser = secrets.token_urlsafe(32)
        answer = RedirectResponse(await port.start(key, browser), 303, _HEADERS)
        secure = request.headers.get("x-forwarded-proto", request.url.scheme) == "https"
        answer.set_cookie(COOKIE, browser, _COOKIE_S, path="/oauth", secure=secure, httponly=True, samesite="lax")
        return answer

    async def callback(request: Request) -> Response:
        query = request.query_params
        if any(len(query.getlist(name)) > 1 or len(query.get(name, "")) > _MAX_VALUE_CHARS for name in _TAKEN):
            return _page(400, "This answer is malformed.", "Start the sign-in again.")
        answer = {name: query[name] for name in _TAKEN if name in query}
        answer["issuer_path"] = request.path_params.get("issuer_path", "")
        source = await port.finish(answer, request.cookies.get(COOKIE))
        page = _page(200, f"Signed in to {source}.", "You can close this page, and make the call again.")
        page.delete_cookie(COOKIE, path="/oauth")
        return page

    return [
        Route("/oauth/sign-in/{key}", _worded(link), methods=["GET", "POST"]),
        Route("/oauth/callback", _worded(callback)),
        Route("/oauth/callback/{issuer_path}", _worded(callback)),
    ]


def _worded(endpoint: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    async def worded(request: Request) -> Response:
        try:
            return await endpoint(request)
        except CallError as error:
            return _page(400, "You are not signed in.", error.message)

    return worded


def _page(status: int, title: str, text: str, *, button: str | None = None) -> Response:
    form = "" if button is None else f'<form method="post"><button>{html.escape(button)}</button></form>'
    body = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>toold</title><style>body{{font:16px sans-serif;max-width:36em;margin:4em auto;padding:0 1em}}</style>"
        f"<h1>{html.escape(title)}</h1><p>{html.escape(text)}</p>{form}</html>"
    )
    # No form-action: browsers apply it to the redirect too, which leads to the authorization server.
    return Response(body, status, {**_HEADERS, "content-security-policy": _POLICY}, "text/html; charset=utf-8")
