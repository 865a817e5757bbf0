"""``execute_pipeline``: several calls in one, each with what those before it brought."""

import asyncio
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Literal

from pydantic import Field

from ...protocol.tool_call import Json
from ...shaping import weight
from ..orchestration_context import OrchestrationContext
from ..tool import tool
from .argument_templates import MUCH_BYTES, Problem
from .call_retry import RetryPolicy
from .detach_option import DetachOption, detach
from .pipeline_arguments import DRY_RUN, MAX_TIMEOUT_S, ON_UNKNOWN, RESUME, PipelineSteps
from .pipeline_plan import PipelinePlan
from .pipeline_planner import plan_pipeline
from .pipeline_run import PipelineRun
from .run_limits import CALL_MARGIN_S, cut_off, time_left
from .step_run import StepRunner, shape_in


class PipelineArguments(PipelineSteps, DetachOption):
    """Steps, what they work on, and how they are run."""

    input: dict[str, Any] = Field(default={}, description="What templates refer to as {{input.x}}.")
    resume: str | None = Field(default=None, description=RESUME)
    on_unknown: Literal["keep", "retry"] = Field(default="keep", description=ON_UNKNOWN)
    dry_run: bool = Field(default=False, description=DRY_RUN)


@tool(
    "execute_pipeline",
    read_only=False,
    open_world=True,
    destructive=True,
    timeout_s=MAX_TIMEOUT_S + CALL_MARGIN_S,
    orchestration=True,
)
async def execute_pipeline(arguments: PipelineArguments, context: OrchestrationContext) -> dict[str, Any]:
    """Run up to 20 calls of tools in one, without a round trip between them. A step's args take what earlier steps
    brought by templates: {{fetch.items[0].id}}, {{input.name}}, {{fetch.total | default(0)}}; in a text they are filled
    in, alone they keep their type. Steps that do not refer to each other run side by side. `when` skips a step,
    `for_each` runs it for each {{item}} of a list, `options` shapes its result. The answer tells of every step what was
    done, also where one fails; `resume` with its `run_id` goes on from there without repeating what is done. `dry_run`
    answers the plan; `detach` answers a call_id at once, and the run goes on over restarts.
    """
    plan = await plan_apart(arguments, context, {"input": arguments.input}, arguments.too_long)
    if arguments.dry_run:
        return plan.shown()
    if arguments.detach and not context.detached:
        return await detach(context, arguments.seconds, {})
    return await run_pipeline(
        plan,
        context,
        input=arguments.input,
        timeout_s=arguments.seconds,
        resume=arguments.resume,
        retry_unknown=arguments.on_unknown == "retry",
    )


async def plan_apart(
    steps: PipelineSteps, context: OrchestrationContext, known: Mapping[str, Any], problems: Iterable[Problem] = ()
) -> PipelinePlan:
    """``plan_pipeline`` for the call of ``context``, in a thread where there is much to look at.

    Raises:
        InvalidArgumentsError: as ``plan_pipeline``.
    """
    planned = partial(plan_pipeline, steps, context.find_tool, known, problems)
    parts = [[step.args, step.for_each, step.fallback, step.when] for step in steps.steps]
    much = weight([parts, steps.return_, known], MUCH_BYTES) > MUCH_BYTES
    return await asyncio.to_thread(planned) if much else planned()


async def run_pipeline(
    plan: PipelinePlan,
    context: OrchestrationContext,
    *,
    input: Mapping[str, Json],  # noqa: A002 - the word of those who write pipelines
    timeout_s: float,
    resume: str | None = None,
    retry_unknown: bool = False,
) -> dict[str, Any]:
    """Run a plan as the call of ``context``, and answer what was done.

    Raises:
        CallError: as ``context.resume`` of the run that is to be resumed.
        CallCancelledError: the call was told to end; ``details`` has what was done, and by what to go on.
    """
    if resume is not None:
        await context.resume(resume)
    left = time_left(timeout_s, context.remaining())
    retrying = RetryPolicy(call=context.call, left=left, sleep=asyncio.sleep, retry_unknown=retry_unknown)
    runner = StepRunner(retrying, shape_in(context), plan.into)
    run = PipelineRun(plan, runner, input=input, left=left, report=context.progress)
    context.progress(f"run {context.call_id}", 0, len(plan.steps))
    try:
        return {**await run.run(), "run_id": context.call_id}
    except asyncio.CancelledError:
        raise cut_off(run.answer(), context.max_answer_bytes, context.call_id) from None
