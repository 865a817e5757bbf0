"""Binds arguments of tools: callers do not see them, and the tool gets them when it runs. Pure."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from operator import itemgetter
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ValidationError

from ..protocol.json_text import InvalidJsonError, parse_json
from ..protocol.tool_call import Json
from .binding_settings import Binding, BindingError
from .json_schema import JsonSchema
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
        BindingError: a value cannot be read.
    """
    return tuple(BoundValue(binding, binding.read()) for binding in bindings)


def mask_of(values: Iterable[BoundValue]) -> ValueMask:
    """The mask that hides all of these values."""
    known = list(values)
    return ValueMask(
        [bound.value for bound in known if bound.binding.secret],
        [bound.value for bound in known if not bound.binding.secret],
    )


class ToolBinder:
    """Binds the same values in one registry after another. A tool that was bound before is not bound again.

    Used by one thread at a time.
    """

    def __init__(self, values: Iterable[BoundValue]) -> None:
        self.values: Final = tuple(values)
        # The values by the source to whose tools they apply; None stands for all sources.
        self._by_source: defaultdict[str | None, list[tuple[int, BoundValue]]] = defaultdict(list)
        for order, value in enumerate(self.values):
            self._by_source[value.binding.source].append((order, value))
        # The tools of the latest registry that have bound arguments, by the identity of the tool without them. The
        # value contains this tool, so that its identity is not reused.
        self._tools: dict[int, tuple[Tool, _BoundTool]] = {}

    def bind(self, registry: ToolRegistry) -> tuple[ToolRegistry, list[str]]:
        """The registry with the arguments bound, and a sentence for each tool omitted because a value is invalid."""
        if not self.values:
            return registry, []
        tools, binding_errors, used, known = [], [], set[int](), self._tools
        self._tools = {}
        for tool in registry.tools:
            _, bound = known.get(id(tool)) or (tool, self._bound(tool))
            if bound.values:
                self._tools[id(tool)] = (tool, bound)
            if bound.error is not None:
                binding_errors.append(bound.error)
            else:
                tools.append(bound.tool)
                used.update(bound.values)
        unused = [_unused(value) for order, value in enumerate(self.values) if order not in used]
        problems = [*registry.problems, *binding_errors, *unused]
        return ToolRegistry(tools, problems, registry.source_instructions), binding_errors

    def _bound(self, tool: Tool) -> "_BoundTool":
        properties = tool.info.input_schema.get("properties", {})
        matching = [
            (order, value)
            for order, value in sorted(
                (*self._by_source.get(tool.source, ()), *self._by_source.get(None, ())), key=itemgetter(0)
            )
            if value.binding.argument in properties and fnmatchcase(tool.name, value.binding.tools)
        ]
        orders = [order for order, _ in matching]
        if not matching:
            return _BoundTool(tool, orders)
        try:
            # A later binding of an argument overrides an earlier one.
            bound = bound_tool(tool, {value.binding.argument: value for _, value in matching})
        except BindingError as error:
            return _BoundTool(tool, orders, f"the tool {tool.name!r} is omitted: {error}")
        return _BoundTool(bound, orders)


class _BoundTool(NamedTuple):
    tool: Tool
    values: list[int]
    """The indexes of the values that apply to the tool."""
    error: str | None = None
    """The reason why the tool is omitted."""


def _unused(value: BoundValue) -> str:
    """The problem of a binding that affects no tool: its name may be misspelt, or its source unavailable."""
    return (
        f"{value.binding.place}: no matching tool has this argument; `toold tools NAME` shows the arguments of a tool"
    )


def bound_tool(tool: Tool, values: Mapping[str, BoundValue]) -> Tool:
    """The tool with these arguments bound.

    Raises:
        BindingError: a value does not match its schema.
    """
    properties = tool.info.input_schema.get("properties", {})
    bound = {name: _of_type(bound_value.value, properties[name]) for name, bound_value in values.items()}
    for name in _invalid_arguments(tool, bound):
        raise BindingError(
            f"{values[name].binding.place}: the value does not match the schema of this argument of {tool.name}"
        )
    arguments = tool.arguments
    if isinstance(arguments, JsonSchema):
        arguments = arguments.without(bound)
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
        parsed: Json = parse_json(value)
    except InvalidJsonError:
        return value
    return parsed


def _listed(types: Any) -> list[str]:
    return [types] if isinstance(types, str) else list(types or ())


def _invalid_arguments(tool: Tool, bound: Mapping[str, Json]) -> list[str]:
    """The arguments with invalid values."""
    if isinstance(tool.arguments, JsonSchema):
        return [name for name, value in bound.items() if not tool.arguments.accepts(name, value)]
    return _rejected_by_model(tool.arguments, bound)


def _rejected_by_model(model: type[BaseModel], bound: Mapping[str, Json]) -> list[str]:
    try:
        model.model_validate_json(json.dumps(bound))
    except ValidationError as error:
        wrong = {str(details["loc"][0]) for details in error.errors(include_input=False) if details["loc"]}
        return [name for name in bound if name in wrong]
    return []
