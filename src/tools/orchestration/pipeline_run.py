"""A pipeline at work: each step begins when those that it refers to have ended, several side by side."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from ...protocol.error_codes import CallCancelledError
from ...protocol.tool_call import Json
from ...shaping import ShapingError
from .call_retry import may_be_done
from .pipeline_plan import PipelinePlan, PlannedStep
from .step_run import StepResult, StepRunner

SIDE_BY_SIDE: Final = 8
"""As many as a session has calls at work, unless the operator says otherwise."""

Report = Callable[[str, float, float], None]
"""``OrchestrationContext.progress``: a message, and how many steps of how many have ended."""


class PipelineRun:
    """One run of a plan. ``left`` says how many seconds there are."""

    def __init__(
        self,
        plan: PipelinePlan,
        runner: StepRunner,
        *,
        input: Mapping[str, Json],  # noqa: A002 - the word of those who write pipelines
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
        self._began = time.monotonic()
        self._stopped: str | None = None
        """Why no further step begins."""

    async def run(self) -> dict[str, Any]:
        """Run it to its end, and answer what was done, whatever that is.

        Raises:
            asyncio.CancelledError: it was cancelled; ``answer`` has what was done all the same.
        """
        try:
            while self._begin_ready() or self._running:
                done, _ = await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    self._take(self._running.pop(task), task.result())
        except asyncio.CancelledError:
            self._stopped = "it was cancelled"
            raise
        finally:
            for task in self._running:
                task.cancel()
            if self._running:
                await asyncio.gather(*self._running, return_exceptions=True)
        return self.answer()

    def _begin_ready(self) -> bool:
        """Begin what can begin now; whether anything did."""
        begun = {step.id for step in self._running.values()} | self._results.keys()
        ready = [
            step
            for step in self._plan.steps
            if step.id not in begun and all(name in self._results for name in step.after)
        ]
        if self._stopped is None and ready and self._left() <= 0:
            self._stopped = "the time was over"
        if self._stopped is not None:
            return False
        ready = ready[: SIDE_BY_SIDE - len(self._running)]
        for step in ready:
            self._running[asyncio.create_task(self._step(step))] = step
        return bool(ready)

    async def _step(self, step: PlannedStep) -> StepResult:
        self._tell(f"{step.id}: {step.step.tool_name}")
        began = time.monotonic()
        result = await self._runner.run(step, self._context)
        return msgspec.structs.replace(result, duration_ms=round((time.monotonic() - began) * 1000, 3))

    def _take(self, step: PlannedStep, result: StepResult) -> None:
        self._results[step.id] = result
        if result.value is not msgspec.UNSET:
            self._context[step.id] = result.value
        if not result.ok and step.step.on_error != "continue" and self._stopped is None:
            why = result.error.message if result.error else result.state
            unknown = result.state == "unknown"
            self._stopped = (
                f"the outcome of step {step.id!r} is unknown: {why}" if unknown else f"step {step.id!r} failed: {why}"
            )
        self._tell(f"{step.id}: {result.state.replace('_', ' ')}")

    def _tell(self, message: str) -> None:
        self._report(message, len(self._results), len(self._plan.steps))

    def _cut_off(self, task: asyncio.Task[StepResult], step: PlannedStep) -> StepResult:
        """How a step ended that was running when the pipeline was cancelled."""
        if not task.cancelled() and task.exception() is None:
            return task.result()
        if step.id not in self._runner.called:
            return StepResult(state="not_run")
        error, repeatable = CallCancelledError("The step was cut off."), step.tool.repeatable
        unknown = may_be_done(error.to_tool_error(), repeatable=repeatable)
        return StepResult(
            state="unknown" if unknown else "failed", error=error.to_tool_error(repeatable=repeatable), attempts=1
        )

    def answer(self) -> dict[str, Any]:
        """What was done until now, of a run that has ended or was cancelled."""
        result = self._context.get(self._plan.steps[-1].id)
        if self._plan.returns is not None:
            try:
                result = self._plan.returns.resolve(self._context, self._runner.said)
            except ShapingError as error:
                result = None
                self._stopped = self._stopped or f"return: {error}"
        results = self._results | {step.id: self._cut_off(task, step) for task, step in self._running.items()}
        shown = {step.id: results.get(step.id, StepResult(state="not_run")) for step in self._plan.steps}
        answer = {
            "success": self._stopped is None,
            "steps_completed": sum(one.state in {"succeeded", "fell_back"} for one in shown.values()),
            "total_steps": len(shown),
            "duration_ms": round((time.monotonic() - self._began) * 1000, 3),
            "result": result,
            "step_results": {step: one.shown() for step, one in shown.items()},
        }
        if self._stopped is not None:
            answer["stopped_because"] = self._stopped
        return answer
