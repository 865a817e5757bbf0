"""The flow ``custom``: code of an installed package runs the roles."""

import asyncio
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from ...protocol.error_codes import ToolExecutionError
from ...protocol.tool_call import ContentBlock, TextContent
from ..orchestration_context import OrchestrationContext, RunSpending
from ..tool_result import content, is_long
from .agent_code import AgentCode, code_of
from .agent_context import AgentContext, CustomRun
from .agent_definition import Agent, Variable
from .agent_flows import FlowAnswer
from .agent_run import AgentRun, RoleAnswer
from .agent_snapshot import CodeSnapshot
from .agent_steps import AgentSteps


async def code_snapshot(agent: Agent, context: OrchestrationContext) -> CodeSnapshot | None:
    """The snapshot of a custom agent's code for the run of this call; None for other agents.

    Raises:
        ServiceUnavailableError: the code cannot be used.
    """
    if agent.custom is None:
        return None
    return CodeSnapshot((await code_of(agent, context)).package, context.call_id, time.time())


async def run_custom(
    run: AgentRun,
    prompt: str,
    variables: Mapping[str, Variable],
    context: OrchestrationContext,
    spending: RunSpending | None,
) -> FlowAnswer:
    """Runs the agent's code until it returns the answer.

    Raises:
        CallError: the code cannot be used, raised a ``CallError``, returned nothing or a value that is not JSON, or did
            not repeat its steps after a pause or a restart.
        CallPausedError: a person must decide first.
        Exception: any exception of the code.
    """
    code = await code_of(run.agent, context)
    begun_by = run.snapshot.code.package if run.snapshot.code else code.package
    packages = code.package if begun_by == code.package else f"now {code.package}, the run began with {begun_by}"
    steps = AgentSteps(run.agent.name, await context.earlier_steps(), packages)
    agent_context = AgentContext(CustomRun(run, steps, prompt, variables, context, spending))
    returned = await steps.run(asyncio.create_task(_entered(code, agent_context)))
    difference = steps.unrepeated()
    if difference is not None:
        raise difference
    text, data, blocks = await _answer(returned, run.agent.name)
    answer = RoleAnswer(text, data, of_conversation=steps.of_conversation).with_totals(steps.totals)
    return FlowAnswer(answer, blocks=blocks)


async def _entered(code: AgentCode, context: AgentContext) -> object:
    try:
        return await code.function(context)
    except SystemExit as error:  # asyncio would end the daemon
        name = context.agent.name
        raise ToolExecutionError(f"The code of {name} called sys.exit({error.code!r}).", executed="yes") from error


async def _answer(returned: object, agent: str) -> tuple[str, Any, tuple[ContentBlock, ...]]:
    """The text, the data and the further blocks of the code's return value."""
    convert = partial(content, returned, tool=agent)
    outputs, data = await asyncio.to_thread(convert) if is_long(returned) else convert()
    text = "\n".join(block.text for block in outputs if isinstance(block, TextContent))
    blocks = tuple(block for block in outputs if not isinstance(block, TextContent))
    if returned is None or not (text.strip() or blocks):
        message = f"The code of {agent} returned no answer; return text, or a value that JSON can represent."
        raise ToolExecutionError.content_free(message, executed="yes")
    return text, data, blocks
