"""A workflow tool's arguments: those of all, and its own as its definition has them. Pure."""

from typing import Any, Final, Literal

from pydantic import AliasChoices, ConfigDict, Field, create_model

from ....protocol.error_codes import InvalidArgumentsError
from ...tool import Arguments
from .step_engine import StepReport
from .workflow_definition import Argument, Confidence, Severity, WorkflowDefinition
from .workflow_run import WorkflowIssue, WorkflowStep

MAX_FILES: Final = 64
"""Named in one step."""
MAX_STEPS: Final = 1_000
"""Of one run: far more than anybody takes."""

_GOING_ON: Final[tuple[str, ...]] = ("confidence", "hypothesis", "model", "use_assistant_model")


def _short(schema: dict[str, Any]) -> None:
    """Leave out of each property what says only that it may be left out: who reads the listing pays for every word."""
    schema.pop("title", None)
    schema.pop("description", None)
    for field in schema.get("properties", {}).values():
        if field.get("default", ...) in (None, [], ""):
            del field["default"]
        options = [option for option in field.get("anyOf", ()) if option != {"type": "null"}]
        if len(options) == 1:
            del field["anyOf"]
            field.update(options[0])


class IssueFound(Arguments):
    """Something wrong that the caller found."""

    model_config = ConfigDict(json_schema_extra=_short)

    severity: Severity
    description: str = Field(min_length=1)
    file: str | None = None
    line: int | None = Field(default=None, ge=1)


class StepArguments(Arguments):
    """What every workflow tool takes. ``step`` alone is a whole run: one step, and the expert call."""

    model_config = ConfigDict(json_schema_extra=_short)

    step: str = Field(min_length=1, validation_alias=AliasChoices("step", "prompt"))
    step_number: int | None = Field(default=None, ge=1, le=MAX_STEPS, description="From 1; by default the next one.")
    total_steps: int | None = Field(default=None, ge=1, le=MAX_STEPS, description="Your estimate; may change.")
    next_step_required: bool | None = Field(
        default=None, description="False on the last step. By default true while step_number is below total_steps."
    )
    findings: str = Field(default="", description="What this step found; earlier findings are kept.")
    files_checked: list[str] = Field(default=[], description="Files you looked at.")
    relevant_files: list[str] = Field(
        default=[], max_length=MAX_FILES, description="Text files below the workspace that the expert must read."
    )
    issues_found: list[IssueFound] = Field(default=[], description="What is wrong so far.")
    confidence: Confidence | None = Field(default=None, description="How sure you are of what you found.")
    hypothesis: str | None = Field(default=None, description="What you think is the case, and why.")
    continuation_id: str | None = Field(default=None, description="From the last answer; needed from step 2 on.")
    model: str | None = Field(
        default=None, description="The expert: an id or alias (see listmodels), or auto; else the default."
    )
    use_assistant_model: bool | None = Field(default=None, description="Whether the last step asks the expert.")


def arguments_model(definition: WorkflowDefinition) -> type[StepArguments]:
    """The argument model of the tool that this defines."""
    by_default = "true" if definition.expert.by_default else "false"
    asks = StepArguments.model_fields["use_assistant_model"].description
    described: dict[str, Any] = {
        "step": (
            str,
            Field(min_length=1, description=definition.step, validation_alias=AliasChoices("step", "prompt")),
        ),
        "use_assistant_model": (bool | None, Field(default=None, description=f"{asks} By default {by_default}.")),
    }
    described |= {name: _field(argument) for name, argument in definition.arguments.items()}
    return create_model("WorkflowArguments", __base__=StepArguments, **described)


def report_of(definition: WorkflowDefinition, arguments: StepArguments, number: int) -> StepReport:
    """What a call says, its step being this ``number``.

    Raises:
        InvalidArgumentsError: the step goes on with a thread and does not say which.
    """
    if number > 1 and arguments.continuation_id is None:
        what = f"step {number} needs the one that the answer to the step before it has; without one begin with step 1"
        raise InvalidArgumentsError(
            f"{definition.name}: continuation_id: {what}.", details={"fields": {"continuation_id": what}}
        )
    given = {name: getattr(arguments, name) for name in arguments.model_fields_set}
    given = {name: value for name, value in given.items() if value is not None}
    own = {name: given[name] for name in definition.arguments if name in given}
    of_step = {name: value for name, value in own.items() if definition.arguments[name].of_step}
    step = WorkflowStep(
        number=number,
        text=arguments.step,
        findings=arguments.findings,
        files_checked=tuple(arguments.files_checked),
        relevant_files=tuple(arguments.relevant_files),
        issues=tuple(WorkflowIssue(**issue.model_dump()) for issue in arguments.issues_found),
        own=of_step,
    )
    going_on = {name: given[name] for name in _GOING_ON if name in given}
    going_on |= {name: value for name, value in own.items() if name not in of_step}
    return StepReport(step, total=arguments.total_steps, more=arguments.next_step_required, said=going_on)


def _field(argument: Argument) -> tuple[Any, Any]:
    kinds: dict[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool}
    kind = Literal[tuple(argument.choices)] if argument.choices else kinds.get(argument.type, str)
    if argument.type == "strings":
        kind = list[kind]  # type: ignore[valid-type] # made at run time
    default: Any = argument.default
    if default is None and argument.type == "strings":
        default = []
    return (kind | None if default is None else kind), Field(default=default, description=argument.description)
