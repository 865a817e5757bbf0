"""The tool ``execute_pipeline``: runs several calls as steps, which can use the results of earlier steps."""

import asyncio
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Literal

from pydantic import Field

from ...protocol.tool_call import Json
from ...shaping import weight
from ..orchestration_context import OrchestrationContext
from ..tool import tool
from .argument_templates import THREAD_THRESHOLD_BYTES, Problem
from .call_retry import RetryPolicy
from .detach_option import DetachOption, detach
from .pipeline_arguments import DRY_RUN, MAX_TIMEOUT_S, ON_UNKNOWN, RESUME, PipelineSteps
from .pipeline_plan import PipelinePlan
from .pipeline_run import PipelineRun
from .pipeline_validation import plan_pipeline
from .run_limits import CALL_MARGIN_S, cancellation_error, time_left
from .step_run import StepRunner, shape_in


class PipelineArguments(PipelineSteps, DetachOption):
    """Steps, their input, and how they run."""

    input: dict[str, Any] = Field(default={}, description="Templates refer to it as {{input.x}}.")
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
    """Run up to 20 tool calls in one, without round trips between them. A step's args use results of earlier steps in
    templates: {{fetch.items[0].id}}, {{input.name}}, {{fetch.total | default(0)}}; within a text they are inserted,
    alone they keep their type. Steps that do not refer to each other run in parallel. `when` skips a step, `for_each`
    runs it for each {{item}} of a list, `options` shapes its result. The answer reports every step, also if one fails;
    `resume` with its `run_id` continues the run without repeating finished steps. `dry_run` returns the plan; `detach`
    returns a call_id at once, and the run resumes after restarts.
    """
    plan = await plan_for(arguments, context, {"input": arguments.input}, arguments.timeout_problems)
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


async def plan_for(
    steps: PipelineSteps, context: OrchestrationContext, known: Mapping[str, Any], problems: Iterable[Problem] = ()
) -> PipelinePlan:
    """``plan_pipeline`` for the call of ``context``, in a thread if the pipeline is large.

    Raises:
        InvalidArgumentsError: as raised by ``plan_pipeline``.
    """
    planned = partial(plan_pipeline, steps, context.find_tool, known, problems)
    parts = [[step.args, step.for_each, step.fallback, step.when] for step in steps.steps]
    large = weight([parts, steps.return_, known], THREAD_THRESHOLD_BYTES) > THREAD_THRESHOLD_BYTES
    return await asyncio.to_thread(planned) if large else planned()


async def run_pipeline(
    plan: PipelinePlan,
    context: OrchestrationContext,
    *,
    input: Mapping[str, Json],  # noqa: A002 - the term of pipelines
    timeout_s: float,
    resume: str | None = None,
    retry_unknown: bool = False,
) -> dict[str, Any]:
    """Run a plan as the call of ``context``, and return its report.

    Raises:
        CallError: as raised by ``context.resume``, if ``resume`` names an earlier run.
        CallCancelledError: the call was cancelled; ``details`` has the report so far and the run id.
    """
    if resume is not None:
        await context.resume(resume)
    left = time_left(timeout_s, context.remaining())
    retrying = RetryPolicy(call=context.call, left=left, sleep=asyncio.sleep, retry_unknown=retry_unknown)
    runner = StepRunner(retrying, shape_in(context), plan.partially_used_names)
    run = PipelineRun(plan, runner, input=input, left=left, report=context.progress)
    context.progress(f"run {context.call_id}", 0, len(plan.steps))
    try:
        answer = await run.run()
    except asyncio.CancelledError:
        so_far = run.answer()
        context.report_parts(run.parts)
        raise cancellation_error(so_far, context.max_answer_bytes, context.call_id) from None
    context.report_parts(run.parts)
    return {**answer, "run_id": context.call_id}
