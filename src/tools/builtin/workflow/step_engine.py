"""The step engine: what a reported step makes of a run, and what is done next. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ....protocol.error_codes import InvalidArgumentsError
from .workflow_definition import WorkflowDefinition
from .workflow_run import WorkflowRun, WorkflowStep


@dataclass(frozen=True, slots=True)
class StepReport:
    """What one call says."""

    step: WorkflowStep
    total: int | None = None
    more: bool | None = None
    """Whether a step follows. None goes by the numbers."""
    said: Mapping[str, Any] = field(default_factory=dict)
    """What was given of the arguments that go on from step to step."""


@dataclass(frozen=True, slots=True)
class Continue:
    """Another step follows; nobody is asked."""


@dataclass(frozen=True, slots=True)
class Consult:
    """This was the last step: one expert call is made."""


@dataclass(frozen=True, slots=True)
class Conclude:
    """This was the last step, and what the caller found is the result."""

    why: str
    """Why no expert is asked."""


Decision = Continue | Consult | Conclude


def next_number(run: WorkflowRun | None) -> int:
    """The number of a step that says none."""
    return 1 if run is None or run.done else run.steps[-1].number + 1


def take(definition: WorkflowDefinition, run: WorkflowRun | None, report: StepReport) -> WorkflowRun:
    """The run with this step in it. Step 1 after a run that is done begins a new one.

    Raises:
        InvalidArgumentsError: an argument that this step must have is not there.
    """
    number = report.step.number
    if run is None or (run.done and number == 1):
        run = WorkflowRun()
    _require(definition, run, report)
    steps = {step.number: step for step in run.steps} | {number: report.step}
    total = max(run.total if report.total is None else report.total, number)
    return WorkflowRun(
        steps=tuple(steps[key] for key in sorted(steps)),
        total=total,
        said={**run.said, **report.said},
        done=not (number < total if report.more is None else report.more),
    )


def decide(definition: WorkflowDefinition, run: WorkflowRun) -> Decision:
    """What is done with a step that was taken."""
    if not run.done:
        return Continue()
    wanted = run.said.get("use_assistant_model")
    if not (definition.expert.by_default if wanted is None else wanted):
        said = "use_assistant_model is false"
        return Conclude(f"{said} by default" if wanted is None else said)
    if wanted is None and definition.expert.skip_when_certain and run.confidence == "certain":
        return Conclude("the confidence is certain")
    return Consult()


def _require(definition: WorkflowDefinition, run: WorkflowRun, report: StepReport) -> None:
    given = {**run.said, **report.said, **report.step.own}
    fields = {
        name: f"step {argument.required_on} needs it: {argument.description}"
        for name, argument in definition.arguments.items()
        if argument.required_on == report.step.number and name not in given
    }
    if fields:
        told = "; ".join(f"{name}: {what.removesuffix('.')}" for name, what in fields.items())
        raise InvalidArgumentsError(f"{definition.name}: {told}.", details={"fields": fields})
