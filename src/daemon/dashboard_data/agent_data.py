"""The data and actions of the pages about agents. Implements ``AgentsPort``."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ...protocol.agent_record import AgentRunSummary
from ...protocol.error_codes import PermissionDeniedError, error_from_wire
from ...protocol.tool_call import ClientInfo
from ...tools import Agent, AgentRecords, read_run
from ..dispatch import Router, open_requests
from ..transports.dashboard import Viewer, seen_tools
from ..transports.tool_calls import NoToolsetError, ToolCalls

_CLIENT = ClientInfo("dashboard")
_DECIDING_TOOL = "agent_decide"


class AgentData:
    """Reads the definitions of agents and their recorded runs; makes decisions by calls of ``agent_decide``."""

    def __init__(self, router: Router, agents: Callable[[], Mapping[str, Agent]], records: AgentRecords) -> None:
        self._router = router
        self._agents = agents
        self._records = records
        self._calls = ToolCalls(router, "dashboard")

    def agents(self, viewer: Viewer) -> Sequence[Agent]:
        seen = seen_tools(self._router.catalog, viewer)
        return [agent for name, agent in sorted(self._agents().items()) if name in seen]

    async def runs(self, viewer: Viewer, agent: str | None, limit: int) -> Sequence[AgentRunSummary]:
        return await self._records.runs(viewer.principal, agent=agent, states=(), limit=limit)

    async def run(self, viewer: Viewer, run_id: str) -> dict[str, Any]:
        record = await self._records.record(viewer.principal, run_id)
        run = await asyncio.to_thread(read_run, record.entries)
        hidden = self._records.hidden_because(viewer.principal, record.summary)
        return {"summary": record.summary, "run": run, "hidden": hidden, "kept": self._records.kept}

    async def waiting(self, viewer: Viewer) -> Sequence[dict[str, Any]]:
        rows = []
        for call in await self._router.paused.paused_calls(None if viewer.operator else viewer.principal):
            owner = call.session.principal
            run = AgentRunSummary(
                run_id=call.call_id,
                call_id=call.call_id,
                agent=call.tool,
                principal=owner,
                state="paused",
                started_at=call.started_at,
            )
            hidden = self._records.hidden_because(viewer.principal, run)
            rows.append(
                {
                    "id": call.call_id,
                    "tool": call.tool,
                    "principal": owner,
                    "own": owner == viewer.name,
                    "hidden": hidden,
                    "started_at": call.started_at,
                    "expires_at": call.expires_at,
                    "requests": [msgspec.structs.asdict(request) for request in open_requests(call)],
                }
            )
        return rows

    async def decide(
        self,
        viewer: Viewer,
        call_id: str,
        request_id: str,
        decision: str,
        arguments: Mapping[str, Any] | None,
        text: str | None,
    ) -> None:
        made = {"id": request_id, "decision": decision, "arguments": arguments, "text": text}
        values = {"call_id": call_id, "decisions": [made]}
        size = len(msgspec.json.encode(values))
        try:
            result = await self._calls.run(viewer.access, _CLIENT, _DECIDING_TOOL, values, size=size)
        except NoToolsetError as error:
            raise PermissionDeniedError(str(error)) from None
        if result.error is not None:
            raise error_from_wire(result.error)
