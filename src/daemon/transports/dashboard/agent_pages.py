"""The page Agents, the pages of agents and runs, and decisions on the requests of runs."""

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ....protocol.error_codes import InvalidArgumentsError
from .agent_graph import agent_graph, role_rows
from .dashboard_port import AgentsPort, Viewer
from .page_answers import PageAnswers
from .page_guard import Form, PageGuard

SHOWN_RUNS = 30


class AgentPages:
    """The pages of hosted agents."""

    def __init__(self, answers: PageAnswers, data: AgentsPort) -> None:
        self._answers = answers
        self._data = data

    def routes(self, guard: PageGuard) -> list[Route]:
        return [
            Route("/ui/agents", guard.page(self._list)),
            Route("/ui/agents/{name}", guard.page(self._agent)),
            Route("/ui/runs/{id:path}", guard.page(self._run)),
            Route("/ui/approvals", guard.action(self._decide, large=True), methods=["POST"]),
        ]

    async def _list(self, _: Request, viewer: Viewer) -> Response:
        return self._answers.page(
            "agents",
            viewer,
            current="agents",
            agents=self._data.agents(viewer),
            waiting=await self._data.waiting(viewer),
            runs=await self._data.runs(viewer, None, SHOWN_RUNS),
        )

    async def _agent(self, request: Request, viewer: Viewer) -> Response:
        agent = next((a for a in self._data.agents(viewer) if a.name == request.path_params["name"]), None)
        if agent is None:
            return self._answers.missing()
        # Prompts belong to the operator; a caller sees only what the agent does.
        roles = [{**row, "prompt": row["prompt"] if viewer.operator else None} for row in role_rows(agent)]
        return self._answers.page(
            "agent",
            viewer,
            current="agents",
            agent=agent,
            graph=agent_graph(agent),
            roles=roles,
            runs=await self._data.runs(viewer, agent.name, SHOWN_RUNS),
        )

    async def _run(self, request: Request, viewer: Viewer) -> Response:
        run = await self._data.run(viewer, request.path_params["id"])
        waiting = [call for call in await self._data.waiting(viewer) if call["id"] == run["summary"].call_id]
        return self._answers.page("run", viewer, current="agents", waiting=waiting, **run)

    async def _decide(self, _: Request, viewer: Viewer, form: Form) -> Response:
        decision = form.get("decision", "")
        arguments = None
        if decision == "approve" and form.get("arguments", "").strip() != form.get("requested", "").strip():
            arguments = _object(form.get("arguments", ""))
        text = form.get("text", "").replace("\r\n", "\n").strip() if decision in {"reject", "answer"} else ""
        await self._data.decide(
            viewer, form.get("call", ""), form.get("request", ""), decision, arguments, text or None
        )
        return RedirectResponse("/ui/agents", 303)


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidArgumentsError("The changed arguments must be a JSON object. Go back and correct them.")
    return value
