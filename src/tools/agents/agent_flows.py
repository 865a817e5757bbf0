"""The flows: in what order the roles of an agent run, and whose answer is the agent's."""

from collections.abc import Callable, Sequence

import msgspec

from ...protocol.error_codes import CallError
from ...shaping import compile_filter, parse_filter
from ..orchestration_context import OrchestrationContext
from .agent_definition import Agent, Role
from .agent_pause import all_of
from .agent_run import MAX_LISTED_CALLS, AgentRun, CallReport, RoleAnswer, RunRole, answer_of


class FlowAnswer(msgspec.Struct, frozen=True):
    """The answer of a run."""

    answer: RoleAnswer
    failed: tuple[str, ...] = ()
    """Parallel: the roles that failed, each with its error, although the run has an answer."""
    iterations: int = 0
    """Loop: how often the roles ran."""


async def run_flow(run: AgentRun, prompt: str, context: OrchestrationContext, run_role: RunRole) -> FlowAnswer:
    """Runs the agent's roles in the order of its ``execution_type``.

    Raises:
        CallError: a role failed, or all roles of a parallel flow.
        CallPausedError: a person must decide first.
    """
    agent = run.agent
    match agent.execution_type:
        case "sequential":
            return FlowAnswer(await _sequential(run, agent.roles, prompt, context, ""))
        case "parallel":
            return await _parallel(run, prompt, context)
        case "loop":
            return await _loop(run, prompt, context)
        case _:  # one role is in charge: its turns are those of the agent's own call
            return FlowAnswer(await run_role(run, _leader(agent), prompt, context, run.snapshot.history))


def _leader(agent: Agent) -> Role:
    name = agent.coordinator_role or agent.hub_role
    return agent.roles[0] if name is None else agent.role(name)


async def _sequential(
    run: AgentRun, roles: Sequence[Role], prompt: str, context: OrchestrationContext, prefix: str, first: str = ""
) -> RoleAnswer:
    """Runs the roles one after the other; returns the last one's answer with the turns and calls of all.

    ``first`` replaces the first role's prompt: in a loop, the answer of the previous iteration.
    """
    calls: list[CallReport] = []
    turns, exited, stopped_by = 0, False, ""
    answer = RoleAnswer(first or prompt)
    for index, role in enumerate(roles):
        chained = bool(index or first) and run.agent.chain_output
        result = await run.role_call(
            role,
            answer.text if chained else prompt,
            f"{prefix}{role.name}",
            context,
            with_history=index == 0 and not first,
            stream=index == len(roles) - 1 and not prefix,
        )
        answer = answer_of(result, role)
        turns, exited, stopped_by = turns + answer.turns, exited or answer.exited, stopped_by or answer.stopped_by
        calls += answer.calls
        if answer.exited:
            break
    total = tuple(calls[:MAX_LISTED_CALLS])
    return msgspec.structs.replace(answer, turns=turns, calls=total, exited=exited, stopped_by=stopped_by)


async def _loop(run: AgentRun, prompt: str, context: OrchestrationContext) -> FlowAnswer:
    stops = _stop_condition(run.agent)
    calls: list[CallReport] = []
    turns, previous = 0, ""
    for iteration in range(1, run.agent.max_iterations + 1):
        context.progress("iteration", iteration, run.agent.max_iterations)
        answer = await _sequential(run, run.agent.roles, prompt, context, f"i{iteration}.", previous)
        turns, previous = turns + answer.turns, answer.text
        calls += answer.calls
        ended = answer.exited or stops(answer)
        if ended or iteration == run.agent.max_iterations:
            stopped_by = answer.stopped_by if ended else "max_iterations"
            total = tuple(calls[:MAX_LISTED_CALLS])
            answer = msgspec.structs.replace(answer, turns=turns, calls=total, stopped_by=stopped_by)
            return FlowAnswer(answer, iterations=iteration)
    raise AssertionError("max_iterations is at least 1")


def _stop_condition(agent: Agent) -> Callable[[RoleAnswer], bool]:
    if agent.stop_when is None:
        return lambda _: False
    matches = compile_filter(parse_filter(agent.stop_when))
    return lambda answer: matches({"answer": answer.text if answer.data is msgspec.UNSET else answer.data})


async def _parallel(run: AgentRun, prompt: str, context: OrchestrationContext) -> FlowAnswer:
    agent = run.agent
    roles = agent.others(agent.parallel_roles, agent.aggregator_role)
    if agent.aggregator_role is not None:
        roles = tuple(role for role in roles if role.name != agent.aggregator_role)
    results = await all_of(
        run.role_call(role, prompt, role.name, context, with_history=True, stream=False) for role in roles
    )
    blocks: list[str] = []
    failed: list[str] = []
    errors: list[CallError] = []
    calls: list[CallReport] = []
    turns, stopped_by = 0, ""
    for role, result in zip(roles, results, strict=True):
        try:
            answer = answer_of(result, role)
        except CallError as error:
            errors.append(error)
            failed.append(f"{role.name}: {error.code.value}: {error.message}")
            blocks.append(f"=== {role.name} ===\nThis role failed: {error.message}")
            continue
        turns, stopped_by = turns + answer.turns, stopped_by or answer.stopped_by
        calls += answer.calls
        blocks.append(f"=== {role.name} ===\n{answer.text}")
    if len(errors) == len(roles):
        raise errors[0]
    text = "\n\n".join(blocks)
    if agent.aggregator_role is None:
        return FlowAnswer(
            RoleAnswer(text, turns=turns, calls=tuple(calls[:MAX_LISTED_CALLS]), stopped_by=stopped_by), tuple(failed)
        )
    aggregator = agent.role(agent.aggregator_role)
    result = await run.role_call(
        aggregator, f"{prompt}\n\n{text}", aggregator.name, context, with_history=True, stream=True
    )
    answer = answer_of(result, aggregator)
    total = tuple([*calls, *answer.calls][:MAX_LISTED_CALLS])
    answer = msgspec.structs.replace(
        answer, turns=turns + answer.turns, calls=total, stopped_by=stopped_by or answer.stopped_by
    )
    return FlowAnswer(answer, tuple(failed))
