"""The arguments of a workflow tool: the common arguments and those of its definition. Pure."""

from typing import Annotated, Any, Final, Literal

from pydantic import AliasChoices, ConfigDict, Field, create_model

from ....providers import Depth
from ...former_arguments import FormerArgument, FormerNames, FormerValues
from ...tool import Arguments
from ..chat import MAX_IMAGES
from .former_steps import as_confidence, as_issues
from .step_engine import StepReport
from .workflow_definition import Argument, Confidence, Severity, WorkflowDefinition
from .workflow_run import WorkflowIssue, WorkflowStep

MAX_FILES: Final = 64
"""The maximum number of relevant files per step."""
MAX_STEPS: Final = 1_000
"""The maximum number of steps per run; real runs have far fewer."""

_CARRIED_OVER: Final[tuple[str, ...]] = (
    "confidence",
    "hypothesis",
    "model",
    "use_assistant_model",
    "thinking",
    "temperature",
    "web_search",
)
DATA_URL: Final = "data:"
"""The beginning of an image in the call itself. Such images are not stored, because they would fill the conversation's
state.
"""


class IssueFound(Arguments):
    """An issue found by the caller. Other fields are kept."""

    model_config = ConfigDict(extra="allow")

    severity: Severity | None = None
    description: str = Field(min_length=1)
    file: str | None = None
    line: int | None = Field(default=None, ge=1)


class StepArguments(Arguments):
    """The arguments of every workflow tool. ``step`` alone is a complete run: one step and the expert call."""

    step: str = Field(min_length=1, validation_alias=AliasChoices("step", "prompt"))
    step_number: int | None = Field(default=None, ge=1, le=MAX_STEPS, description="From 1. Default: the next step.")
    total_steps: int | None = Field(
        default=None, ge=1, le=MAX_STEPS, description="Estimated number of steps; may change."
    )
    next_step_required: bool | None = Field(
        default=None, description="False on the last step. Default: step_number < total_steps."
    )
    findings: str = Field(default="", description="Findings of this step; earlier findings are kept.")
    files_checked: list[str] = Field(default=[], description="Files you examined.")
    relevant_files: Annotated[list[str], FormerNames("files", "absolute_file_paths")] = Field(
        default=[], max_length=MAX_FILES, description="Text files in the workspace for the expert to read."
    )
    relevant_context: list[str] = Field(default=[], description="Functions and classes that matter.")
    images: list[str] = Field(default=[], max_length=MAX_IMAGES, description="Images for the expert: paths or URLs.")
    issues_found: Annotated[list[IssueFound], FormerValues(as_issues)] = Field(
        default=[], description="Issues found so far."
    )
    confidence: Annotated[Confidence | None, FormerValues(as_confidence)] = Field(
        default=None, description="Your confidence in the findings."
    )
    hypothesis: str | None = Field(default=None, description="Your current hypothesis, with reasons.")
    backtrack_from_step: int | None = Field(default=None, ge=1, description="Discard your steps from this one on.")
    continuation_id: str | None = Field(default=None, description="From the last answer; send it from step 2 on.")
    model: str | None = Field(default=None, description="The expert: id or alias (see listmodels), or auto.")
    use_assistant_model: bool | None = Field(default=None, description="Ask the expert in the last step.")
    thinking: Annotated[Depth | None, FormerNames("thinking_mode")] = Field(
        default=None, description="How deeply the expert thinks."
    )
    temperature: float | None = Field(default=None, ge=0, le=1, description="The expert's temperature.")
    web_search: Annotated[bool | None, FormerNames("use_websearch")] = Field(
        default=None, description="Let the expert search the web."
    )


def arguments_model(definition: WorkflowDefinition) -> type[StepArguments]:
    """Returns the argument model of a workflow tool."""
    by_default = "true" if definition.expert.by_default else "false"
    description = StepArguments.model_fields["use_assistant_model"].description
    fields: dict[str, Any] = {
        "step": (
            str,
            Field(min_length=1, description=definition.step, validation_alias=AliasChoices("step", "prompt")),
        ),
        "use_assistant_model": (bool | None, Field(default=None, description=f"{description} Default: {by_default}.")),
    }
    fields |= {name: _field(argument) for name, argument in definition.arguments.items()}
    model = create_model("WorkflowArguments", __base__=StepArguments, **fields)
    model.ignored_arguments = definition.ignored_arguments
    model.former_defaults = definition.former_defaults
    model.former_arguments = {
        name: FormerArgument(meaning.now, {**dict.fromkeys(meaning.default), **meaning.values})
        for name, meaning in definition.former_arguments.items()
    }
    return model


def report_of(definition: WorkflowDefinition, arguments: StepArguments, number: int) -> StepReport:
    """Converts a call's arguments to the report of step ``number``."""
    set_arguments = {name: getattr(arguments, name) for name in arguments.model_fields_set}
    set_arguments = {name: value for name, value in set_arguments.items() if value is not None}
    tool_arguments = {name: set_arguments[name] for name in definition.arguments if name in set_arguments}
    per_step = {name: value for name, value in tool_arguments.items() if definition.arguments[name].per_step}
    step = WorkflowStep(
        number=number,
        text=arguments.step,
        findings=arguments.findings,
        files_checked=tuple(arguments.files_checked),
        relevant_files=tuple(arguments.relevant_files),
        images=tuple(image for image in arguments.images if not image.startswith(DATA_URL)),
        relevant_context=tuple(arguments.relevant_context),
        issues=tuple(map(_issue, arguments.issues_found)),
        tool_arguments=per_step,
    )
    values = {name: set_arguments[name] for name in _CARRIED_OVER if name in set_arguments}
    values |= {name: value for name, value in tool_arguments.items() if name not in per_step}
    return StepReport(
        step,
        total=arguments.total_steps,
        more=arguments.next_step_required,
        values=values,
        backtrack=arguments.backtrack_from_step,
    )


def _issue(issue: IssueFound) -> WorkflowIssue:
    return WorkflowIssue(issue.severity, issue.description, issue.file, issue.line, issue.model_extra or {})


def _field(argument: Argument) -> tuple[Any, Any]:
    kinds: dict[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool}
    kind = Literal[tuple(argument.choices)] if argument.choices else kinds.get(argument.type, str)
    is_array = argument.type in ("strings", "files")
    if is_array:
        kind = list[kind]  # type: ignore[valid-type] # made at run time
    default: Any = argument.default
    if default is None and is_array:
        default = []
    kind = kind | None if default is None else kind
    max_length = MAX_FILES if argument.type == "files" else None
    field = Field(default=default, max_length=max_length, description=argument.description)
    return (Annotated[kind, FormerNames(*argument.former_names)] if argument.former_names else kind), field
