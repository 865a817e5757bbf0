"""The definition of a workflow tool, read from its TOML file (docs/writing-a-workflow-tool.md). Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ....protocol.tool_call import MAX_TIMEOUT_S

Confidence = Literal["exploring", "low", "medium", "high", "very_high", "almost_certain", "certain"]
"""The caller's confidence in its findings, lowest first."""
Severity = Literal["critical", "high", "medium", "low", "info"]

DEADLINE_S: Final = 330.0
"""The default deadline: a thinking model may take 300 s per attempt (models.toml), and waiting for the provider counts
too."""

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
        "images",
        "relevant_context",
        "backtrack_from_step",
        "thinking",
        "temperature",
        "web_search",
    }
)
"""The arguments of every workflow tool."""

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
        "model_choice_reason",
        "omitted",
        "notice",
        "reasoning",
        "thinking",
        "completions",
        "counted_tokens",
        "search_results",
        "question",
    }
)
"""The fields of ``structured`` that every workflow tool's answer may have."""

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")


class Part(BaseModel):
    """A table of the file. Rejects unknown keys, and does not convert TOML's types."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class UserQuestion(Part):
    """A question that the caller passes on to its user."""

    value: str
    """The value with which the argument leaves the choice to the user."""
    text: str = Field(min_length=1)


class Argument(Part):
    """An argument of this tool, in addition to the common ones."""

    type: Literal["string", "strings", "files", "integer", "number", "boolean"]
    """The type. ``files`` are paths of text files; the expert gets them after the relevant files."""
    description: str = Field(min_length=1)
    choices: list[str] = []
    """The allowed values."""
    default: str | int | float | bool | list[str] | None = None
    required_on: int | None = Field(default=None, ge=1)
    """The step that is rejected if neither it nor an earlier step has the argument."""
    per_step: bool = False
    """Whether the value applies to its step only. Otherwise it applies to later steps too, until it is replaced."""
    ask_user: UserQuestion | None = None
    """The question to ask while the argument has the question's value: after the first step, and after every later step
    except the last.
    """
    former_names: list[str] = []
    """Names that earlier servers gave to this argument."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        _check_choices(self.type, self.choices)
        if self.ask_user is not None and self.ask_user.value not in self.choices:
            raise ValueError("ask_user.value: must be one of the choices")
        if self.default is not None:
            if self.required_on is not None:
                raise ValueError("default: not allowed with required_on")
            _check_default(self.type, self.choices, self.default)
        return self


class FormerMeaning(Part):
    """An argument of earlier servers whose values are now values of another argument."""

    now: str
    """The current argument."""
    values: dict[str, str | int | float | bool] = {}
    """Maps former values to values of the current argument, which replace the caller's."""
    default: list[str] = []
    """Former values that are now the default."""


class ResultField(Part):
    """A field of the expert's answer, in addition to ``summary`` and ``findings``, or a field of one of its objects."""

    type: Literal["string", "strings", "integer", "number", "boolean", "objects"]
    description: str = Field(min_length=1)
    choices: list[str] = []
    optional: bool = False
    """Whether an answer may omit it."""
    fields: dict[str, "ResultField"] = {}
    """The fields of each object, if the type is ``objects``."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        _check_choices(self.type, self.choices)
        if (self.type == "objects") != bool(self.fields):
            raise ValueError("fields: required if type is objects, and not allowed otherwise")
        _check_names(self.fields, ())
        return self


class Guidance(Part):
    """A suggestion of what to examine next, given if all its conditions hold."""

    text: str = Field(min_length=1)
    step: int | None = Field(default=None, ge=1)
    """Condition: the current step is this one."""
    from_step: int | None = Field(default=None, ge=1)
    """Condition: the current step is this one or a later one."""
    confidence: list[Confidence] = []
    """Condition: the caller's confidence is one of these."""
    where: dict[str, str | int | bool] = {}
    """Condition: these arguments of the tool have these values."""


class Expected(Part):
    """An argument that a caller should have given by some step. Its absence is reported as missing, not rejected."""

    field: str
    from_step: int = Field(default=1, ge=1)
    text: str = Field(min_length=1)
    """A description of the missing value."""


class Expert(Part):
    """The one model call of the last step."""

    prompt: str = Field(min_length=1)
    """The system instructions, before those that all workflow tools share."""
    by_default: bool = True
    """The default of ``use_assistant_model``."""
    skip_when_certain: bool = True
    """Whether to skip the call if the confidence is ``certain`` and ``use_assistant_model`` is absent."""


class WorkflowDefinition(Part):
    """A workflow tool. Its name is the file's name without the suffix."""

    name: str
    description: str = Field(min_length=1)
    """The tool's description."""
    step: str = Field(min_length=1)
    """The description of the argument ``step``."""
    deadline_s: float = Field(default=DEADLINE_S, gt=0, le=MAX_TIMEOUT_S)
    arguments: dict[str, Argument] = {}
    ignored_arguments: dict[str, str] = {}
    """Maps arguments of earlier servers that are ignored here to the reason."""
    former_arguments: dict[str, FormerMeaning] = {}
    former_defaults: dict[str, str] = {}
    """Maps arguments whose default differs from that of earlier servers to the difference."""
    guidance: list[Guidance] = Field(min_length=1)
    expected: list[Expected] = []
    expert: Expert
    result: dict[str, ResultField] = {}

    @property
    def file_arguments(self) -> list[str]:
        """The names of the arguments whose files the expert reads after the relevant files."""
        return [name for name, argument in self.arguments.items() if argument.type == "files"]

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        _check_names(self.arguments, STEP_ARGUMENTS)
        _check_names(self.result, ANSWER_FIELDS)
        for place, guidance in enumerate(self.guidance):
            for name, value in guidance.where.items():
                if name not in self.arguments:
                    raise ValueError(f"guidance.{place}.where: {name!r} is not an argument defined in this file")
                choices = self.arguments[name].choices
                if choices and value not in choices:
                    raise ValueError(f"guidance.{place}.where.{name}: must be {' or '.join(choices)}, not {value!r}")
        fields = {*STEP_ARGUMENTS, *self.arguments}
        former = [name for argument in self.arguments.values() for name in argument.former_names]
        _check_names((*former, *self.ignored_arguments, *self.former_arguments), fields)
        named = {f"former_arguments.{name}.now": meaning.now for name, meaning in self.former_arguments.items()}
        named |= {f"former_defaults.{name}": name for name in self.former_defaults}
        named |= {f"expected.{place}.field": expected.field for place, expected in enumerate(self.expected)}
        for key, name in named.items():
            if name not in fields:
                raise ValueError(f"{key}: there is no argument {name!r}")
        return self


def _check_choices(kind: str, choices: list[str]) -> None:
    if choices and kind not in ("string", "strings"):
        raise ValueError(f"choices: only allowed for string and strings, not for {kind}")


def _check_default(kind: str, choices: list[str], default: Any) -> None:
    kinds: Mapping[str, Any] = {
        "string": str, "strings": list, "files": list, "integer": int, "number": (int, float), "boolean": bool
    }  # fmt: skip
    if not isinstance(default, kinds[kind]) or (isinstance(default, bool) and kind != "boolean"):
        raise ValueError(f"default: must have the argument's type, {kind}")
    values = default if isinstance(default, list) else [default]
    if choices and not all(value in choices for value in values):
        raise ValueError(f"default: must be one of the choices, {', '.join(choices)}")


def _check_names(names: Iterable[str], taken: Iterable[str]) -> None:
    for name in names:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r}: a name is 1-40 characters of a-z, 0-9 and _, beginning with a letter")
        if name in taken:
            raise ValueError(f"{name!r}: already used by every workflow tool")
