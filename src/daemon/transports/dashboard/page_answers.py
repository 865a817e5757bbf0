"""The responses of the dashboard: rendered pages and messages."""

from typing import Any

from starlette.responses import Response

from ....dashboard import Pages
from .browser_sessions import csrf_token
from .dashboard_port import Viewer


class PageAnswers:
    """Renders pages for viewers. ``signs_out``: whether viewers sign in and out."""

    def __init__(self, pages: Pages, *, signs_out: bool) -> None:
        self._pages = pages
        self._signs_out = signs_out

    def page(self, template: str, viewer: Viewer, **values: Any) -> Response:
        """A page with the navigation."""
        return _html(
            self._pages.render(
                template, viewer=viewer, csrf=csrf_token(viewer.secret), signs_out=self._signs_out, **values
            )
        )

    def part(self, template: str, viewer: Viewer, **values: Any) -> str:
        """The HTML of a part of a page, which replaces an earlier one."""
        return self._pages.render(template, viewer=viewer, **values)

    def fragment(self, template: str, viewer: Viewer, **values: Any) -> Response:
        """``part`` as a response."""
        return _html(self.part(template, viewer, **values))

    def sign_in(self, target: str, *, ended: bool = False, problem: str = "", status: int = 200) -> Response:
        """The sign-in page, which leads to the page ``target``. ``ended``: whether to say that the session has
        ended."""
        return _html(self._pages.render("sign_in", csrf="", next=target, ended=ended, problem=problem), status)

    def message(self, title: str, text: str, status: int, *, back: str = "") -> Response:
        """A page with a sentence, for a viewer that may not be signed in. It links to the page ``back``, or to the
        first page.
        """
        return _html(self._pages.render("message", csrf="", title=title, text=text, back=back), status)

    def problem(self, title: str, text: str, status: int, *, back: str = "") -> Response:
        """Like ``message``; the script of an action shows the text as a notice."""
        response = self.message(title, text, status, back=back)
        response.headers["toold-problem"] = text.encode("ascii", "replace").decode().replace("\n", " ")[:300]
        return response

    def missing(self) -> Response:
        return self.message("Not found", "There is no such page, or you may not see it.", 404)


def _html(text: str, status: int = 200) -> Response:
    return Response(text.encode(errors="replace"), status, media_type="text/html; charset=utf-8")
