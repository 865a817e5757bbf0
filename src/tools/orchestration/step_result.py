"""How a step of a pipeline ended: with one call, or with the merged calls of its elements. Pure."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from ...protocol.error_codes import CallTimeoutError, ToolError
from ...protocol.tool_call import Json
from .pipeline_plan import PlannedStep

State = Literal["succeeded", "used_fallback", "failed", "unknown", "skipped", "not_run"]


class StepCallResult(msgspec.Struct, frozen=True, kw_only=True):
    """How one call of a step ended: with a value, with an error, or with an error and its fallback value."""

    value: Json | msgspec.UnsetType = msgspec.UNSET
    error: ToolError | None = None
    answer: Json | msgspec.UnsetType = msgspec.UNSET
    """With on_error 'continue': a failed call's report on its parts, for later steps."""
    unknown: bool = False
    """The call may have had an effect; its outcome is unknown."""
    unmatched: tuple[str, ...] = ()
    shaping: str = ""
    """The effect of the options, as a sentence."""
    attempts: int = 0
    replayed: bool = False
    filtered: bool = False
    """The element was not selected, so there is neither a value nor an error."""

    @property
    def kept(self) -> Json | msgspec.UnsetType:
        """The value that later steps can use."""
        return self.answer if self.value is msgspec.UNSET else self.value


class StepResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a step ended. Later steps refer to ``value``."""

    state: State
    value: Json | msgspec.UnsetType = msgspec.UNSET
    error: ToolError | None = None
    errors: tuple[tuple[int, ToolError], ...] = ()
    """Errors of elements, with their indexes."""
    unmatched: tuple[str, ...] = ()
    """Paths in the options that matched nothing in any element."""
    shaping: str = ""
    """The effect of the options, as a sentence; empty for a step with ``for_each``."""
    skipped: int = 0
    """The number of elements that the step's filter did not select."""
    attempts: int = 0
    replayed: bool = False
    duration_ms: float = 0.0

    @property
    def ok(self) -> bool:
        return self.state in {"succeeded", "used_fallback", "skipped"}

    def shown(self) -> dict[str, Json]:
        """The step in the pipeline's report."""
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
        if self.shaping:
            shown["shaping"] = self.shaping
        if self.skipped:
            shown["skipped"] = self.skipped
        if self.unmatched:
            shown["unmatched"] = list(self.unmatched)
        if self.replayed:
            shown["replayed"] = True
        return shown


def state_of(end: StepCallResult) -> State:
    if end.error is None:
        return "succeeded"
    if end.value is not msgspec.UNSET:
        return "used_fallback"
    return "unknown" if end.unknown else "failed"


def merge_elements(planned: PlannedStep, ends: list[StepCallResult | None]) -> StepResult:
    """The step's result from the results of its elements; None stands for elements that were not started.

    With on_error 'continue', the step's value has null for failed elements, or their answer if it reports on parts.
    """
    started = [(index, end) for index, end in enumerate(ends) if end is not None and not end.filtered]
    errors = tuple((index, end.error) for index, end in started if end.error is not None)
    states = {state_of(end) for _, end in started}
    skipped = sum(end is not None and end.filtered for end in ends)
    whole = len(started) + skipped == len(ends)
    state: State = next((one for one in ("unknown", "failed", "used_fallback") if one in states), "succeeded")
    value: Json | msgspec.UnsetType = msgspec.UNSET
    if whole and (state in {"succeeded", "used_fallback"} or planned.step.on_error == "continue"):
        value = [None if end.kept is msgspec.UNSET else end.kept for _, end in started]
    error = None
    if state in {"unknown", "failed"}:
        index, first = next((index, end.error) for index, end in started if end.error and end.value is msgspec.UNSET)
        error = msgspec.structs.replace(first, message=f"element {index}: {first.message}")
    elif not whole:
        state = "failed"
        missing = len(ends) - len(started) - skipped
        error = CallTimeoutError(f"Time ran out before {missing} of {len(ends)} elements started.").to_tool_error()
    return StepResult(
        state=state,
        value=value,
        error=error,
        errors=errors,
        unmatched=common_names(end.unmatched for _, end in started if end.error is None),
        skipped=skipped,
        attempts=sum(end.attempts for _, end in started),
        replayed=bool(started) and whole and all(end.replayed for _, end in started),
    )


def common_names(groups: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """The names that are in every group."""
    first, *rest = (*groups,) or ((),)
    return tuple(name for name in first if all(name in group for group in rest))
