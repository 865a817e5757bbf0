"""Runs one tool for many items: bounded concurrency, retries, and a report."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ...protocol.error_codes import CallCancelledError, InvalidArgumentsError, ToolError
from ...protocol.name_suggestions import as_sentence
from ...protocol.tool_call import Json, PartsOutcome
from ...shaping import ShapingError, Template
from ..tool_definition import Tool
from .call_retry import RetryPolicy, may_have_had_effect
from .result_shaping import ResultShaping
from .run_limits import REASON_CHARS, ResultBudget, bounded_map
from .step_result import common_names
from .step_run import Shape, shape_or_error


class BatchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The tool and how it is called for each item. Without ``args``, the item itself is the tool's arguments."""

    tool: Tool
    args: Template | None = None
    shape: ResultShaping | None = None
    """Applied to each result."""
    concurrency: int
    max_retries: int
    max_delay_s: float | None = None
    """The longest delay before a retry; None for no limit but the remaining time."""
    stop_on_error: bool
    detail: bool
    """Whether the answer includes the results."""


class ItemResult(msgspec.Struct, frozen=True, kw_only=True):
    """How the call of one item ended."""

    value: Json | msgspec.UnsetType = msgspec.UNSET
    error: ToolError | None = None
    unmatched: tuple[str, ...] = ()
    unknown: bool = False
    """The call may have had an effect; its outcome is unknown."""


class BatchRun:
    """One run over any number of items. Calls ``report`` with the number of ended items and their total."""

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
        self._budget = ResultBudget()
        self._started_at = time.monotonic()
        self._results: list[ItemResult | None] = []
        """None for items that were not started."""
        self._ended = 0
        self._retries = 0
        self._delayed_s = 0.0
        self._failed = False

    async def run(self, items: Sequence[Json]) -> dict[str, Any]:
        """Run until all items have ended, the deadline passes or the first item fails; returns the report.

        Raises:
            asyncio.CancelledError: the run was cancelled; ``answer`` returns the report so far.
        """
        self._results = [None] * len(items)

        async def work(index: int, item: Json) -> None:
            try:
                end = self._results[index] = await self._item(index, item)
            except asyncio.CancelledError:
                self._results[index] = self._interrupted()
                raise
            self._ended += 1
            self._failed = self._failed or end.error is not None
            state = "failed" if end.error else "done"
            self._report(f"{self._plan.tool.name}: item {index} {state}", self._ended, len(items))

        await bounded_map(items, work, concurrency=self._plan.concurrency, may_start=self._may_start)
        return self.answer()

    def _may_start(self) -> bool:
        return self._retrying.left() > 0 and not (self._failed and self._plan.stop_on_error)

    async def _item(self, index: int, item: Json) -> ItemResult:
        plan = self._plan
        try:
            arguments = plan.args.resolve({"item": item, "index": index}) if plan.args else item
        except ShapingError as error:
            return ItemResult(error=InvalidArgumentsError(as_sentence(f"args: {error}")).to_tool_error())
        if not isinstance(arguments, dict):
            message = "The item is not an object with the tool's arguments; set args to build them with {{item}}."
            return ItemResult(error=InvalidArgumentsError(message).to_tool_error())
        attempt = await self._retrying.attempt(
            plan.tool, arguments, name=str(index), retries=plan.max_retries, max_delay_s=plan.max_delay_s
        )
        self._retries += attempt.retries
        self._delayed_s += attempt.delayed_s
        if attempt.error is not None:
            return ItemResult(error=self._budget.keep_details(attempt.error), unknown=attempt.unknown)
        return await self._shaped(attempt.result.value, str(index))

    async def _shaped(self, value: Json, name: str) -> ItemResult:
        if not self._plan.detail:
            return ItemResult(value=None)
        unmatched: tuple[str, ...] = ()
        if self._plan.shape is not None:
            shaped = await shape_or_error(self._shape, self._plan.shape, value, name)
            if isinstance(shaped, ToolError):
                return ItemResult(error=shaped)
            value, unmatched = shaped.value, shaped.unmatched
        full = self._budget.spend(value)
        return ItemResult(error=full) if full else ItemResult(value=value, unmatched=unmatched)

    def _interrupted(self) -> ItemResult:
        error, repeatable = CallCancelledError("The item was interrupted."), self._plan.tool.repeatable
        return ItemResult(
            error=error.to_tool_error(repeatable=repeatable),
            unknown=may_have_had_effect(error.to_tool_error(), repeatable=repeatable),
        )

    @property
    def parts(self) -> PartsOutcome:
        """How the items ended so far."""
        errors = [(index, end.error) for index, end in enumerate(self._results) if end is not None and end.error]
        unknown = sum(end is not None and end.unknown for end in self._results)
        skipped = sum(end is None for end in self._results)
        if not errors and not skipped:
            return PartsOutcome("succeeded")
        counts = (len(errors) - unknown, "failed"), (unknown, "unknown"), (skipped, "skipped")
        reason = f"of {len(self._results)} items {', '.join(f'{count} {what}' for count, what in counts if count)}"
        if errors:
            index, first = errors[0]
            reason = f"{reason}; item {index}: {first.message.removesuffix('.')}"
        return PartsOutcome("unknown" if unknown else "failed", reason[:REASON_CHARS])

    def answer(self) -> dict[str, Any]:
        """The report on the items that have ended so far."""
        ends = self._results
        started = [(index, end) for index, end in enumerate(ends) if end is not None]
        errors = [(index, end) for index, end in started if end.error is not None]
        unknown = sum(end.unknown for _, end in errors)
        answer: dict[str, Any] = {
            "total": len(ends),
            "succeeded": len(started) - len(errors),
            "failed": len(errors) - unknown,
            "unknown": unknown,
            "skipped": len(ends) - len(started),
            "duration_ms": round((time.monotonic() - self._started_at) * 1000, 3),
            "errors": [{"index": index, "error": msgspec.to_builtins(end.error)} for index, end in errors],
        }
        if self._plan.max_retries:
            answer["retries"] = {
                "count": self._retries,
                "delay_s": round(self._delayed_s, 3),
                "max_delay_s": self._plan.max_delay_s,
            }
        if self._plan.detail:
            answer["results"] = [{"index": index, "result": end.value} for index, end in started if end.error is None]
        if unmatched := common_names(end.unmatched for _, end in started if end.error is None):
            answer["unmatched"] = list(unmatched)
        return answer
