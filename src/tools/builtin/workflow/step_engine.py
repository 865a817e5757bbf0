"""The step engine: adds a reported step to a run and decides the next action. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from ....protocol.error_codes import InvalidArgumentsError
from .step_guidance import argument_value
from .workflow_definition import Argument, WorkflowDefinition
from .workflow_run import WorkflowRun, WorkflowStep


@dataclass(frozen=True, slots=True)
class StepReport:
    """A call's report of one step."""

    step: WorkflowStep
    total: int | None = None
    more: bool | None = None
    """Whether another step follows. None: decided by the step numbers."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """The given arguments that carry over to later steps."""
    backtrack: int | None = None
    """Steps with this number and later ones are discarded."""


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


@dataclass(frozen=True, slots=True)
class AskUser:
    """The caller asks its user for the value of an argument, and sends it with the next step."""

    argument: str
    text: str
    choices: tuple[str, ...]


NextAction = Continue | AskUser | Consult | Conclude


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
    kept = [step for step in run.steps if report.backtrack is None or step.number < report.backtrack]
    discarded = {*run.discarded, *(step.number for step in run.steps)} - {step.number for step in kept} - {number}
    steps = {step.number: step for step in kept} | {number: report.step}
    total = max(run.total if report.total is None else report.total, number)
    new_run = WorkflowRun(
        steps=tuple(steps[key] for key in sorted(steps)),
        total=total,
        values={**run.values, **report.values},
        done=not (number < total if report.more is None else report.more),
        discarded=tuple(sorted(discarded)),
    )
    return replace(new_run, done=False) if _question(definition, new_run) else new_run


def next_action(definition: WorkflowDefinition, run: WorkflowRun) -> NextAction:
    """Decides the action after the latest step."""
    if not run.done:
        return _question(definition, run) or Continue()
    requested = run.values.get("use_assistant_model")
    if not (definition.expert.by_default if requested is None else requested):
        reason = "use_assistant_model is false"
        return Conclude(f"{reason} by default" if requested is None else reason)
    if requested is None and definition.expert.skip_when_certain and run.confidence == "certain":
        return Conclude("the confidence is certain")
    return Consult()


def _question(definition: WorkflowDefinition, run: WorkflowRun) -> AskUser | None:
    """The first open question. A last step asks it only if it is also the first step, so that a caller who does not
    answer can finish.
    """
    if run.done and len(run.steps) > 1:
        return None
    for name, argument in definition.arguments.items():
        question = argument.ask_user
        if question is not None and argument_value(definition, run, name) == question.value:
            return AskUser(name, question.text, tuple(word for word in argument.choices if word != question.value))
    return None


def _is_required(argument: Argument, run: WorkflowRun, number: int) -> bool:
    """Whether this step needs the argument. A run that begins with a later step also needs those of earlier steps."""
    required_on = argument.required_on
    return required_on is not None and (required_on == number or (not run.steps and required_on < number))


def _check_required(definition: WorkflowDefinition, run: WorkflowRun, report: StepReport) -> None:
    values = {**run.values, **report.values, **report.step.tool_arguments}
    fields = {
        name: f"required in step {argument.required_on}: {argument.description}"
        for name, argument in definition.arguments.items()
        if _is_required(argument, run, report.step.number) and name not in values
    }
    if fields:
        problems = "; ".join(f"{name}: {problem.removesuffix('.')}" for name, problem in fields.items())
        raise InvalidArgumentsError(f"{definition.name}: {problems}.", details={"fields": fields})
