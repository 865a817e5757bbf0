"""The pages Now and Calls, the page of a call, and its action Cancel."""

import time
from typing import Any, Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from . import call_detail, call_search_form
from .dashboard_port import DashboardPort, ResultsPort, Viewer
from .event_response import EventResponse
from .live_feed import LiveFeed
from .page_answers import PageAnswers
from .page_guard import Form, PageGuard

PAGE_CALLS: Final = 100


class CallPages:
    """The pages of running and ended calls."""

    def __init__(self, answers: PageAnswers, data: DashboardPort, results: ResultsPort, feed: LiveFeed) -> None:
        self._answers = answers
        self._data = data
        self._results = results
        self._feed = feed

    def routes(self, guard: PageGuard) -> list[Route]:
        return [
            Route("/ui/now", guard.page(self._now)),
            Route("/ui/live", guard.page(self._live)),
            Route("/ui/live/{id:path}", guard.page(self._live)),
            Route("/ui/calls", guard.page(self._calls)),
            Route("/ui/calls/{id:path}/cancel", guard.action(self._cancel), methods=["POST"]),
            Route("/ui/calls/{id:path}", guard.page(self._call)),
        ]

    def live_now(self, viewer: Viewer, ended: list[dict[str, Any]]) -> dict[str, str]:
        """The data of the events of the page Now (``LiveFeed``): its live part as HTML."""
        return {"html": self._answers.part("now_live", viewer, now={**self._data.now(viewer.sees), "ended": ended})}

    def live_call(self, viewer: Viewer, call_id: str) -> dict[str, str] | None:
        """The data of the events of the page of a running call: its live part as HTML, and the ids of the call and its
        running descendants. None if it does not run.
        """
        rows = self._data.running(call_id, viewer.sees)
        if not rows:
            return None
        values = self._running_values(rows)
        return {
            "html": self._answers.part("call_running", viewer, **values),
            "calls": " ".join(row["id"] for row in rows),
        }

    async def _now(self, _: Request, viewer: Viewer) -> Response:
        now = {**self._data.now(viewer.sees), "ended": await self._data.recent(viewer.sees)}
        return self._answers.page("now", viewer, current="now", now=now)

    async def _live(self, request: Request, viewer: Viewer) -> Response:
        return EventResponse(self._feed.events(viewer, request.path_params.get("id")))

    async def _calls(self, request: Request, viewer: Viewer) -> Response:
        search = call_search_form.read_search(request.query_params)
        page = await self._data.search(search.filter(viewer.sees, time.time()), search.before, PAGE_CALLS)
        rows = [
            {
                "id": call.id,
                "tool": call.tool,
                "outcome": call.outcome,
                "message": call.message,
                "started_at": call.started_at,
                "latency_ms": call.latency_ms,
                "session": call.session_label,
                "principal": call.principal,
            }
            for call in page.calls
        ]
        return self._answers.page(
            "calls",
            viewer,
            current="calls",
            form=search.form,
            searching=search.before is not None or any(search.form.values()),
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
        if running:
            return self._answers.page("call_live", viewer, current="calls", **self._running_values(running))
        tree = await self._data.call_tree(call_id, viewer.sees)
        row = next((row for row in tree if row.id == call_id), None)
        if row is None:
            if await self._data.is_paused(call_id, viewer):
                return RedirectResponse(f"/ui/runs/{quote(call_id)}", 303)
            return self._answers.missing()
        kept = await self._results.find(viewer, row)
        return self._answers.page(
            "call",
            viewer,
            current="calls",
            is_run=self._data.is_agent(row.tool),
            audit_content=self._results.audit_content(),
            **call_detail.ended_call(tree, row, kept),
        )

    def _running_values(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        return {**call_detail.running_call(rows), "is_run": self._data.is_agent(rows[0]["tool"])}

    async def _cancel(self, request: Request, viewer: Viewer, _: Form) -> Response:
        await self._data.cancel(viewer, request.path_params["id"])
        if "hx-request" in request.headers:
            return Response(status_code=204)
        return RedirectResponse("/ui/now", 303)
