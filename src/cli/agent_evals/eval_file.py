"""A file of cases for an agent. Pure except for ``read_eval_file``."""

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from ...protocol.name_suggestions import close_names, did_you_mean
from ...tools import JsonSchema, YamlError, condition_text, read_yaml, setting_message
from .value_lines import Place, line_of, toml_lines, yaml_lines

MAX_FILE_BYTES: Final = 4 * 1024**2
MAX_CASES: Final = 1000
MAX_RUNS: Final = 100
"""Runs of one case. With 100 runs, the interval of the pass rate is at most 19 percentage points wide."""
MAX_TOTAL_RUNS: Final = 10_000
"""Runs of all cases together. Each run makes at least one request to a model."""
MAX_PARALLEL: Final = 16
"""Concurrent runs. Each makes several calls, so this is lower than a session's limit on running calls."""
_MAX_DEPTH: Final = 50
_MAX_ALIASED: Final = 10_000
_SUFFIXES: Final = (".yaml", ".yml", ".toml", ".json")

_CONFIG: Final = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, allow_inf_nan=False)
_KINDS: Final = ("called", "not_called", "order", "contains", "equals", "matches", "schema", "answer", "judge")


class EvalFileError(ValueError):
    """The file cannot be used; the message has a line per problem, with file, line and field."""


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        message = f"is not a regular expression: {error}"
        raise PydanticCustomError("pattern", "{message}", {"message": message}) from None
    return text


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    try:
        JsonSchema(schema)
    except ValueError as error:
        raise PydanticCustomError("schema", "{message}", {"message": str(error)}) from None
    return schema


Text = Annotated[str, StringConstraints(min_length=1, max_length=200_000)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Condition = Annotated[Text, AfterValidator(condition_text)]
Rate = Annotated[float, Field(ge=0, le=1)]


class Expectation(BaseModel):
    """An expectation of a run: exactly one of the kinds, with its options."""

    model_config = _CONFIG

    called: Name | None = None
    """A tool that a model called."""
    not_called: Name | None = None
    """A tool that no model called."""
    order: Annotated[tuple[Name, ...], Field(min_length=2, max_length=100)] | None = None
    """Tools that were called in this order; other calls may come between them."""
    contains: Text | None = None
    """A text in the answer."""
    equals: Any = None
    """The whole answer: its text or, if the agent has an answer schema, its data."""
    matches: Annotated[Text, AfterValidator(_pattern)] | None = None
    """A regular expression that is found in the answer."""
    schema_: Annotated[dict[str, Any], AfterValidator(_schema)] | None = Field(default=None, alias="schema")
    """A JSON Schema of the answer."""
    answer: Condition | None = None
    """A condition on ``answer``."""
    judge: Text | None = None
    """A rubric, by which a model gives the answer a score."""

    where: Condition | None = None
    """With ``called`` and ``not_called``: a condition on the arguments; only calls that meet it count."""
    role: Name | None = None
    """With ``called`` and ``not_called``: only calls of this role count."""
    outcome: Name | None = None
    """With ``called`` and ``not_called``: only calls with this outcome count, ``ok`` or an error code."""
    times: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """With ``called``: how often; at least once if it is not set."""
    min_score: Rate | None = None
    """With ``judge``: the lowest score that passes; 0.7 if it is not set."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        chosen = [kind for kind in _KINDS if _field(kind) in self.model_fields_set]
        if len(chosen) != 1:
            kinds = ", ".join(_KINDS)
            found = f"has {' and '.join(chosen)}" if chosen else "has none"
            raise PydanticCustomError("kind", "{message}", {"message": f"must have exactly one of {kinds}; it {found}"})
        allowed = _OPTIONS.get(chosen[0], ())
        for option in ("where", "role", "outcome", "times", "min_score"):
            if option in self.model_fields_set and option not in allowed:
                message = f"{option} does not belong to {chosen[0]}"
                raise PydanticCustomError("option", "{message}", {"message": message})
        return self

    @property
    def kind(self) -> str:
        """The kind that is set."""
        return next(kind for kind in _KINDS if _field(kind) in self.model_fields_set)


_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "called": ("where", "role", "outcome", "times"),
    "not_called": ("where", "role", "outcome"),
    "judge": ("min_score",),
}


def _field(kind: str) -> str:
    return "schema_" if kind == "schema" else kind


class Judge(BaseModel):
    """The model that judges answers."""

    model_config = _CONFIG

    model: Name
    max_tokens: int = Field(default=1000, ge=16, le=32_000)
    """Tokens of one judgement, thinking included."""


class EvalCase(BaseModel):
    """One message to the agent, and the expectations of the run."""

    model_config = _CONFIG

    name: Name
    prompt: Text
    agent: Name | None = None
    """The agent; None: the file's."""
    variables: dict[str, str | int | float | bool] = {}
    runs: Annotated[int, Field(ge=1, le=MAX_RUNS)] | None = None
    min_pass: Rate | None = None
    """The lowest pass rate; None: that of the file or the command."""
    expect: Annotated[tuple[Expectation, ...], Field(min_length=1, max_length=100)]


class EvalFile(BaseModel):
    """Cases, and their common settings."""

    model_config = _CONFIG

    agent: Name | None = None
    runs: int = Field(default=1, ge=1, le=MAX_RUNS)
    """How often each case runs."""
    min_pass: Rate = 1.0
    parallel: int = Field(default=4, ge=1, le=MAX_PARALLEL)
    """Concurrent runs."""
    timeout_s: float | None = Field(default=None, gt=0, le=1800)
    """The timeout of one run; None: the agent's."""
    judge: Judge | None = None
    cases: Annotated[tuple[EvalCase, ...], Field(min_length=1, max_length=MAX_CASES)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        names: set[str] = set()
        for index, case in enumerate(self.cases):
            if case.name in names:
                raise _at(("cases", index, "name"), f"{case.name!r} is the name of another case, too")
            names.add(case.name)
            if case.agent is None and self.agent is None:
                raise _at(("cases", index), "needs agent, here or at the top of the file")
            if self.judge is None and any(each.kind == "judge" for each in case.expect):
                raise _at(("cases", index), "has a judge; name its model at the top of the file: judge: {model: …}")
        return self


def _at(place: Place, message: str) -> PydanticCustomError:
    return PydanticCustomError("case", "{message}", {"message": message, "place": place})


def read_eval_file(path: Path) -> EvalFile:
    """Returns the cases of a YAML, TOML or JSON file.

    Raises:
        EvalFileError: it cannot be read or is invalid.
    """
    if path.suffix not in _SUFFIXES:
        raise EvalFileError(f"{path}: must be a {', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]} file")
    try:
        content = path.read_bytes()
        text = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise EvalFileError(f"{path}: cannot be read ({error})") from None
    if len(content) > MAX_FILE_BYTES:
        raise EvalFileError(f"{path}: is larger than {MAX_FILE_BYTES // 1024**2} MiB")
    table, lines = _parsed(path, text)
    if not isinstance(table, dict):
        raise EvalFileError(f"{path}: must be a table with cases")
    try:
        return EvalFile.model_validate(table)
    except ValidationError as error:
        raise EvalFileError("\n".join(_problems(path, error, lines(text)))) from None


def _parsed(path: Path, text: str) -> tuple[Any, Callable[[str], dict[Place, int]]]:
    try:
        if path.suffix == ".toml":
            return tomllib.loads(text), toml_lines
        if path.suffix == ".json":
            json.loads(text)  # read as YAML below; this parser has better messages for JSON
        return read_yaml(text.encode(), max_depth=_MAX_DEPTH, max_aliased=_MAX_ALIASED), yaml_lines
    except (tomllib.TOMLDecodeError, YamlError, ValueError, RecursionError) as error:
        raise EvalFileError(f"{path}: {error}") from None


def _problems(path: Path, error: ValidationError, lines: Mapping[Place, int]) -> list[str]:
    problems = []
    found = error.errors()
    for problem in found:
        # Pydantic omits invalid items, so it may also report the list as too short.
        depth = len(problem["loc"])
        inner = [each for each in found if len(each["loc"]) > depth and each["loc"][:depth] == problem["loc"]]
        if problem["type"] == "too_short" and inner:
            continue
        place: Place = tuple(problem.get("ctx", {}).get("place", problem["loc"]))
        line = line_of(place, lines)
        field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")
        where = f"{path}:{line}" if line is not None else str(path)
        problems.append(f"{where}: {field or 'file'}: {_message(problem, place)}")
    return list(dict.fromkeys(problems))


def _message(problem: Any, place: Place) -> str:
    if problem["type"] == "missing":
        return "is missing"
    if problem["type"] != "extra_forbidden":
        return setting_message(problem)
    models: Mapping[int, type[BaseModel]] = {1: EvalFile, 2: Judge, 3: EvalCase, 5: Expectation}
    fields = models.get(len(place), EvalFile).model_fields
    hint = did_you_mean(close_names(str(place[-1]), [name.rstrip("_") for name in fields], n=1))
    return f"is not a field; {hint}" if hint else "is not a field"
