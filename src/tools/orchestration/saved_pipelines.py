"""Saved pipelines: a TOML or YAML file with steps and parameters, which is a tool with a schema of its own."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml
from pydantic import Field, ValidationError

from ...protocol.error_codes import InvalidArgumentsError
from ...protocol.tool_call import Annotations
from ..json_schema import JsonSchema
from ..orchestration_context import OrchestrationContext
from ..tool_definition import TOOL_NAME, Tool
from .execute_pipeline import plan_apart, run_pipeline
from .pipeline_arguments import DRY_RUN, ON_UNKNOWN, RESUME, TIMEOUT_S, PipelineSteps, Seconds
from .pipeline_planner import check_pipeline
from .run_limits import CALL_MARGIN_S

SUFFIXES: Final = (".toml", ".yaml", ".yml")
_OF_RUNS: Final[Mapping[str, Any]] = {
    "resume": {"type": "string", "description": RESUME},
    "on_unknown": {"enum": ["keep", "retry"], "default": "keep", "description": ON_UNKNOWN},
    "dry_run": {"type": "boolean", "default": False, "description": DRY_RUN},
}
"""What each of these tools takes beside its own parameters."""
_ANNOTATIONS: Final = Annotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True
)
"""What it calls may be anything, and its tools come and go."""


class SavedPipeline(PipelineSteps):
    """What a file says."""

    description: str = Field(min_length=1)
    parameters: dict[str, Any] = Field(default={}, description="A JSON Schema of an object.")
    timeout_s: Seconds = Field(default=TIMEOUT_S, description="Of all steps together.")


class SavedPipelineError(ValueError):
    """A file is no pipeline; the message says where it is wrong, and what to write."""


def pipelines_in(directory: Path) -> tuple[list[Tool], list[str]]:
    """The tools that the files of a directory are, and for each file that cannot be used a sentence that says why."""
    tools: list[Tool] = []
    problems: list[str] = []
    try:
        found = sorted(path for path in directory.iterdir() if path.suffix in SUFFIXES)
    except OSError as error:
        return [], [f"the pipelines of {directory} were left out: the directory cannot be read ({error.strerror})"]
    for path in found:
        try:
            tools.append(saved_pipeline(path))
        except SavedPipelineError as error:
            problems.append(f"the pipeline {path} was left out: {error}")
    return tools, problems


def named_by(path: Path) -> tuple[str, ...]:
    """The tools that the steps of a file name, each once.

    Raises:
        SavedPipelineError: it is no pipeline.
    """
    return tuple(dict.fromkeys(step.tool_name for step in _checked(_table(path)).steps))


def saved_pipeline(path: Path) -> Tool:
    """The tool that a file is.

    Raises:
        SavedPipelineError: it is none.
    """
    if not TOOL_NAME.fullmatch(path.stem):
        raise SavedPipelineError("the file's name names the tool: 1–64 of A-Z, a-z, 0-9, _ and - before the ending")
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
        values = defaults | {name: value for name, value in given.items() if name not in _OF_RUNS}
        plan = await plan_apart(saved, context, {"input": values})
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
    )


def _table(path: Path) -> dict[str, Any]:
    """What the file has, in JSON's types."""
    try:
        text = path.read_text(encoding="utf-8")
        table = tomllib.loads(text) if path.suffix == ".toml" else yaml.safe_load(text)
        table = msgspec.json.decode(msgspec.json.encode(table))
    except OSError as error:
        raise SavedPipelineError(f"it cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise SavedPipelineError("it must be UTF-8 text") from None
    except (ValueError, TypeError, RecursionError, yaml.YAMLError) as error:
        kind = "TOML" if path.suffix == ".toml" else "YAML"
        told = re.sub(r"\s+", " ", str(error))
        raise SavedPipelineError(f"it is not valid {kind}: {told}") from None
    if not isinstance(table, dict):
        raise SavedPipelineError("it should have description, parameters and steps")
    return table


def _checked(table: dict[str, Any]) -> SavedPipeline:
    try:
        JsonSchema(SavedPipeline.model_json_schema()).check("it is no pipeline", table)
        return SavedPipeline.model_validate(table)
    except InvalidArgumentsError as error:
        raise SavedPipelineError(error.message.removesuffix(".")) from None
    except ValidationError as error:  # what JSON Schema cannot say
        first = error.errors(include_url=False)[0]
        raise SavedPipelineError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _schema(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of the tool's arguments: the parameters, closed unless the file says otherwise, and what runs take."""
    properties = parameters.get("properties", {})
    if not isinstance(properties, dict):
        raise SavedPipelineError("parameters.properties: should be a table of parameters")
    for name in _OF_RUNS.keys() & properties.keys():
        raise SavedPipelineError(f"parameters.properties.{name}: every saved pipeline has {name} already")
    return {
        "type": "object",
        "additionalProperties": False,
        **parameters,
        "properties": {**properties, **_OF_RUNS},
    }
