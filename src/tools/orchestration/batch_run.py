"""One tool over many items: a sliding window, retries, and what there is to tell of it at the end."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ...protocol.error_codes import CallCancelledError, InvalidArgumentsError, ToolError
from ...protocol.name_suggestions import as_sentence
from ...protocol.tool_call import Json
from ...shaping import ShapingError, Template
from ..tool_definition import Tool
from .call_retry import RetryPolicy, may_be_done
from .result_shaping import ResultShaping
from .run_limits import ResultBudget, slide
from .step_run import Shape, in_each, shape_or_error


class BatchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is done with each item. Without ``args`` the item is the tool's arguments."""

    tool: Tool
    args: Template | None = None
    shape: ResultShaping | None = None
    """Of each result."""
    concurrency: int
    max_retries: int
    stop_on_error: bool
    detail: bool
    """Whether results are answered too."""


class ItemResult(msgspec.Struct, frozen=True, kw_only=True):
    """How one item ended."""

    value: Json | msgspec.UnsetType = msgspec.UNSET
    error: ToolError | None = None
    unmatched: tuple[str, ...] = ()
    unknown: bool = False
    """It may have had an effect that nobody knows of."""


class BatchRun:
    """One run over ``items``, of any number. ``report`` is told how many have ended, of how many."""

    def __init__(
        self,
        plan: BatchPlan,
        retrying: RetryPolicy,
        shape: Shape,
        *,
        report: Callable[[str, float, float], None],
    ) -> None:
        self._plan = plan
        self._retrying = retrying
        self._shape = shape
        self._report = report
        self._room = ResultBudget()
        self._began = time.monotonic()
        self._ends: list[ItemResult | None] = []
        """None of what was not begun."""
        self._ended = 0
        self._failed = False

    async def run(self, items: Sequence[Json]) -> dict[str, Any]:
        """Run it to its end, its deadline or its first failure, and answer what was done.

        Raises:
            asyncio.CancelledError: it was cancelled; ``answer`` has what was done all the same.
        """
        self._ends = [None] * len(items)

        async def work(index: int, item: Json) -> None:
            try:
                end = self._ends[index] = await self._item(index, item)
            except asyncio.CancelledError:
                self._ends[index] = self._cut_off()
                raise
            self._ended += 1
            self._failed = self._failed or end.error is not None
            told = "failed" if end.error else "done"
            self._report(f"{self._plan.tool.name}: item {index} {told}", self._ended, len(items))

        await slide(items, work, at_once=self._plan.concurrency, go_on=self._goes_on)
        return self.answer()

    def _goes_on(self) -> bool:
        return self._retrying.left() > 0 and not (self._failed and self._plan.stop_on_error)

    async def _item(self, index: int, item: Json) -> ItemResult:
        plan = self._plan
        try:
            arguments = plan.args.resolve({"item": item, "index": index}) if plan.args else item
        except ShapingError as error:
            return ItemResult(error=InvalidArgumentsError(as_sentence(f"args: {error}")).to_tool_error())
        if not isinstance(arguments, dict):
            message = "The item is no object with the tool's arguments; args says how they are made, with {{item}}."
            return ItemResult(error=InvalidArgumentsError(message).to_tool_error())
        made = await self._retrying.attempt(plan.tool, arguments, name=str(index), retries=plan.max_retries)
        if made.result.error is not None:
            return ItemResult(error=made.result.error, unknown=made.unknown)
        return await self._shaped(made.result.value, str(index))

    async def _shaped(self, value: Json, name: str) -> ItemResult:
        if not self._plan.detail:
            return ItemResult(value=None)
        unmatched: tuple[str, ...] = ()
        if self._plan.shape is not None:
            shaped = await shape_or_error(self._shape, self._plan.shape, value, name)
            if isinstance(shaped, ToolError):
                return ItemResult(error=shaped)
            value, unmatched = shaped.value, shaped.unmatched
        full = self._room.take(value)
        return ItemResult(error=full) if full else ItemResult(value=value, unmatched=unmatched)

    def _cut_off(self) -> ItemResult:
        error, repeatable = CallCancelledError("The item was cut off."), self._plan.tool.repeatable
        return ItemResult(
            error=error.to_tool_error(repeatable=repeatable),
            unknown=may_be_done(error.to_tool_error(), repeatable=repeatable),
        )

    def answer(self) -> dict[str, Any]:
        """What was done until now."""
        ends = self._ends
        begun = [(index, end) for index, end in enumerate(ends) if end is not None]
        errors = [(index, end) for index, end in begun if end.error is not None]
        unknown = sum(end.unknown for _, end in errors)
        answer: dict[str, Any] = {
            "total": len(ends),
            "succeeded": len(begun) - len(errors),
            "failed": len(errors) - unknown,
            "unknown": unknown,
            "skipped": len(ends) - len(begun),
            "duration_ms": round((time.monotonic() - self._began) * 1000, 3),
            "errors": [{"index": index, "error": msgspec.to_builtins(end.error)} for index, end in errors],
        }
        if self._plan.detail:
            answer["results"] = [{"index": index, "result": end.value} for index, end in begun if end.error is None]
        if unmatched := in_each(end.unmatched for _, end in begun if end.error is None):
            answer["unmatched"] = list(unmatched)
        return answer
