"""The tool ``execute_batch``: calls one tool for many items."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec
from pydantic import Field

from ...protocol.error_codes import InvalidArgumentsError
from ...protocol.tool_call import Json
from ...shaping import ShapingError, weight
from ..orchestration_context import OrchestrationContext
from ..tool import Arguments, tool
from ..tool_definition import Tool
from .argument_templates import THREAD_THRESHOLD_BYTES, ArgumentTemplate
from .batch_run import BatchPlan, BatchRun
from .call_retry import MAX_RETRIES, RetryPolicy
from .detach_option import DetachOption, detach
from .pipeline_arguments import AT_ONCE, MAX_AT_ONCE, MAX_DELAY, MAX_ITEMS, MAX_TIMEOUT_S, MaxDelay
from .pipeline_validation import OF_ITEM, invalid
from .result_shaping import apply, plan_shaping
from .run_limits import CALL_MARGIN_S, cancellation_error, time_left
from .step_run import shape_in

MAX_DETACHED_ITEMS: Final = 10_000


class RetainedItems(Arguments):
    """The rows of a retained result."""

    handle: str = Field(description="The handle of a retained result, as for read_result.")
    options: dict[str, Any] | None = Field(default=None, description="Shape the result first, as in read_result.")


async def items_of(items: list[Any] | RetainedItems, context: OrchestrationContext, *, detach: bool) -> list[Json]:
    """The items as a list.

    Raises:
        InvalidArgumentsError: there are no items or too many, or the retained result is not a list.
        CallError: as raised by ``context.read_result``.
    """
    rows = await _rows(items, context) if isinstance(items, RetainedItems) else items
    max_items = MAX_DETACHED_ITEMS if detach else MAX_ITEMS
    if not rows:
        raise invalid([("items", "should have at least one item")])
    if len(rows) > max_items:
        advice = "" if detach else f"; with detach at most {MAX_DETACHED_ITEMS:,}"
        raise invalid([("items", f"should have at most {max_items:,} items, not {len(rows):,}{advice}")])
    return rows


async def _rows(items: RetainedItems, context: OrchestrationContext) -> list[Json]:
    shaping = plan_shaping(items.options, "items.options")
    value = await context.read_result(items.handle)
    try:
        shaped = await apply(shaping.plan, value)
    except ShapingError as error:
        raise invalid([("items.options", str(error))]) from error
    if shaped.rows is None or shaping.plan.return_mode != "inline":
        raise InvalidArgumentsError("items: the retained result is not a list; set items.options.at to a list in it.")
    return shaped.rows


_ITEMS: Final = "should be objects with the tool's arguments, unless args builds the arguments from {{item}}"


class BatchOptions(Arguments):
    """How a batch runs, and what it reports."""

    concurrency: int = Field(default=AT_ONCE, ge=1, le=MAX_AT_ONCE, description="Items in progress at once.")
    on_error: Literal["continue", "stop"] = Field(
        default="continue", description="stop: after a failure, start no further items."
    )
    result_mode: Literal["summary", "detail"] = Field(
        default="summary", description="summary: counts and errors; detail: also each item's result."
    )
    select_fields: list[str] | None = Field(default=None, description="With detail: the fields to keep of each result.")
    max_retries: int = Field(default=0, ge=0, le=MAX_RETRIES, description="Per item, if its error is retryable.")
    max_delay_s: MaxDelay | None = Field(default=None, description=MAX_DELAY)


class BatchArguments(DetachOption):
    """A tool, items, and how the tool's arguments are built from each item."""

    tool_name: str
    items: list[Any] | RetainedItems = Field(
        description=f"Each item is the tool's arguments, or {{{{item}}}} in args; at most {MAX_ITEMS}, detached "
        f"{MAX_DETACHED_ITEMS:,}. Or the handle of a retained list."
    )
    args: dict[str, Any] | str | None = Field(
        default=None, description="The tool's arguments, with templates over {{item}} and {{index}} (from 0)."
    )
    options: BatchOptions = Field(default_factory=BatchOptions)
    on_unknown: Literal["keep", "retry"] = Field(
        default="keep", description="Whether a detached batch retries writes that a restart interrupted."
    )


@tool(
    "execute_batch",
    read_only=False,
    open_world=True,
    destructive=True,
    timeout_s=MAX_TIMEOUT_S + CALL_MARGIN_S,
    orchestration=True,
)
async def execute_batch(arguments: BatchArguments, context: OrchestrationContext) -> dict[str, Any]:
    """Call one tool for up to 100 items, several at once. Each item is the tool's arguments, or `args` builds them with
    templates over {{item}} and {{index}}. Returns how many succeeded, failed, are unknown (interrupted writes) and were
    skipped, and the errors by item index; with result_mode "detail" also the results, reduced to `select_fields`. With
    `detach` it takes up to 10,000 items, returns a call_id at once, and resumes after restarts.
    """
    chosen = context.find_tool(arguments.tool_name)
    items = await items_of(arguments.items, context, detach=arguments.detach)
    if weight(arguments.args, THREAD_THRESHOLD_BYTES) > THREAD_THRESHOLD_BYTES:
        plan = await asyncio.to_thread(plan_batch, arguments, items, chosen)
    else:
        plan = plan_batch(arguments, items, chosen)
    if arguments.detach and not context.detached:
        # A retained result may expire before the call runs.
        changed: dict[str, Json] = {"items": items} if isinstance(arguments.items, RetainedItems) else {}
        return await detach(context, arguments.seconds, changed)
    left = time_left(arguments.seconds, context.remaining())
    retry_unknown = arguments.on_unknown == "retry"
    retrying = RetryPolicy(call=context.call, left=left, sleep=asyncio.sleep, retry_unknown=retry_unknown)
    run = BatchRun(plan, retrying, shape_in(context), report=context.progress)
    try:
        answer = await run.run(items)
    except asyncio.CancelledError:
        context.report_parts(run.parts)
        raise cancellation_error(run.answer(), context.max_answer_bytes) from None
    context.report_parts(run.parts)
    rate = await context.rate_state(chosen)
    return answer if rate is None else {**answer, "rate": msgspec.to_builtins(rate)}


def plan_batch(arguments: BatchArguments, items: Sequence[Json], chosen: Tool) -> BatchPlan:
    """The plan of a batch.

    Raises:
        InvalidArgumentsError: the calls would certainly fail for every item.
    """
    options, problems = arguments.options, arguments.timeout_problems
    args = None
    if arguments.args is not None:
        templated = ArgumentTemplate(arguments.args, {}, "args")
        args = templated.template
        problems += [*templated.problems, *templated.mismatches(chosen)]
        problems += [
            ("args", f"there is no {name!r} in a batch; templates take {{{{item}}}} and {{{{index}}}}")
            for name in sorted(templated.names - OF_ITEM)
        ]
    elif not any(isinstance(item, dict) for item in items):
        problems.append(("items", _ITEMS))
    if problems:
        raise invalid(problems)
    fields = options.select_fields
    return BatchPlan(
        tool=chosen,
        args=args,
        shape=plan_shaping({"select_fields": fields}) if fields is not None else None,
        concurrency=options.concurrency,
        max_retries=options.max_retries,
        max_delay_s=options.max_delay_s,
        stop_on_error=options.on_error == "stop",
        detail=options.result_mode == "detail",
    )
