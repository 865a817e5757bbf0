"""The page Cost."""

import time

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....store import day_of
from .cost_view import PERIODS, budget_rows, cost_view, days_of
from .dashboard_port import CostPort, Viewer
from .page_answers import PageAnswers
from .page_guard import PageGuard

_DAY_S = 86_400.0


class CostPages:
    """The page about the cost of models."""

    def __init__(self, answers: PageAnswers, data: CostPort) -> None:
        self._answers = answers
        self._data = data

    def routes(self, guard: PageGuard) -> list[Route]:
        return [Route("/ui/cost", guard.page(self._cost))]

    async def _cost(self, request: Request, viewer: Viewer) -> Response:
        days = days_of(request.query_params.get("days", ""))
        now = time.time()
        first = now - (days - 1) * _DAY_S
        usage = await self._data.usage(day_of(first), viewer.sees)
        return self._answers.page(
            "cost",
            viewer,
            current="cost",
            period=days,
            periods=PERIODS,
            budgets=budget_rows(self._data.budgets(viewer)),
            **cost_view(usage, day_of(now), days),
        )
