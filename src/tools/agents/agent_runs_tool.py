"""The tool ``agent_runs``: the recorded runs of agents, and one run turn by turn."""

import asyncio
from typing import Any

import msgspec
from pydantic import Field

from ...protocol.agent_record import MAX_LISTED_RUNS, AgentRecord, AgentRunState, AgentRunSummary
from ..agent_records import AgentRecords
from ..orchestration_context import LookupContext
from ..tool import Arguments, tool
from ..tool_definition import Tool
from .recorded_run import read_run, run_data


class RunsArguments(Arguments):
    """A filter of runs, or a single run."""

    run_id: str | None = Field(
        default=None, min_length=1, max_length=1000, description="The id of a run, to show it turn by turn."
    )
    agent: str | None = Field(default=None, max_length=200, description="Only runs of this agent.")
    states: list[AgentRunState] = Field(default=[], max_length=4, description="Only runs in these states.")
    limit: int = Field(default=20, ge=1, le=MAX_LISTED_RUNS, description="Maximum number of runs, newest first.")


def agent_runs_tool(records: AgentRecords) -> Tool:
    """Returns the tool for these records."""

    @tool("agent_runs", read_only=True, open_world=False, idempotent=True, unmetered=True)
    async def agent_runs(arguments: RunsArguments, context: LookupContext) -> dict[str, Any]:
        """List your runs of agents (operators get the runs of all principals), or show the run `run_id` turn by turn:
        role, model, text, tool calls with arguments, tokens, cost. `not_kept` lists the steps that are no longer
        stored.
        """
        principal = context.principal
        if arguments.run_id is None:
            runs = await records.runs(principal, agent=arguments.agent, states=arguments.states, limit=arguments.limit)
            return {"runs": [summary_data(run) for run in runs]}
        record = await records.record(principal, arguments.run_id)
        hidden = records.hidden_because(principal, record.summary)
        data = await asyncio.to_thread(_shown, record, shown=hidden is None)
        if data.get("not_kept"):
            data["kept"] = records.kept
        if hidden is not None:
            data["hidden"] = hidden
        return {**summary_data(record.summary), **data}

    return agent_runs


def _shown(record: AgentRecord, *, shown: bool) -> dict[str, Any]:
    return run_data(read_run(record.entries), shown=shown)


def summary_data(run: AgentRunSummary) -> dict[str, Any]:
    """A run without its turns. Sums are included even if they are 0."""
    sums = {"turns": run.turns, "calls": run.calls, "input_tokens": run.input_tokens}
    return {**msgspec.to_builtins(run), **sums, "output_tokens": run.output_tokens, "cost": run.cost}
