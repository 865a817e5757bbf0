"""The page Sources, and the page of a source: its versions, tools and log. For operators."""

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ....dashboard import diff_lines
from .dashboard_port import SourcesPort, Viewer
from .page_answers import PageAnswers
from .page_guard import Form, PageGuard


class SourcePages:
    """The pages of sources."""

    def __init__(self, answers: PageAnswers, data: SourcesPort) -> None:
        self._answers = answers
        self._data = data

    def routes(self, guard: PageGuard) -> list[Route]:
        actions = {
            "approve": self._approve,
            "refresh": self._refresh,
            "sign-in": self._sign_in,
            "sign-out": self._sign_out,
        }
        return [
            Route("/ui/sources", guard.page(self._list, operators=True)),
            Route("/ui/sources/{name}", guard.page(self._source, operators=True)),
            *(
                Route(f"/ui/sources/{{name}}/{path}", guard.action(endpoint, operators=True), methods=["POST"])
                for path, endpoint in actions.items()
            ),
        ]

    async def _list(self, _: Request, viewer: Viewer) -> Response:
        return self._answers.page("sources", viewer, current="sources", sources=self._data.states())

    async def _source(self, request: Request, viewer: Viewer) -> Response:
        source = self._data.source(request.path_params["name"])
        if source is None:
            return self._answers.missing()
        waiting = [
            {**version, "lines": diff_lines(version["diff"], new=not version["approved"])}
            for version in source["waiting"]
        ]
        return self._answers.page("source", viewer, current="sources", source={**source, "waiting": waiting})

    async def _approve(self, request: Request, viewer: Viewer, form: Form) -> Response:
        name = request.path_params["name"]
        await self._data.approve(viewer, name, form.get("tool", ""), form.get("version", ""))
        return _back(name)

    async def _refresh(self, request: Request, viewer: Viewer, _: Form) -> Response:
        await self._data.refresh(viewer, request.path_params["name"])
        return _back(request.path_params["name"])

    async def _sign_in(self, request: Request, viewer: Viewer, _: Form) -> Response:
        name = request.path_params["name"]
        link = await self._data.sign_in(viewer, name)
        return self._answers.page("source_sign_in", viewer, current="sources", name=name, link=link)

    async def _sign_out(self, request: Request, viewer: Viewer, _: Form) -> Response:
        await self._data.sign_out(viewer, request.path_params["name"])
        return _back(request.path_params["name"])


def _back(name: str) -> Response:
    return RedirectResponse(f"/ui/sources/{quote(name, safe='')}", 303)
