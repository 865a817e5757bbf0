"""Binds arguments of tools: callers do not see them, and the tool gets them when it runs. Pure."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from pydantic import BaseModel, ValidationError

from ..protocol.error_codes import InvalidArgumentsError
from ..protocol.tool_call import Json
from .binding_settings import Binding, BindingError
from .json_schema import JsonSchema, without_arguments
from .tool_definition import Tool
from .tool_registry import ToolRegistry
from .value_mask import ValueMask


@dataclass(frozen=True, slots=True)
class BoundValue:
    """A binding and its value."""

    binding: Binding
    value: Json = field(repr=False)


def read_values(bindings: Iterable[Binding]) -> tuple[BoundValue, ...]:
    """The current values.

    Raises:
        BindingError: one cannot be read.
    """
    return tuple(BoundValue(binding, binding.read()) for binding in bindings)


def mask_of(values: Iterable[BoundValue]) -> ValueMask:
    """The mask that hides all of these values."""
    known = list(values)
    return ValueMask(
        [one.value for one in known if one.binding.secret], [one.value for one in known if not one.binding.secret]
    )


def with_bound(registry: ToolRegistry, values: Iterable[BoundValue]) -> tuple[ToolRegistry, list[str]]:
    """The registry with these arguments bound, and a sentence for each tool omitted because a value is invalid."""
    tools, binding_errors, known = [], [], list(values)
    for tool in registry.tools:
        meant = {
            one.binding.argument: one
            for one in known
            if fnmatchcase(tool.name, one.binding.tools)
            and one.binding.source in {None, tool.source}
            and one.binding.argument in tool.info.input_schema.get("properties", {})
        }
        try:
            tools.append(bound_tool(tool, meant) if meant else tool)
        except BindingError as error:
            binding_errors.append(f"the tool {tool.name!r} is omitted: {error}")
    bound = ToolRegistry(tools)
    return ToolRegistry(tools, [*registry.problems, *binding_errors, *_unused(bound, known)]), binding_errors


def _unused(registry: ToolRegistry, values: Iterable[BoundValue]) -> list[str]:
    """A sentence for each binding that affects no tool: it may be misspelt, or its source unavailable."""
    return [
        f"{one.binding.place}: no matching tool has this argument; `toold tools NAME` shows the arguments of a tool"
        for one in values
        if not any(
            one.binding.argument in tool.bound
            and fnmatchcase(tool.name, one.binding.tools)
            and one.binding.source in {None, tool.source}
            for tool in registry.tools
        )
    ]


def bound_tool(tool: Tool, values: Mapping[str, BoundValue]) -> Tool:
    """The tool with these arguments bound.

    Raises:
        BindingError: a value does not match its schema.
    """
    properties = tool.info.input_schema.get("properties", {})
    bound = {name: _of_type(one.value, properties[name]) for name, one in values.items()}
    for name in _invalid_arguments(tool, bound):
        raise BindingError(
            f"{values[name].binding.place}: the value does not match the schema of this argument of {tool.name}"
        )
    arguments = tool.arguments
    if isinstance(arguments, JsonSchema):
        arguments = JsonSchema(without_arguments(arguments.schema, bound))
    return replace(tool, arguments=arguments, bound=bound, mask=mask_of(values.values()))


def _of_type(value: Json, schema: Mapping[str, Any]) -> Json:
    """The text of a variable or file as the schema's type; unchanged if the schema allows text or any type."""
    if not isinstance(value, str):
        return value
    options = schema.get("anyOf", [schema])
    types = {kind for option in options for kind in _listed(option.get("type"))}
    if not types or "string" in types:
        return value
    try:
        parsed: Json = json.loads(value)
    except ValueError:
        return value
    return parsed


def _listed(types: Any) -> list[str]:
    return [types] if isinstance(types, str) else list(types or ())


def _invalid_arguments(tool: Tool, bound: Mapping[str, Json]) -> list[str]:
    """The arguments with invalid values."""
    if isinstance(tool.arguments, JsonSchema):
        return [name for name, value in bound.items() if not _fits(tool.arguments.schema, name, value)]
    return _rejected_by_model(tool.arguments, bound)


def _fits(schema: Mapping[str, Any], name: str, value: Json) -> bool:
    part = {**schema, "properties": {name: schema["properties"][name]}}
    for key in ("required", "allOf", "anyOf", "oneOf", "if", "then", "else", "dependentRequired", "dependentSchemas"):
        part.pop(key, None)
    try:
        JsonSchema(part).check("", {name: value})
    except InvalidArgumentsError:
        return False
    return True


def _rejected_by_model(model: type[BaseModel], bound: Mapping[str, Json]) -> list[str]:
    try:
        model.model_validate_json(json.dumps(bound))
    except ValidationError as error:
        wrong = {str(one["loc"][0]) for one in error.errors(include_input=False) if one["loc"]}
        return [name for name in bound if name in wrong]
    return []
