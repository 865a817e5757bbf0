"""Runs a pipeline: each step starts when the steps that it refers to have ended, several in parallel."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from ...protocol.error_codes import CallCancelledError
from ...protocol.tool_call import Json, PartsOutcome
from ...shaping import ShapingError
from .call_retry import may_have_had_effect
from .pipeline_plan import PipelinePlan, PlannedStep
from .pipeline_return import ReturnedFields
from .result_shaping import is_large
from .run_limits import REASON_CHARS
from .step_result import StepResult
from .step_run import StepRunner

MAX_PARALLEL_STEPS: Final = 8
"""The default of ``max_running_per_session``."""

_CANCELLED: Final = "it was cancelled"

Report = Callable[[str, float, float], None]
"""``OrchestrationContext.progress``: a message, the number of ended steps, and their total."""


class PipelineRun:
    """One run of a plan. ``left`` returns the remaining seconds."""

    def __init__(
        self,
        plan: PipelinePlan,
        runner: StepRunner,
        *,
        input: Mapping[str, Json],  # noqa: A002 - the term of pipelines
        left: Callable[[], float],
        report: Report,
    ) -> None:
        self._plan = plan
        self._runner = runner
        self._left = left
        self._report = report
        self._results: dict[str, StepResult] = {}
        self._context: dict[str, Json] = {"input": input}
        self._running: dict[asyncio.Task[StepResult], PlannedStep] = {}
        self._started_at = time.monotonic()
        self._stopped: str | None = None
        """Why no further step starts."""

    async def run(self) -> dict[str, Any]:
        """Run all steps and return the report.

        Raises:
            asyncio.CancelledError: the run was cancelled; ``answer`` returns the report so far.
        """
        try:
            while self._start_ready() or self._running:
                done, _ = await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    self._record(self._running.pop(task), task.result())
        except asyncio.CancelledError:
            self._stopped = _CANCELLED
            raise
        finally:
            for task in self._running:
                task.cancel()
            if self._running:
                await asyncio.gather(*self._running, return_exceptions=True)
        if isinstance(self._plan.returns, ReturnedFields):
            returned = {step: self._context.get(step) for step in self._plan.returns.plans}
            if is_large(returned):
                return await asyncio.to_thread(self.answer)
        return self.answer()

    def _start_ready(self) -> bool:
        """Start the steps that can start now; returns whether any did."""
        started = {step.id for step in self._running.values()} | self._results.keys()
        ready = [
            step
            for step in self._plan.steps
            if step.id not in started and all(name in self._results for name in step.after)
        ]
        if self._stopped is None and ready and self._left() <= 0:
            self._stopped = "the time ran out"
        if self._stopped is not None:
            return False
        ready = ready[: MAX_PARALLEL_STEPS - len(self._running)]
        for step in ready:
            self._running[asyncio.create_task(self._step(step))] = step
        return bool(ready)

    async def _step(self, step: PlannedStep) -> StepResult:
        self._report_progress(f"{step.id}: {step.step.tool_name}")
        began = time.monotonic()
        result = await self._runner.run(step, self._context)
        return msgspec.structs.replace(result, duration_ms=round((time.monotonic() - began) * 1000, 3))

    def _record(self, step: PlannedStep, result: StepResult) -> None:
        self._results[step.id] = result
        if result.value is not msgspec.UNSET:
            self._context[step.id] = result.value
        if not result.ok and step.step.on_error != "continue" and self._stopped is None:
            reason = result.error.message if result.error else result.state
            unknown = result.state == "unknown"
            self._stopped = (
                f"the outcome of step {step.id!r} is unknown: {reason}"
                if unknown
                else f"step {step.id!r} failed: {reason}"
            )
        self._report_progress(f"{step.id}: {result.state.replace('_', ' ')}")

    def _report_progress(self, message: str) -> None:
        self._report(message, len(self._results), len(self._plan.steps))

    def _interrupted(self, task: asyncio.Task[StepResult], step: PlannedStep) -> StepResult:
        """The result of a step that was running when the pipeline was cancelled."""
        if not task.cancelled() and task.exception() is None:
            return task.result()
        if step.id not in self._runner.called:
            return StepResult(state="not_run")
        error, repeatable = CallCancelledError("The step was interrupted."), step.tool.repeatable
        unknown = may_have_had_effect(error.to_tool_error(), repeatable=repeatable)
        return StepResult(
            state="unknown" if unknown else "failed", error=error.to_tool_error(repeatable=repeatable), attempts=1
        )

    @property
    def parts(self) -> PartsOutcome:
        """How the steps ended; call ``answer`` first. 'succeeded' if the pipeline succeeded, even if steps failed."""
        if self._stopped is None:
            return PartsOutcome("succeeded")
        unknown = any(step.state == "unknown" for step in self._step_results().values())
        return PartsOutcome("unknown" if unknown else "failed", self._stopped.removesuffix(".")[:REASON_CHARS])

    def _step_results(self) -> dict[str, StepResult]:
        ended = self._results | {step.id: self._interrupted(task, step) for task, step in self._running.items()}
        return {step.id: ended.get(step.id, StepResult(state="not_run")) for step in self._plan.steps}

    def answer(self) -> dict[str, Any]:
        """The report on the steps so far; call it after the run ended or was cancelled."""
        result, unmatched = self._returned()
        shown = self._step_results()
        answer = {
            "success": self._stopped is None,
            "steps_completed": sum(one.state in {"succeeded", "used_fallback"} for one in shown.values()),
            "total_steps": len(shown),
            "duration_ms": round((time.monotonic() - self._started_at) * 1000, 3),
            "result": result,
            "step_results": {step: one.shown() for step, one in shown.items()},
        }
        if unmatched:
            answer["unmatched"] = unmatched
        if self._stopped is not None:
            answer["stop_reason"] = self._stopped
        return answer

    def _returned(self) -> tuple[Json, dict[str, list[str]]]:
        """The result, and by step the requested fields that the step's result lacks."""
        returns, parsed = self._plan.returns, self._runner.parsed_texts
        try:
            match returns:
                case None:
                    return self._context.get(self._plan.steps[-1].id), {}
                case ReturnedFields():
                    return returns.resolve(self._context, parsed) if self._stopped != _CANCELLED else (None, {})
                case _:
                    return returns.resolve(self._context, parsed), {}
        except ShapingError as error:
            self._stopped = self._stopped or f"return: {error}"
            return None, {}
