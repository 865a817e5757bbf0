"""The flows: the order in which the roles of an agent run, and which role's answer becomes the agent's."""

from collections.abc import Callable, Sequence

import msgspec

from ...protocol.error_codes import CallError
from ...protocol.tool_call import AudioContent, ContentBlock, EmbeddedResource, ImageContent, ResourceLink
from ...shaping import compile_filter, parse_filter
from ..orchestration_context import OrchestrationContext
from .agent_definition import Agent, Role
from .agent_pause import all_of
from .agent_run import AgentRun, RoleAnswer, RunRole, answer_of
from .run_totals import RunTotals


class FlowAnswer(msgspec.Struct, frozen=True):
    """The answer of a run."""

    answer: RoleAnswer
    failed: tuple[str, ...] = ()
    """Parallel: the errors of failed roles, although the run has an answer."""
    iterations: int = 0
    """Loop: the number of iterations."""
    blocks: tuple[ContentBlock, ...] = ()
    """Custom: images, audio and files that belong to the answer."""

    @property
    def text(self) -> str:
        """The text of the answer; if it has only blocks, a description of the blocks."""
        return self.answer.text or "\n".join(_named(block) for block in self.blocks)


def _named(block: ContentBlock) -> str:
    match block:
        case ResourceLink():
            return f"[file {block.name}]"
        case EmbeddedResource():
            return f"[file {block.resource.get('uri', '')}]"
        case ImageContent() | AudioContent():
            return f"[{block.mime_type}]"
        case _:
            return block.text


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
        case "custom":
            raise AssertionError("run_custom runs agents with code")
        case _:  # one role leads; its turns are children of the agent's call
            return FlowAnswer(await run_role(run, _leader(agent), prompt, context, run.snapshot.history))


def _leader(agent: Agent) -> Role:
    name = agent.coordinator_role or agent.hub_role
    return agent.roles[0] if name is None else agent.role(name)


async def _sequential(
    run: AgentRun, roles: Sequence[Role], prompt: str, context: OrchestrationContext, prefix: str, first: str = ""
) -> RoleAnswer:
    """Runs the roles one after the other; returns the last answer with the turns and calls of all roles.

    ``first`` replaces the first role's prompt; in a loop, it is the answer of the previous iteration.
    """
    answers: list[RoleAnswer] = []
    previous = first or prompt
    for index, role in enumerate(roles):
        chained = bool(index or first) and run.agent.chain_output
        name = f"{prefix}{role.name}"
        result = await run.role_call(
            role,
            previous if chained else prompt,
            name,
            context,
            with_history=index == 0 and not first,
            stream=index == len(roles) - 1 and not prefix,
        )
        answer = answer_of(result, role, name)
        answers.append(answer)
        previous = answer.text
        if answer.exited:
            break
    return _together(answers[-1], answers)


def _together(last: RoleAnswer, answers: Sequence[RoleAnswer]) -> RoleAnswer:
    """The ``last`` answer with the turns and calls of all answers, the first ``stopped_by``, and the first summary of
    the conversation.
    """
    stopped_by = next((answer.stopped_by for answer in answers if answer.stopped_by), "")
    summary = next((answer.of_conversation for answer in answers if answer.of_conversation), None)
    last = last.with_totals(RunTotals().with_later(answer.totals for answer in answers))
    return msgspec.structs.replace(last, stopped_by=stopped_by, of_conversation=summary)


async def _loop(run: AgentRun, prompt: str, context: OrchestrationContext) -> FlowAnswer:
    stops = _stop_condition(run.agent)
    answers: list[RoleAnswer] = []
    previous = ""
    for iteration in range(1, run.agent.max_iterations + 1):
        context.progress("iteration", iteration, run.agent.max_iterations)
        answer = await _sequential(run, run.agent.roles, prompt, context, f"i{iteration}.", previous)
        answers.append(answer)
        previous = answer.text
        ended = answer.exited or stops(answer)
        if ended or iteration == run.agent.max_iterations:
            stopped_by = answer.stopped_by if ended else "max_iterations"
            answer = msgspec.structs.replace(_together(answer, answers), stopped_by=stopped_by)
            return FlowAnswer(answer, iterations=iteration)
    raise AssertionError("max_iterations is at least 1")


def _stop_condition(agent: Agent) -> Callable[[RoleAnswer], bool]:
    if agent.stop_when is None:
        return lambda _: False
    matches = compile_filter(parse_filter(agent.stop_when))
    return lambda answer: matches({"answer": answer.text if answer.data is msgspec.UNSET else answer.data})


async def _parallel(run: AgentRun, prompt: str, context: OrchestrationContext) -> FlowAnswer:
    agent = run.agent
    aggregator = None if agent.aggregator_role is None else agent.role(agent.aggregator_role)
    roles = [role for role in agent.others(agent.parallel_roles) if role is not aggregator]
    results = await all_of(
        run.role_call(role, prompt, role.name, context, with_history=True, stream=False) for role in roles
    )
    blocks: list[str] = []
    failed: list[str] = []
    errors: list[CallError] = []
    answers: list[RoleAnswer] = []
    for role, result in zip(roles, results, strict=True):
        try:
            answer = answer_of(result, role, role.name)
        except CallError as error:
            errors.append(error)
            failed.append(f"{role.name}: {error.code.value}: {error.message}")
            blocks.append(f"=== {role.name} ===\nThis role failed: {error.message}")
            continue
        answers.append(answer)
        blocks.append(f"=== {role.name} ===\n{answer.text}")
    if not answers:
        raise errors[0]
    answer = RoleAnswer("\n\n".join(blocks))
    if aggregator is not None:
        request = f"{prompt}\n\n{answer.text}"
        result = await run.role_call(aggregator, request, aggregator.name, context, with_history=True, stream=True)
        answer = answer_of(result, aggregator, aggregator.name)
        answers.append(answer)
    return FlowAnswer(_together(answer, answers), tuple(failed))
