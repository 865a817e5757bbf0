"""Saved pipelines: TOML or YAML files with steps and parameters, each of which becomes a tool."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from pydantic import Field, ValidationError

from ...protocol.error_codes import InvalidArgumentsError
from ...protocol.tool_call import Annotations
from ..json_schema import JsonSchema
from ..orchestration_context import OrchestrationContext
from ..tool_definition import TOOL_NAME, Tool
from ..yaml_reader import read_yaml
from .execute_pipeline import plan_for, run_pipeline
from .pipeline_arguments import DRY_RUN, ON_UNKNOWN, RESUME, TIMEOUT_S, PipelineSteps, Seconds
from .pipeline_validation import check_pipeline
from .run_limits import CALL_MARGIN_S

SUFFIXES: Final = (".toml", ".yaml", ".yml")
MAX_DEPTH: Final = 100
"""The maximum nesting of a YAML file, the same as of arguments (``json_schema.MAX_DEPTH``)."""
MAX_ALIASED: Final = 10_000
"""The maximum number of values that all aliases of a YAML file may expand to. Validation takes some 20 µs per value."""
_RUN_ARGUMENTS: Final[Mapping[str, Any]] = {
    "resume": {"type": "string", "description": RESUME},
    "on_unknown": {"enum": ["keep", "retry"], "default": "keep", "description": ON_UNKNOWN},
    "dry_run": {"type": "boolean", "default": False, "description": DRY_RUN},
}
"""The arguments of every saved pipeline in addition to its parameters."""
_ANNOTATIONS: Final = Annotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True
)
"""The steps may call any tool, and the available tools change."""


class SavedPipeline(PipelineSteps):
    """The content of a file."""

    description: str = Field(min_length=1)
    parameters: dict[str, Any] = Field(default={}, description="A JSON Schema of an object.")
    timeout_s: Seconds = Field(default=TIMEOUT_S, description="The timeout of all steps together.")


class SavedPipelineError(ValueError):
    """A file is not a valid pipeline; the message says where and how to fix it."""


def pipelines_in(directory: Path) -> tuple[list[Tool], list[str]]:
    """The tools that the files of a directory define, and a sentence for each file that cannot be used."""
    tools: list[Tool] = []
    problems: list[str] = []
    try:
        found = sorted(path for path in directory.iterdir() if path.suffix in SUFFIXES)
    except OSError as error:
        return [], [f"the pipelines of {directory} were skipped: the directory cannot be read ({error.strerror})"]
    for path in found:
        try:
            tools.append(saved_pipeline(path))
        except SavedPipelineError as error:
            problems.append(f"the pipeline {path} was skipped: {error}")
    return tools, problems


def named_by(path: Path) -> tuple[str, ...]:
    """The tools that the steps of a file use, without duplicates.

    Raises:
        SavedPipelineError: the file is not a valid pipeline.
    """
    return tuple(dict.fromkeys(step.tool_name for step in _checked(_table(path)).steps))


def saved_pipeline(path: Path) -> Tool:
    """The tool that a file defines.

    Raises:
        SavedPipelineError: the file is not a valid pipeline.
    """
    if not TOOL_NAME.fullmatch(path.stem):
        raise SavedPipelineError("the file name without its extension is the tool name: 1–64 of A-Z, a-z, 0-9, _ and -")
    saved = _checked(_table(path))
    schema = _schema(saved.parameters)
    closed = schema["additionalProperties"] is False
    try:
        check_pipeline(saved, frozenset(saved.parameters.get("properties", {})) if closed else None)
        arguments = JsonSchema(schema)
    except InvalidArgumentsError as error:
        raise SavedPipelineError(error.message.removesuffix(".")) from None
    except ValueError as error:
        raise SavedPipelineError(f"parameters: {error}") from None
    defaults = {
        name: parameter["default"]
        for name, parameter in saved.parameters.get("properties", {}).items()
        if isinstance(parameter, dict) and "default" in parameter
    }

    async def run(given: dict[str, Any], context: OrchestrationContext) -> dict[str, Any]:
        values = defaults | {name: value for name, value in given.items() if name not in _RUN_ARGUMENTS}
        plan = await plan_for(saved, context, {"input": values})
        if given.get("dry_run"):
            return plan.shown()
        return await run_pipeline(
            plan,
            context,
            input=values,
            timeout_s=saved.timeout_s,
            resume=given.get("resume"),
            retry_unknown=given.get("on_unknown") == "retry",
        )

    return Tool(
        path.stem,
        saved.description,
        arguments,
        run,
        _ANNOTATIONS,
        timeout_s=saved.timeout_s + CALL_MARGIN_S,
        orchestration=True,
        source=str(path),
        prompt=True,
    )


def _table(path: Path) -> dict[str, Any]:
    """The file's content as JSON types."""
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".toml":
            table = _toml(text)
        else:
            table = read_yaml(text.encode(), max_depth=MAX_DEPTH, max_aliased=MAX_ALIASED)
    except OSError as error:
        raise SavedPipelineError(f"it cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise SavedPipelineError("it must be UTF-8 text") from None
    except (ValueError, RecursionError) as error:
        kind = "TOML" if path.suffix == ".toml" else "YAML"
        message = re.sub(r"\s+", " ", str(error))
        raise SavedPipelineError(f"it is not valid {kind}: {message}") from None
    if not isinstance(table, dict):
        raise SavedPipelineError("it should have description, parameters and steps")
    return table


def _toml(text: str) -> Any:
    """The content as JSON types, with dates as text."""
    return msgspec.json.decode(msgspec.json.encode(tomllib.loads(text)))


def _checked(table: dict[str, Any]) -> SavedPipeline:
    try:
        JsonSchema(SavedPipeline.model_json_schema()).check("not a pipeline", table)
        return SavedPipeline.model_validate(table)
    except InvalidArgumentsError as error:
        raise SavedPipelineError(error.message.removesuffix(".")) from None
    except ValidationError as error:  # checks that JSON Schema cannot express
        first = error.errors(include_url=False)[0]
        raise SavedPipelineError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _schema(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The tool's JSON Schema: the parameters, closed unless the file says otherwise, and ``_RUN_ARGUMENTS``."""
    properties = parameters.get("properties", {})
    if not isinstance(properties, dict):
        raise SavedPipelineError("parameters.properties: should be a table of parameters")
    for name in _RUN_ARGUMENTS.keys() & properties.keys():
        raise SavedPipelineError(f"parameters.properties.{name}: {name} is an argument of every saved pipeline")
    return {
        "type": "object",
        "additionalProperties": False,
        **parameters,
        "properties": {**properties, **_RUN_ARGUMENTS},
    }
