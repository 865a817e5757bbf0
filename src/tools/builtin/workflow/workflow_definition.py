"""What one workflow tool is made of, as its TOML file says it (docs/writing-a-workflow-tool.md). Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ....protocol.tool_call import MAX_TIMEOUT_S

Confidence = Literal["exploring", "low", "medium", "high", "very_high", "almost_certain", "certain"]
"""How sure a caller is of what it found, least first."""
Severity = Literal["critical", "high", "medium", "low", "info"]

DEADLINE_S: Final = 330.0
"""Of a call that names none: a long-thinking model may take 300 s for one attempt (models.toml), and waiting for the
provider counts too."""

STEP_ARGUMENTS: Final = frozenset(
    {
        "step",
        "prompt",
        "step_number",
        "total_steps",
        "next_step_required",
        "findings",
        "files_checked",
        "relevant_files",
        "issues_found",
        "confidence",
        "hypothesis",
        "continuation_id",
        "model",
        "use_assistant_model",
    }
)
"""What every workflow tool takes."""

ANSWER_FIELDS: Final = frozenset(
    {
        "status",
        "step_number",
        "total_steps",
        "next_step_required",
        "continuation_id",
        "next",
        "missing",
        "so_far",
        "expert_called",
        "summary",
        "findings",
        "steps",
        "issues_found",
        "unstructured",
        "model",
        "provider",
        "finish_reason",
        "chosen_because",
        "left_out",
        "notice",
        "reasoning",
    }
)
"""What ``structured`` of a workflow tool's answer says itself."""

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")


class Part(BaseModel):
    """A table of the file: keys that it does not know are refused, and TOML's types are taken at their word."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Argument(Part):
    """What callers of this tool may say beside the arguments of all."""

    type: Literal["string", "strings", "integer", "number", "boolean"]
    description: str = Field(min_length=1)
    choices: list[str] = []
    """The only values that there are."""
    default: str | int | float | bool | list[str] | None = None
    required_on: int | None = Field(default=None, ge=1)
    """The step that is refused without it, unless an earlier one had it."""
    of_step: bool = False
    """Whether it tells of its step alone. Otherwise it holds for the steps after it too, until it is said anew."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        _check_choices(self.type, self.choices)
        if self.default is not None:
            if self.required_on is not None:
                raise ValueError("default: an argument that is required_on a step has none")
            _check_default(self.type, self.choices, self.default)
        return self


class ResultField(Part):
    """What the expert's answer has beside ``summary`` and ``findings``, or what one of its objects has."""

    type: Literal["string", "strings", "integer", "number", "boolean", "objects"]
    description: str = Field(min_length=1)
    choices: list[str] = []
    optional: bool = False
    """Whether an answer without it will do."""
    fields: dict[str, "ResultField"] = {}
    """Of each of the ``objects``."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        _check_choices(self.type, self.choices)
        if (self.type == "objects") != bool(self.fields):
            raise ValueError("fields: there must be some where type is objects, and none elsewhere")
        _check_names(self.fields, ())
        return self


class Guidance(Part):
    """What a caller should look at next. It is said where all that stands here is so; with nothing here, always."""

    say: str = Field(min_length=1)
    step: int | None = Field(default=None, ge=1)
    """After this step alone."""
    from_step: int | None = Field(default=None, ge=1)
    """After this step and all later ones."""
    confidence: list[Confidence] = []
    """The caller's confidence is one of these."""
    where: dict[str, str | int | bool] = {}
    """These arguments of the tool's own have these values."""


class Expected(Part):
    """What a caller should have said by some step. It is told as missing, and nothing is refused for it."""

    field: str
    from_step: int = Field(default=1, ge=1)
    say: str = Field(min_length=1)
    """What to give."""


class Expert(Part):
    """The one call to a model that the last step makes."""

    prompt: str = Field(min_length=1)
    """Its instructions, above those that all workflow tools share."""
    by_default: bool = True
    """Whether it is made where the caller says nothing of ``use_assistant_model``."""
    skip_when_certain: bool = False
    """Whether it is left out where the caller's confidence is ``certain``, and ``use_assistant_model`` is not said."""


class WorkflowDefinition(Part):
    """A workflow tool. Its name is its file's, without the ending."""

    name: str
    description: str = Field(min_length=1)
    """What callers, and their models, read to choose it."""
    step: str = Field(min_length=1)
    """The description of the argument ``step``."""
    deadline_s: float = Field(default=DEADLINE_S, gt=0, le=MAX_TIMEOUT_S)
    arguments: dict[str, Argument] = {}
    guidance: list[Guidance] = Field(min_length=1)
    expected: list[Expected] = []
    expert: Expert
    result: dict[str, ResultField] = {}

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        _check_names(self.arguments, STEP_ARGUMENTS)
        _check_names(self.result, ANSWER_FIELDS)
        for place, guidance in enumerate(self.guidance):
            for name, value in guidance.where.items():
                if name not in self.arguments:
                    raise ValueError(f"guidance.{place}.where: {name!r} is none of this file's arguments")
                choices = self.arguments[name].choices
                if choices and value not in choices:
                    raise ValueError(f"guidance.{place}.where.{name}: must be {', '.join(choices)}, not {value!r}")
        fields = {*STEP_ARGUMENTS, *self.arguments}
        for place, expected in enumerate(self.expected):
            if expected.field not in fields:
                raise ValueError(f"expected.{place}.field: there is no argument {expected.field!r}")
        return self


def _check_choices(kind: str, choices: list[str]) -> None:
    if choices and kind not in ("string", "strings"):
        raise ValueError(f"choices: are for string and strings, not for {kind}")


def _check_default(kind: str, choices: list[str], default: Any) -> None:
    kinds: Mapping[str, Any] = {"string": str, "strings": list, "integer": int, "number": (int, float), "boolean": bool}
    if not isinstance(default, kinds[kind]) or (isinstance(default, bool) and kind != "boolean"):
        raise ValueError(f"default: must be of the argument's type, {kind}")
    values = default if isinstance(default, list) else [default]
    if choices and not all(value in choices for value in values):
        raise ValueError(f"default: must be one of the choices, {', '.join(choices)}")


def _check_names(names: Iterable[str], taken: Iterable[str]) -> None:
    for name in names:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r}: a name is a lower-case letter and at most 39 more, digits and _ among them")
        if name in taken:
            raise ValueError(f"{name!r}: every workflow tool has that already")
