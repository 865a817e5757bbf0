"""The step engine: adds a reported step to a run and decides the next action. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ....protocol.error_codes import InvalidArgumentsError
from .workflow_definition import WorkflowDefinition
from .workflow_run import WorkflowRun, WorkflowStep


@dataclass(frozen=True, slots=True)
class StepReport:
    """The report of one call."""

    step: WorkflowStep
    total: int | None = None
    more: bool | None = None
    """Whether another step follows. None: decided by the step numbers."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """The given arguments that carry over to later steps."""


@dataclass(frozen=True, slots=True)
class Continue:
    """Another step follows; no model is asked."""


@dataclass(frozen=True, slots=True)
class Consult:
    """This was the last step; the expert is asked."""


@dataclass(frozen=True, slots=True)
class Conclude:
    """This was the last step; the caller's findings are the result."""

    reason: str
    """Why the expert is not asked."""


NextAction = Continue | Consult | Conclude


def next_number(run: WorkflowRun | None) -> int:
    """Returns the default step number."""
    return 1 if run is None or run.done else run.steps[-1].number + 1


def add_step(definition: WorkflowDefinition, run: WorkflowRun | None, report: StepReport) -> WorkflowRun:
    """Returns the run with this step added. Step 1 after a completed run begins a new one.

    Raises:
        InvalidArgumentsError: an argument required by this step is missing.
    """
    number = report.step.number
    if run is None or (run.done and number == 1):
        run = WorkflowRun()
    _check_required(definition, run, report)
    steps = {step.number: step for step in run.steps} | {number: report.step}
    total = max(run.total if report.total is None else report.total, number)
    return WorkflowRun(
        steps=tuple(steps[key] for key in sorted(steps)),
        total=total,
        values={**run.values, **report.values},
        done=not (number < total if report.more is None else report.more),
    )


def next_action(definition: WorkflowDefinition, run: WorkflowRun) -> NextAction:
    """Decides the action after the latest step."""
    if not run.done:
        return Continue()
    requested = run.values.get("use_assistant_model")
    if not (definition.expert.by_default if requested is None else requested):
        reason = "use_assistant_model is false"
        return Conclude(f"{reason} by default" if requested is None else reason)
    if requested is None and definition.expert.skip_when_certain and run.confidence == "certain":
        return Conclude("the confidence is certain")
    return Consult()


def _check_required(definition: WorkflowDefinition, run: WorkflowRun, report: StepReport) -> None:
    values = {**run.values, **report.values, **report.step.tool_arguments}
    fields = {
        name: f"required in step {argument.required_on}: {argument.description}"
        for name, argument in definition.arguments.items()
        if argument.required_on == report.step.number and name not in values
    }
    if fields:
        problems = "; ".join(f"{name}: {problem.removesuffix('.')}" for name, problem in fields.items())
        raise InvalidArgumentsError(f"{definition.name}: {problems}.", details={"fields": fields})
