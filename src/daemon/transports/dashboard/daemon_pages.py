"""The pages about the daemon itself: models, sessions, health and settings. For operators, except models."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....protocol.terminal_text import terminal_safe
from .dashboard_port import DaemonPort, Viewer
from .page_answers import PageAnswers
from .page_guard import Form, PageGuard

MAX_FILTER_CHARS = 200
SHOWN_SESSIONS = 500


class DaemonPages:
    """The pages of the daemon."""

    def __init__(self, answers: PageAnswers, data: DaemonPort) -> None:
        self._answers = answers
        self._data = data

    def routes(self, guard: PageGuard) -> list[Route]:
        return [
            Route("/ui/models", guard.page(self._models)),
            Route("/ui/sessions", guard.page(self._sessions, operators=True)),
            Route("/ui/health", guard.page(self._health, operators=True)),
            Route("/ui/health/doctor", guard.action(self._doctor, operators=True), methods=["POST"]),
            Route("/ui/settings", guard.page(self._settings, operators=True)),
        ]

    async def _models(self, _: Request, viewer: Viewer) -> Response:
        return self._answers.page("models", viewer, current="models", **self._data.models())

    async def _sessions(self, _: Request, viewer: Viewer) -> Response:
        sessions = self._data.sessions()
        return self._answers.page(
            "sessions",
            viewer,
            current="sessions",
            sessions=sessions[:SHOWN_SESSIONS],
            total=len(sessions),
            browsers=self._data.browsers(),
        )

    async def _health(self, _: Request, viewer: Viewer) -> Response:
        return self._answers.page("health", viewer, current="health", doctor=None, **await self._data.health(viewer))

    async def _doctor(self, _: Request, viewer: Viewer, __: Form) -> Response:
        checks = await self._data.doctor(viewer)
        health = await self._data.health(viewer)
        return self._answers.page("health", viewer, current="health", doctor=checks, **health)

    async def _settings(self, request: Request, viewer: Viewer) -> Response:
        text = terminal_safe(request.query_params.get("text", "")).strip()[:MAX_FILTER_CHARS]
        only_set = request.query_params.get("show") == "set"
        report = await self._data.settings()
        rows = [
            {"name": name, **row}
            for name, row in report["settings"].items()
            if text.lower() in name.lower() and not (only_set and row["origin"] == "default")
        ]
        return self._answers.page(
            "settings", viewer, current="settings", text=text, only_set=only_set, report=report, rows=rows
        )
