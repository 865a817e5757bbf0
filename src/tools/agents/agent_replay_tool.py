"""The tool ``agent_replay``: runs a recorded run again with another prompt or model, and compares."""

import asyncio
from typing import Annotated, Final

import msgspec
from pydantic import Field

from ...protocol.agent_record import AgentRecord
from ...protocol.error_codes import (
    InvalidArgumentsError,
    PermissionDeniedError,
    ResultExpiredError,
)
from ...protocol.tool_call import Annotations
from ..agent_records import AgentRecords
from ..money_amounts import Amounts
from ..orchestration_context import OrchestrationContext
from ..prompt_source import PromptSource
from ..tool import Arguments, ToolOutput
from ..tool_definition import Tool
from .agent_definition import MAX_PROMPT_CHARS, Agent
from .agent_snapshot import ENGINE, RunSnapshot, role_prompt, select_role_model, with_model
from .recorded_answers import RecordedAnswers
from .recorded_run import RecordedRun, read_run
from .replayed_run import ReplayedRun, ReplayOutcome, ToolsMode
from .run_difference import difference, difference_text, side_of

REPLAY_TIMEOUT_S: Final = 1800.0
MAX_LISTED_UNANSWERED: Final = 100
"""The maximum number of calls that the answer lists: those without a recorded result, and those recorded but not
made.
"""
_DESCRIPTION: Final = """\
Run one of your recorded runs of an agent again with another prompt or model, and compare: turns, calls, answer, tokens,
cost. Tool calls are answered from the recording, unless `tools` is `live`. The replay asks models, within `run_budget`
and `max_tokens`, or by default within the agent's limits.
"""


class ReplayArguments(Arguments):
    """A run, and the changes for its replay."""

    run_id: str = Field(min_length=1, max_length=1000, description="The run's id, from agent_runs.")
    prompt: str | None = Field(
        default=None, min_length=1, max_length=MAX_PROMPT_CHARS, description="Another system prompt."
    )
    prompt_ref: str | None = Field(
        default=None, min_length=1, max_length=200, description="The name of another system prompt."
    )
    model: str | None = Field(default=None, min_length=1, max_length=200, description="Another model.")
    role: str | None = Field(
        default=None,
        max_length=64,
        description="The role that gets the prompt or model. Default: all. Required for a prompt if there are several.",
    )
    tools: ToolsMode = Field(default="recorded", description="live: read-only tools run again.")
    allow_writes: bool = Field(default=False, description="With live: tools that may write also run.")
    run_budget: Annotated[Amounts | None, Field(strict=False)] = Field(
        default=None, description="Money that the replay may cost, by currency."
    )
    max_tokens: int | None = Field(default=None, ge=1, description="Tokens that the replay may use.")


def agent_replay_tool(records: AgentRecords, prompts: PromptSource) -> Tool:
    """Returns the tool for these records."""

    async def agent_replay(arguments: ReplayArguments, context: OrchestrationContext) -> ToolOutput:
        if arguments.prompt is not None and arguments.prompt_ref is not None:
            raise InvalidArgumentsError("Use one of prompt and prompt_ref.")
        if arguments.allow_writes and arguments.tools != "live":
            raise InvalidArgumentsError('allow_writes: needs tools = "live"; recorded results need no permission.')
        record = await records.record(context.principal, arguments.run_id, all_results=True)
        hidden = records.hidden_because(context.principal, record.summary)
        if hidden is not None:
            raise PermissionDeniedError(hidden)
        recorded = await asyncio.to_thread(read_run, record.entries)
        snapshot = _usable(record, recorded, records)
        changed = await _changed(snapshot, arguments, prompts, context)
        answers = await asyncio.to_thread(RecordedAnswers, recorded, record.entries)
        await _limit_spending(changed, arguments, context)
        replay = ReplayedRun(changed, answers, context, tools=arguments.tools, allow_writes=arguments.allow_writes)
        outcome = await replay.run()
        return await asyncio.to_thread(_report, record, recorded, outcome, answers, arguments)

    return Tool(
        "agent_replay",
        _DESCRIPTION,
        ReplayArguments,
        agent_replay,
        Annotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True),
        REPLAY_TIMEOUT_S,
        orchestration=True,
        agent=True,  # nests its roles as the agent does
    )


def _usable(record: AgentRecord, run: RecordedRun, records: AgentRecords) -> RunSnapshot:
    """The run's snapshot.

    Raises:
        InvalidArgumentsError: the run has not ended.
        ResultExpiredError: the snapshot or the turns are no longer stored.
    """
    if record.summary.state in {"running", "paused"}:
        raise InvalidArgumentsError(
            f"run_id: the run is {record.summary.state}; a run can be replayed when it has ended."
        )
    expired = [turn.id for turn in run.turns if turn.state == "expired"]
    if run.snapshot is None or expired:
        what = "its snapshot" if run.snapshot is None else f"the turn {expired[0]}"
        hint = records.kept
        raise ResultExpiredError(f"The run cannot be replayed: {what} is no longer stored. {hint}", executed="no")
    if run.snapshot.code is not None:
        raise InvalidArgumentsError("run_id: the agent has code, whose steps cannot be replayed with another prompt.")
    if not run.snapshot.request:
        raise ResultExpiredError(
            "The run cannot be replayed: an earlier toold did not record its prompt.", executed="no"
        )
    return run.snapshot


async def _changed(
    snapshot: RunSnapshot, arguments: ReplayArguments, prompts: PromptSource, context: OrchestrationContext
) -> RunSnapshot:
    """The snapshot of the replay. It has no fallbacks, so that only the chosen models answer.

    Raises:
        InvalidArgumentsError: the role does not exist, or it is unclear which role gets the prompt; or the model is
            unknown, or cannot do what its role requires.
        ServiceUnavailableError: the prompt is not found.
    """
    agent = Agent.model_validate({**snapshot.agent, "fallback": ()})
    names = [role.name for role in agent.roles]
    if arguments.role is not None and arguments.role not in names:
        raise InvalidArgumentsError(f"role: the run has no role {arguments.role!r}; its roles are {', '.join(names)}.")
    replaces_prompt = arguments.prompt is not None or arguments.prompt_ref is not None
    if replaces_prompt and arguments.role is None and len(names) > 1:
        raise InvalidArgumentsError(f"role: say which role gets the prompt: {', '.join(names)}.")
    roles = dict(snapshot.roles)
    for role in agent.roles:
        if arguments.role not in {None, role.name}:
            continue
        offered = roles[role.name]
        if replaces_prompt:
            wanted = role.model_copy(
                update={"prompt": arguments.prompt, "prompt_ref": arguments.prompt_ref, "prompt_tag": None}
            )
            prompt = await role_prompt(agent, wanted, snapshot.variables, prompts, operator=context.principal.operator)
            offered = msgspec.structs.replace(
                offered, prompt=prompt.text, prompt_source=prompt.source, prompt_version=prompt.version
            )
        if arguments.model is not None:
            model = select_role_model(arguments.model, role, offered.functions, context).model
            offered = with_model(offered, model, role)
        roles[role.name] = offered
    definition = agent.model_dump(mode="json", exclude_defaults=True)
    # A replay resumes no calls, so it may use a later engine than the run.
    return msgspec.structs.replace(snapshot, engine=ENGINE, agent=definition, roles=roles)


async def _limit_spending(snapshot: RunSnapshot, arguments: ReplayArguments, context: OrchestrationContext) -> None:
    """Limits the replay by its arguments, or by the limits of the agent's runs."""
    agent = Agent.model_validate(snapshot.agent)
    amounts, tokens = arguments.run_budget or agent.run_budget, arguments.max_tokens or agent.max_tokens
    if amounts or tokens:
        models = [context.daemon.catalog.resolve(role.model) for role in snapshot.roles.values()]
        await context.limit_spending("agent_replay", amounts=amounts, max_tokens=tokens, models=models)


def _report(
    record: AgentRecord,
    recorded: RecordedRun,
    outcome: ReplayOutcome,
    answers: RecordedAnswers,
    arguments: ReplayArguments,
) -> ToolOutput:
    summary = record.summary
    before = side_of(recorded, summary.state, error=summary.error, stopped_by=summary.stopped_by)
    error = outcome.error
    after = side_of(
        outcome.run,
        "finished" if error is None else "failed",
        error=None if error is None else f"{error.code.value}: {error.message}",
        stopped_by=outcome.stopped_by,
    )
    found = difference(before, after)
    unused = [
        {"role": role, "id": call.id, "tool": call.function, "arguments": call.arguments}
        for role, call in answers.unused
    ]
    data = {
        "run_id": summary.run_id,
        "agent": summary.agent,
        "tools": arguments.tools,
        "recorded": msgspec.to_builtins(before),
        "replayed": msgspec.to_builtins(after),
        "difference": found,
        "unanswered": [call._asdict() for call in answers.unanswered[:MAX_LISTED_UNANSWERED]],
        "unused": unused,
    }
    lines = [difference_text(before, after, found)]
    if answers.unanswered:
        lines.append("\ncalls without a recorded result:")
        lines += [f"  {call.role}: {call.tool} ({call.reason})" for call in answers.unanswered[:MAX_LISTED_UNANSWERED]]
    return ToolOutput("\n".join(lines), data)
