"""The tool of an agent: answers a message with a run of the agent's roles."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from pydantic import Field

from ...protocol.error_codes import InvalidArgumentsError, error_from_wire
from ...protocol.tool_call import Annotations, ToolResult
from ..completions import read_images
from ..continued_work import continued_by_run
from ..conversation import Conversation, Turn
from ..orchestration import CALL_MARGIN_S, detach
from ..orchestration_context import OrchestrationContext, RunSpending
from ..prompt_source import PromptSource
from ..tool import Arguments, ToolOutput, tool
from ..tool_definition import Tool
from .agent_definition import Agent, Variable
from .agent_flows import FlowAnswer, run_flow
from .agent_run import AgentRun, ConversationSummary
from .agent_snapshot import AGENT_SOURCE, RunSnapshot, make_snapshot
from .busy_conversations import BusyConversations
from .custom_flow import code_snapshot, run_custom
from .role_dialogue import SUMMARY_TOOL, conversation_note
from .role_run import run_role

MAX_DETACHED_TIMEOUT_S: Final = 86_400.0
DETACHED_TIMEOUT_S: Final = 3600.0
DETACHED_AGENT_TIMEOUT_S: Final = DETACHED_TIMEOUT_S + CALL_MARGIN_S
"""The timeout of an agent's call that is detached from the start."""
MAX_IMAGES: Final = 16
"""The maximum number of images of a message, as for ``chat``."""
MAX_IMAGES_BYTES: Final = 20 * 1024 * 1024
"""The maximum size of all images of a message, as URLs. They are part of the snapshot and of each request to a
model.
"""
_STATE_KEY: Final = "last_agent_call"
"""The key in a conversation's state for the call that added its last turns."""
_SUMMARY_KEY: Final = "agent_summary"
"""The key in a conversation's state for a ``ConversationSummary`` of its earlier turns."""


class AgentArguments(Arguments):
    """A message to an agent."""

    prompt: str = Field(min_length=1, description="The task or message.")
    continuation_id: str | None = Field(default=None, description="Conversation to continue, from an earlier answer.")
    images: list[str] = Field(
        default=[],
        max_length=MAX_IMAGES,
        description="Paths in the workspace (PNG, JPEG, WebP, GIF), or https: or data:image/ URLs.",
    )
    variables: dict[str, Variable] = Field(default={}, max_length=100, description="Variables of the agent's prompts.")
    detach: bool = Field(
        default=False, description="Return a call_id at once, for call_status, call_result and cancel_call."
    )
    dry_run: bool = Field(
        default=False, description="Resolve prompts, models and tools, and return them without asking a model."
    )
    timeout_s: float | None = Field(
        default=None, gt=0, le=MAX_DETACHED_TIMEOUT_S, description="Timeout of a detached run; default 3600."
    )


class SnapshotArguments(Arguments):
    """The values on which a snapshot depends."""

    agent: str


@tool("agent_snapshot", read_only=True, open_world=True, timeout_s=120.0, orchestration=True)
async def agent_snapshot(_arguments: SnapshotArguments, _context: OrchestrationContext) -> ToolOutput:
    """Store everything on which a run depends: the definition, prompts, tools and models."""
    raise NotImplementedError  # a run replaces this function with one that has its agent


def agent_tools(agents: Iterable[Agent], prompts: PromptSource, busy: BusyConversations) -> list[Tool]:
    """One tool per agent. When definitions change, pass the same ``busy`` to the new tools."""
    return [_agent_tool(agent, prompts, busy) for agent in agents]


def _agent_tool(agent: Agent, prompts: PromptSource, busy: BusyConversations) -> Tool:
    async def answer_message(arguments: AgentArguments, context: OrchestrationContext) -> ToolOutput | dict[str, Any]:
        if arguments.dry_run:
            snapshot = await make_snapshot(
                agent, arguments.variables, (), prompts, context, await code_snapshot(agent, context)
            )
            return resolved_data(agent, snapshot)
        if arguments.detach and not context.detached:
            seconds = arguments.timeout_s or DETACHED_TIMEOUT_S
            return await detach(context, seconds, {"detach": False})
        async with (
            busy.entered(agent, arguments.continuation_id, context),
            continued_by_run(arguments.continuation_id, context) as conversation,
        ):
            run = await _begin(agent, arguments, conversation, prompts, context)
            spending = await _limit_spending(agent, run, context)
            if run.agent.custom is None:
                flow = await run_flow(run, arguments.prompt, context, run_role)
            else:
                flow = await run_custom(run, arguments.prompt, arguments.variables, context, spending)
            _add_turns(conversation, arguments.prompt, flow, agent.name, context.call_id)
        return ToolOutput(flow.text, _data(run, flow, conversation.id, context.call_id), flow.blocks)

    return Tool(
        agent.name,
        agent.description,
        AgentArguments,
        answer_message,
        Annotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True),
        agent.timeout_s,
        orchestration=True,
        agent=True,
        source=AGENT_SOURCE,
    )


async def _begin(
    agent: Agent,
    arguments: AgentArguments,
    conversation: Conversation,
    prompts: PromptSource,
    context: OrchestrationContext,
) -> AgentRun:
    """The run with its snapshot. A resumed run reads the snapshot from the journal.

    Raises:
        CallError: as raised by ``make_snapshot``.
    """
    history = earlier_turns(conversation)

    async def take(_: SnapshotArguments, of_snapshot: OrchestrationContext) -> ToolOutput:
        code = await code_snapshot(agent, context)
        images = await _read_images(arguments.images, context)
        snapshot = await make_snapshot(agent, arguments.variables, history, prompts, of_snapshot, code, images)
        snapshot = msgspec.structs.replace(snapshot, request=arguments.prompt, variables=arguments.variables)
        return ToolOutput("snapshot", msgspec.to_builtins(snapshot))

    result = await context.call(
        agent_snapshot.with_function(take), {"agent": agent.name}, name="snapshot", journal=True
    )
    return AgentRun(_of_snapshot(result), conversation.id, run_role)


async def _read_images(images: list[str], context: OrchestrationContext) -> tuple[str, ...]:
    """The images as URLs.

    Raises:
        CallError: as raised by ``read_images``.
        InvalidArgumentsError: the images have more than ``MAX_IMAGES_BYTES`` together.
    """
    read = await read_images(images, context)
    size = sum(map(len, read))
    if size > MAX_IMAGES_BYTES:
        problem = f"have {size:,} bytes together as URLs, more than {MAX_IMAGES_BYTES:,}"
        raise InvalidArgumentsError(
            f"The images {problem}; send smaller ones.", details={"fields": {"images": problem}}
        )
    return read


async def _limit_spending(today: Agent, run: AgentRun, context: OrchestrationContext) -> RunSpending | None:
    """Sets the limits of the run before its first turn. The daily budget applies to all runs together, so
    it comes from the current definition (``today``), not from the run's snapshot.

    Raises:
        ServiceUnavailableError: the cost of a model cannot be counted.
        RateLimitedError: the agent's budget of the day is spent.
    """
    agent = run.agent
    if agent.run_budget or today.daily_budget or agent.max_tokens or agent.custom:  # custom code may read the budget
        # In a resumed run, the model of an ended role may no longer exist. Only a turn that needs it fails.
        roles = () if context.resumed else agent.roles
        models = [context.daemon.catalog.resolve(run.offered(role).model) for role in roles]
        return await context.limit_spending(
            agent.name, amounts=agent.run_budget, max_tokens=agent.max_tokens, daily=today.daily_budget, models=models
        )
    return None


def _of_snapshot(result: ToolResult) -> RunSnapshot:
    if result.error is not None:
        raise error_from_wire(result.error)
    return msgspec.convert(result.structured, RunSnapshot)


def _add_turns(conversation: Conversation, prompt: str, flow: FlowAnswer, agent: str, call_id: str) -> None:
    """Adds the message and its answer once, even if the run is resumed after they were stored. The conversation keeps
    all turns; a summary of earlier turns is stored next to them.
    """
    state = conversation.state if isinstance(conversation.state, dict) else {}
    if state.get(_STATE_KEY) == call_id:
        return
    summarized = flow.answer.of_conversation
    summary = {} if summarized is None else {_SUMMARY_KEY: msgspec.to_builtins(summarized)}
    conversation.state = {**state, **summary, _STATE_KEY: call_id}
    conversation.add(Turn("user", prompt, tool=agent))
    conversation.add(Turn("assistant", flow.text, tool=agent))


def earlier_turns(conversation: Conversation) -> tuple[Turn, ...]:
    """The turns that roles read. If there is a summary, a turn with the summary and the turns that it does not
    cover.
    """
    state = conversation.state if isinstance(conversation.state, dict) else {}
    try:
        summary = msgspec.convert(state.get(_SUMMARY_KEY), ConversationSummary)
    except msgspec.ValidationError:
        return tuple(conversation.turns)
    later = (turn for turn in conversation.turns if turn.at > summary.until)
    return (Turn("user", conversation_note(summary.text), tool=SUMMARY_TOOL, at=summary.until), *later)


def resolved_data(agent: Agent, snapshot: RunSnapshot) -> dict[str, Any]:
    """For each role of a run: its model, the source of its prompt, and its functions."""
    roles = {
        name: {
            "model": role.model,
            "prompt": role.prompt,
            "prompt_source": role.prompt_source,
            "prompt_version": role.prompt_version,
            "functions": [function.name for function in role.functions],
            "approve": [function.name for function in role.functions if function.approve],
        }
        for name, role in snapshot.roles.items()
    }
    code = {} if snapshot.code is None else {"code": {"entry_point": agent.custom, "package": snapshot.code.package}}
    return {"execution_type": agent.execution_type, **code, "roles": roles, "warnings": list(snapshot.warnings)}


def _data(run: AgentRun, flow: FlowAnswer, continuation_id: str, run_id: str) -> dict[str, Any]:
    answer = flow.answer
    data: dict[str, Any] = {
        "answer": answer.text if answer.data is msgspec.UNSET else answer.data,
        "state": "stopped" if answer.stopped_by else "done",
        "turns": answer.turns,
        "calls": msgspec.to_builtins(answer.calls),
        "models": {role.name: run.offered(role).model for role in run.agent.roles},
        "continuation_id": continuation_id,
        "run_id": run_id,
    }
    optional = {
        "unlisted_calls": answer.unlisted_calls,
        "stopped_by": answer.stopped_by,
        "answered_by": answer.answered_by,
        "iterations": flow.iterations,
        "failed_roles": list(flow.failed),
        "summaries": answer.summaries,
        "warnings": [*run.snapshot.warnings, *answer.warnings],
    }
    return data | {name: value for name, value in optional.items() if value}
