"""Tools with arguments that the operator has bound: gone from what callers see, there when the tool runs. Pure."""

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
    """A binding, and its value as it was read."""

    binding: Binding
    value: Json = field(repr=False)


def read_values(bindings: Iterable[Binding]) -> tuple[BoundValue, ...]:
    """The values as they are now.

    Raises:
        BindingError: one cannot be had.
    """
    return tuple(BoundValue(binding, binding.read()) for binding in bindings)


def mask_of(values: Iterable[BoundValue]) -> ValueMask:
    """What hides all of them."""
    known = list(values)
    return ValueMask(
        [one.value for one in known if one.binding.secret], [one.value for one in known if not one.binding.secret]
    )


def with_bound(registry: ToolRegistry, values: Iterable[BoundValue]) -> tuple[ToolRegistry, list[str]]:
    """The registry with these arguments bound, and a sentence for each tool that is left out since a value does not
    fit it.
    """
    tools, misfits, known = [], [], list(values)
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
            misfits.append(f"the tool {tool.name!r} is left out: {error}")
    bound = ToolRegistry(tools)
    return ToolRegistry(tools, [*registry.problems, *misfits, *_unused(bound, known)]), misfits


def _unused(registry: ToolRegistry, values: Iterable[BoundValue]) -> list[str]:
    """A sentence for each binding that no tool has anything of: it may be misspelt, or its source away."""
    return [
        f"{one.binding.place}: no tool that is meant has this argument; `toold tools NAME` shows a tool's"
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
        BindingError: a value does not fit its schema.
    """
    properties = tool.info.input_schema.get("properties", {})
    bound = {name: _of_type(one.value, properties[name]) for name, one in values.items()}
    for name in _misfits(tool, bound):
        raise BindingError(f"{values[name].binding.place}: the value does not fit what {tool.name} takes there")
    arguments = tool.arguments
    if isinstance(arguments, JsonSchema):
        arguments = JsonSchema(without_arguments(arguments.schema, bound))
    return replace(tool, arguments=arguments, bound=bound, mask=mask_of(values.values()))


def _of_type(value: Json, schema: Mapping[str, Any]) -> Json:
    """A variable's or a file's text as the type that the schema has; where it has none, or text, as it is."""
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


def _misfits(tool: Tool, bound: Mapping[str, Json]) -> list[str]:
    """The arguments whose values do not fit."""
    if isinstance(tool.arguments, JsonSchema):
        return [name for name, value in bound.items() if not _fits(tool.arguments.schema, name, value)]
    return _misfits_of_model(tool.arguments, bound)


def _fits(schema: Mapping[str, Any], name: str, value: Json) -> bool:
    part = {**schema, "properties": {name: schema["properties"][name]}}
    for key in ("required", "allOf", "anyOf", "oneOf", "if", "then", "else", "dependentRequired", "dependentSchemas"):
        part.pop(key, None)
    try:
        JsonSchema(part).check("", {name: value})
    except InvalidArgumentsError:
        return False
    return True


def _misfits_of_model(model: type[BaseModel], bound: Mapping[str, Json]) -> list[str]:
    try:
        model.model_validate_json(json.dumps(bound))
    except ValidationError as error:
        wrong = {str(one["loc"][0]) for one in error.errors(include_input=False) if one["loc"]}
        return [name for name in bound if name in wrong]
    return []
