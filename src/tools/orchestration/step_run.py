"""Runs one step of a pipeline: its calls, their retries, and the shaping of their results."""

from collections.abc import Awaitable, Callable, Collection, Mapping

import msgspec

from ...protocol.error_codes import CallError, CallTimeoutError, InvalidArgumentsError, ToolError
from ...protocol.name_suggestions import as_sentence
from ...protocol.tool_call import Json
from ...shaping import MissingValueError, ShapingError, Template
from ..orchestration_context import OrchestrationContext
from .call_retry import RetryPolicy
from .pipeline_arguments import MAX_ITEMS, Retry
from .pipeline_plan import PlannedStep
from .result_shaping import ResultShaping, apply, parse_json_text, retain_shaped
from .run_limits import ResultBudget, bounded_map
from .step_result import StepCallResult, StepResult, merge_elements, state_of

Shape = Callable[[ResultShaping, Json, str], Awaitable["ShapedPart"]]
"""Shapes the value of the child call with this name.

Raises:
    ShapingError: the value does not fit the options. CallError: the shaped value cannot be written to a file.
"""


class ShapedPart(msgspec.Struct, frozen=True):
    """A shaped value, the paths in the options that matched nothing (often misspelt), and the report as a sentence."""

    value: Json
    unmatched: tuple[str, ...] = ()
    sentence: str = ""


def shape_in(context: OrchestrationContext) -> Shape:
    """Return the ``Shape`` for a call's child calls. A file's handle is the id of its child call."""

    async def shape(shaping: ResultShaping, value: Json, name: str) -> ShapedPart:
        shaped = await apply(shaping.plan, value)
        value = await retain_shaped(shaped, shaping, context, name=name) if shaping.to_file else shaped.value
        return ShapedPart(value, shaped.report.unmatched, shaped.report.sentence)

    return shape


async def shape_or_error(shape: Shape, shaping: ResultShaping, value: Json, name: str) -> ShapedPart | ToolError:
    """The shaped value, or an error if the options do not fit the value. The call has run in both cases."""
    try:
        return await shape(shaping, value, name)
    except ShapingError as error:
        return InvalidArgumentsError(as_sentence(f"options: {error}"), executed="yes").to_tool_error()
    except CallError as error:
        return msgspec.structs.replace(error.to_tool_error(), executed="yes", retryable=False)


class StepRunner:
    """Runs the steps of one pipeline. ``partially_used_names`` are the names of values that are used only in part."""

    def __init__(self, retrying: RetryPolicy, shape: Shape, partially_used_names: Collection[str]) -> None:
        self._retrying = retrying
        self._shape = shape
        self._partially_used_names = partially_used_names
        self._budget = ResultBudget()
        self.parsed_texts: dict[str, Json] = {}
        """Text results that are used in part, and the JSON parsed from them."""
        self.called: set[str] = set()
        """The steps that have attempted a call, or are about to."""

    async def run(self, planned: PlannedStep, context: Mapping[str, Json]) -> StepResult:
        """Run a step whose dependencies have ended. ``context`` has the input and the values of earlier steps."""
        if planned.when is not None and not planned.when.holds(context, self.parsed_texts):
            return StepResult(state="skipped")
        if delay_s := min(planned.step.delay_ms / 1000, self._retrying.left()):
            await self._retrying.sleep(delay_s)
        if planned.for_each is not None:
            return await self._for_each(planned, planned.for_each, context)
        end = await self._with_fallback(planned, context, await self._call(planned, planned.id, context))
        return StepResult(
            state=state_of(end),
            value=end.kept,
            error=end.error,
            unmatched=end.unmatched,
            shaping=end.shaping,
            attempts=end.attempts,
            replayed=end.replayed,
        )

    async def _for_each(self, planned: PlannedStep, template: Template, context: Mapping[str, Json]) -> StepResult:
        try:
            items = template.resolve(dict(context), self.parsed_texts)
        except ShapingError as error:
            return StepResult(state="failed", error=_unresolved("for_each", error, template, context))
        if not isinstance(items, list) or len(items) > MAX_ITEMS:
            problem = f"has {len(items)} elements" if isinstance(items, list) else "is not a list"
            message = f"for_each: the value {problem}; it takes a list of at most {MAX_ITEMS}."
            return StepResult(state="failed", error=InvalidArgumentsError(message).to_tool_error())
        failed = False

        async def call(index: int, item: Json) -> StepCallResult:
            nonlocal failed
            element_context = {**context, "item": item, "index": index}
            try:
                if not planned.elements.selects(element_context, self.parsed_texts):
                    return StepCallResult(filtered=True)
            except ShapingError as error:
                failed = True
                return StepCallResult(error=InvalidArgumentsError(as_sentence(f"filter: {error}")).to_tool_error())
            end = await self._call(planned, f"{planned.id}.{index}", element_context)
            end = await self._with_fallback(planned, element_context, end)
            failed = failed or end.value is msgspec.UNSET
            return end

        def may_start() -> bool:
            return self._retrying.left() > 0 and not (failed and planned.step.on_error != "continue")

        ends = await bounded_map(items, call, concurrency=planned.step.concurrency, may_start=may_start)
        return merge_elements(planned, ends)

    async def _call(self, planned: PlannedStep, name: str, context: Mapping[str, Json]) -> StepCallResult:
        if self._retrying.left() <= 0:
            return StepCallResult(
                error=CallTimeoutError("The pipeline ran out of time.", executed="no").to_tool_error()
            )
        try:
            arguments = planned.args.resolve(dict(context), self.parsed_texts)
        except ShapingError as error:
            return StepCallResult(error=_unresolved("args", error, planned.args, context))
        if not isinstance(arguments, dict):
            message = "args: the template should be an object with the tool's arguments."
            return StepCallResult(error=InvalidArgumentsError(message).to_tool_error())
        self.called.add(planned.id)
        retry = planned.step.retry or Retry(max=0)
        attempt = await self._retrying.attempt(
            planned.tool,
            arguments,
            name=name,
            retries=retry.max,
            max_delay_s=retry.max_delay_s,
            timeout_s=planned.step.timeout_s,
        )
        failure = attempt.error
        if failure is not None and attempt.unknown and attempt.replayed:
            failure = _not_retried(failure)
        end = StepCallResult(
            error=None if failure is None else self._budget.keep_details(failure),
            unknown=attempt.unknown,
            attempts=attempt.attempts,
            replayed=attempt.replayed,
        )
        result = attempt.result
        if result.error is not None or (failure is not None and planned.step.on_error != "continue"):
            return end
        shaped = await self._shaped(planned, msgspec.structs.replace(end, error=None, value=result.value), name)
        shaped = await self._within_budget(planned, shaped)
        if failure is None:
            return shaped
        return msgspec.structs.replace(end, answer=shaped.value, unmatched=shaped.unmatched, shaping=shaped.shaping)

    async def _shaped(self, planned: PlannedStep, end: StepCallResult, name: str) -> StepCallResult:
        """The result after the step's shaping options."""
        if planned.shape is None:
            return end
        shaped = await shape_or_error(self._shape, planned.shape, end.value, name)
        if isinstance(shaped, ToolError):
            return msgspec.structs.replace(end, value=msgspec.UNSET, error=shaped)
        return msgspec.structs.replace(end, value=shaped.value, unmatched=shaped.unmatched, shaping=shaped.sentence)

    async def _with_fallback(
        self, planned: PlannedStep, context: Mapping[str, Json], end: StepCallResult
    ) -> StepCallResult:
        if end.error is None or planned.step.on_error != "fallback":
            return end
        try:
            value = planned.fallback.resolve(dict(context), self.parsed_texts)
        except ShapingError as error:
            unresolved = _unresolved("fallback", error, planned.fallback, context)
            return msgspec.structs.replace(end, error=unresolved)
        return await self._within_budget(planned, msgspec.structs.replace(end, value=value))

    async def _within_budget(self, planned: PlannedStep, end: StepCallResult) -> StepCallResult:
        """The result, without its value if that exceeds the budget. A text value is parsed as JSON if templates use
        only parts of it.
        """
        if end.value is msgspec.UNSET:
            return end
        full = self._budget.spend(end.value)
        if (
            full is None
            and isinstance(end.value, str)
            and not {planned.id, "item"}.isdisjoint(self._partially_used_names)
        ):
            parsed = await parse_json_text(end.value)
            if not isinstance(parsed, str) and (full := self._budget.spend(parsed)) is None:
                self.parsed_texts[end.value] = parsed
        return end if full is None else msgspec.structs.replace(end, value=msgspec.UNSET, error=full)


def _not_retried(error: ToolError) -> ToolError:
    """The error of an interrupted call of an earlier run, with advice."""
    hint = "It was not repeated because it may have had an effect. Check, then set on_unknown to 'retry' to repeat it."
    return msgspec.structs.replace(error, message=f"{error.message} {hint}")


def _unresolved(place: str, error: ShapingError, template: Template, context: Mapping[str, Json]) -> ToolError:
    """The error of a template that cannot be resolved because a step has no result, or its result lacks a value."""
    without = sorted(template.names - context.keys())
    message = f"{place}: {error}"
    if isinstance(error, MissingValueError) and without:
        message = f"{place}: {error.reference} is missing, since {', '.join(map(repr, without))} produced no result"
    return InvalidArgumentsError(as_sentence(message)).to_tool_error()
