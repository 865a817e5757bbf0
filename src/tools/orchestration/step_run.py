"""One step of a pipeline at work: its calls, their retries, and what is made of what they answer."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Literal

import msgspec

from ...protocol.error_codes import CallError, CallTimeoutError, InvalidArgumentsError, ToolError
from ...protocol.name_suggestions import as_sentence
from ...protocol.tool_call import Json
from ...shaping import MissingValueError, ShapingError, Template
from ..orchestration_context import OrchestrationContext
from .call_retry import RetryPolicy
from .pipeline_arguments import MAX_ITEMS
from .pipeline_plan import PlannedStep
from .result_shaping import ResultShaping, apply, filed, said_by
from .run_limits import ResultBudget, slide

State = Literal["succeeded", "fell_back", "failed", "unknown", "skipped", "not_run"]
Shape = Callable[[ResultShaping, Json, str], Awaitable["ShapedPart"]]
"""Shapes the value of the call of this name.

Raises:
    ShapingError: it does not have what the options need.
    CallError: it cannot be kept as a file.
"""


class ShapedPart(msgspec.Struct, frozen=True):
    """What is left of a value, and the paths in the options that led nowhere, which are often misspelt."""

    value: Json
    unmatched: tuple[str, ...] = ()


def shape_in(context: OrchestrationContext) -> Shape:
    """The ``Shape`` of a call's parts; a file has the handle of the part."""

    async def shape(shaping: ResultShaping, value: Json, name: str) -> ShapedPart:
        shaped = await apply(shaping.plan, value)
        unmatched = shaped.report.unmatched
        if not shaping.to_file:
            return ShapedPart(shaped.value, unmatched)
        return ShapedPart(await filed(shaped, shaping, context, name=name), unmatched)

    return shape


async def shape_or_error(shape: Shape, shaping: ResultShaping, value: Json, name: str) -> ShapedPart | ToolError:
    """The shaped value; or the error of a call that has run, and whose value cannot be had as it was asked for."""
    try:
        return await shape(shaping, value, name)
    except ShapingError as error:
        return InvalidArgumentsError(as_sentence(f"options: {error}"), executed="yes").to_tool_error()
    except CallError as error:
        return msgspec.structs.replace(error.to_tool_error(), executed="yes", retryable=False)


class StepCallResult(msgspec.Struct, frozen=True, kw_only=True):
    """How one call of a step ended: with a value, or with an error, or with an error and what takes its place."""

    value: Json | msgspec.UnsetType = msgspec.UNSET
    error: ToolError | None = None
    unknown: bool = False
    """It may have had an effect that nobody knows of."""
    unmatched: tuple[str, ...] = ()
    attempts: int = 0
    replayed: bool = False


class StepResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a step ended. ``value`` is what later steps refer to."""

    state: State
    value: Json | msgspec.UnsetType = msgspec.UNSET
    error: ToolError | None = None
    errors: tuple[tuple[int, ToolError], ...] = ()
    """Of elements, by their index."""
    unmatched: tuple[str, ...] = ()
    """Paths in the options that led nowhere, of elements in none."""
    attempts: int = 0
    replayed: bool = False
    duration_ms: float = 0.0

    @property
    def ok(self) -> bool:
        return self.state in {"succeeded", "fell_back", "skipped"}

    def shown(self) -> dict[str, Json]:
        """As the pipeline's answer has it."""
        shown: dict[str, Json] = {
            "success": self.ok,
            "state": self.state,
            "duration_ms": self.duration_ms,
            "attempts": self.attempts,
        }
        if self.value is not msgspec.UNSET:
            shown["result"] = self.value
        if self.error is not None:
            shown["error"] = msgspec.to_builtins(self.error)
        if self.errors:
            shown["errors"] = [{"index": index, "error": msgspec.to_builtins(error)} for index, error in self.errors]
        if self.unmatched:
            shown["unmatched"] = list(self.unmatched)
        if self.replayed:
            shown["replayed"] = True
        return shown


class StepRunner:
    """Runs the steps of one pipeline. ``into`` are the names of what its templates refer to a part of."""

    def __init__(self, retrying: RetryPolicy, shape: Shape, into: Collection[str]) -> None:
        self._retrying = retrying
        self._shape = shape
        self._into = into
        self._room = ResultBudget()
        self.said: dict[str, Json] = {}
        """What the words of such steps say, by these words."""
        self.called: set[str] = set()
        """The steps that have made a call, or were about to."""

    async def run(self, planned: PlannedStep, context: Mapping[str, Json]) -> StepResult:
        """Run a step whose references have ended; ``context`` has the input and the values of steps that have one."""
        if planned.when is not None and not planned.when.holds(context, self.said):
            return StepResult(state="skipped")
        if delay_s := min(planned.step.delay_ms / 1000, self._retrying.left()):
            await self._retrying.sleep(delay_s)
        if planned.for_each is not None:
            return await self._for_each(planned, planned.for_each, context)
        end = await self._fallen_back(planned, context, await self._call(planned, planned.id, context))
        return StepResult(
            state=_state(end),
            value=end.value,
            error=end.error,
            unmatched=end.unmatched,
            attempts=end.attempts,
            replayed=end.replayed,
        )

    async def _for_each(self, planned: PlannedStep, template: Template, context: Mapping[str, Json]) -> StepResult:
        try:
            items = template.resolve(dict(context), self.said)
        except ShapingError as error:
            return StepResult(state="failed", error=_unresolved("for_each", error, template, context))
        if not isinstance(items, list) or len(items) > MAX_ITEMS:
            what = f"has {len(items)} elements" if isinstance(items, list) else "is no list"
            message = f"for_each: what it refers to {what}; it takes a list of at most {MAX_ITEMS}."
            return StepResult(state="failed", error=InvalidArgumentsError(message).to_tool_error())
        failed = False

        async def call(index: int, item: Json) -> StepCallResult:
            nonlocal failed
            beside = {**context, "item": item, "index": index}
            end = await self._call(planned, f"{planned.id}.{index}", beside)
            end = await self._fallen_back(planned, beside, end)
            failed = failed or end.value is msgspec.UNSET
            return end

        def go_on() -> bool:
            return self._retrying.left() > 0 and not (failed and planned.step.on_error != "continue")

        ends = await slide(items, call, at_once=planned.step.concurrency, go_on=go_on)
        return _together(planned, ends)

    async def _call(self, planned: PlannedStep, name: str, context: Mapping[str, Json]) -> StepCallResult:
        if self._retrying.left() <= 0:
            return StepCallResult(
                error=CallTimeoutError("The pipeline's time was over.", executed="no").to_tool_error()
            )
        try:
            arguments = planned.args.resolve(dict(context), self.said)
        except ShapingError as error:
            return StepCallResult(error=_unresolved("args", error, planned.args, context))
        if not isinstance(arguments, dict):
            message = "args: the template should be an object with the tool's arguments."
            return StepCallResult(error=InvalidArgumentsError(message).to_tool_error())
        self.called.add(planned.id)
        retries = planned.step.retry.max if planned.step.retry else 0
        made = await self._retrying.attempt(
            planned.tool, arguments, name=name, retries=retries, timeout_s=planned.step.timeout_s
        )
        failure = made.result.error
        if failure is not None and made.unknown and made.replayed:
            failure = _left_alone(failure)
        end = StepCallResult(error=failure, unknown=made.unknown, attempts=made.attempts, replayed=made.replayed)
        if failure is not None:
            return end
        end = await self._shaped(planned, msgspec.structs.replace(end, value=made.result.value), name)
        return await self._held(planned, end)

    async def _shaped(self, planned: PlannedStep, end: StepCallResult, name: str) -> StepCallResult:
        """What the step's options make of its value."""
        if planned.shape is None:
            return end
        shaped = await shape_or_error(self._shape, planned.shape, end.value, name)
        if isinstance(shaped, ToolError):
            return msgspec.structs.replace(end, value=msgspec.UNSET, error=shaped)
        return msgspec.structs.replace(end, value=shaped.value, unmatched=shaped.unmatched)

    async def _fallen_back(
        self, planned: PlannedStep, context: Mapping[str, Json], end: StepCallResult
    ) -> StepCallResult:
        if end.error is None or planned.step.on_error != "fallback":
            return end
        try:
            value = planned.fallback.resolve(dict(context), self.said)
        except ShapingError as error:
            unresolved = _unresolved("fallback", error, planned.fallback, context)
            return msgspec.structs.replace(end, error=unresolved)
        return await self._held(planned, msgspec.structs.replace(end, value=value))

    async def _held(self, planned: PlannedStep, end: StepCallResult) -> StepCallResult:
        """The same, without its value where the run has no room for it, and for what that says where it is referred
        into: as itself, or as an ``item``.
        """
        if end.value is msgspec.UNSET:
            return end
        full = self._room.take(end.value)
        if full is None and isinstance(end.value, str) and not {planned.id, "item"}.isdisjoint(self._into):
            said = await said_by(end.value)
            if not isinstance(said, str) and (full := self._room.take(said)) is None:
                self.said[end.value] = said
        return end if full is None else msgspec.structs.replace(end, value=msgspec.UNSET, error=full)


def _left_alone(error: ToolError) -> ToolError:
    """What may be done since an earlier run, with what a caller can say about it."""
    hint = "It was left alone, since it may be done; look, and send on_unknown 'retry' to have it run again."
    return msgspec.structs.replace(error, message=f"{error.message} {hint}")


def _state(end: StepCallResult) -> State:
    if end.error is None:
        return "succeeded"
    if end.value is not msgspec.UNSET:
        return "fell_back"
    return "unknown" if end.unknown else "failed"


def _together(planned: PlannedStep, ends: list[StepCallResult | None]) -> StepResult:
    """The step's result from those of its elements; those that were not begun are None.

    Where the step goes on without what failed, its value has null in those places.
    """
    begun = [(index, end) for index, end in enumerate(ends) if end is not None]
    errors = tuple((index, end.error) for index, end in begun if end.error is not None)
    states = {_state(end) for _, end in begun}
    whole = len(begun) == len(ends)
    state: State = next((one for one in ("unknown", "failed", "fell_back") if one in states), "succeeded")
    value: Json | msgspec.UnsetType = msgspec.UNSET
    if whole and (state in {"succeeded", "fell_back"} or planned.step.on_error == "continue"):
        value = [None if end.value is msgspec.UNSET else end.value for _, end in begun]
    error = None
    if state in {"unknown", "failed"}:
        index, first = next((index, end.error) for index, end in begun if end.error and end.value is msgspec.UNSET)
        error = msgspec.structs.replace(first, message=f"element {index}: {first.message}")
    elif not whole:
        state = "failed"
        missing = len(ends) - len(begun)
        error = CallTimeoutError(f"The time was over before {missing} of {len(ends)} elements.").to_tool_error()
    return StepResult(
        state=state,
        value=value,
        error=error,
        errors=errors,
        unmatched=in_each(end.unmatched for _, end in begun if end.error is None),
        attempts=sum(end.attempts for _, end in begun),
        replayed=bool(begun) and whole and all(end.replayed for _, end in begun),
    )


def in_each(groups: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """What is in every one of these groups."""
    first, *rest = (*groups,) or ((),)
    return tuple(name for name in first if all(name in group for group in rest))


def _unresolved(place: str, error: ShapingError, template: Template, context: Mapping[str, Json]) -> ToolError:
    """A template could not be filled in: because a step has no result, or because that lacks something."""
    without = sorted(template.names - context.keys())
    told = f"{place}: {error}"
    if isinstance(error, MissingValueError) and without:
        told = f"{place}: {error.reference} is not there, since {', '.join(map(repr, without))} brought no result"
    return InvalidArgumentsError(as_sentence(told)).to_tool_error()
