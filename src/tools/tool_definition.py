"""The definition of a tool: a name, an argument model, annotations and one async function."""

import asyncio
import copy
import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from ..protocol.tool_call import Annotations, Json, ToolInfo
from ..protocol.user_credential import CredentialField
from .json_schema import JsonSchema, without_arguments
from .tool_context import ToolContext
from .validation_errors import MAX_UNKNOWN_ARGUMENTS
from .value_mask import ValueMask

TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""The names that both vendors accept for functions, so that every tool can be offered to every model."""

_OWN_MODULES: Final = f"{__name__.partition('.')[0]}."

OWN_SOURCE: Final = "toold"
"""``Tool.source`` of tools that ship with the daemon."""


ToolFunction = Callable[[Any, Any], Awaitable[Any]]
"""``async (arguments, context) → str | JSON value | ToolOutput``: a string is text alone, any other value is data.

``@tool`` checks the context's type: an ``OrchestrationContext`` for orchestration tools, else a ``LookupContext``."""


class _CompactSchema(GenerateJsonSchema):
    """JSON Schema without texts that pydantic adds and that would cost every client tokens: titles made from names,
    toold's own docstrings, and the null or empty default of optional arguments.
    """

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        return False

    def model_schema(self, schema: Any) -> dict[str, Any]:
        document = super().model_schema(schema)
        document.pop("title", None)
        if schema["cls"].__module__.startswith(_OWN_MODULES):  # its docstring is for programmers
            document.pop("description", None)
        for argument in document.get("properties", {}).values():
            _shorten_optional(argument)
        return document


def _shorten_optional(argument: dict[str, Any]) -> None:
    """Removes a default of null, together with the type null, and an empty list or text as a default."""
    if argument.get("default", ...) not in (None, [], ""):
        return
    nullable = argument.pop("default") is None
    if nullable and "anyOf" in argument:
        options = [option for option in argument["anyOf"] if option != {"type": "null"}]
        if len(options) > 1:
            argument["anyOf"] = options
        else:
            del argument["anyOf"]
            for option in options:
                argument.update({name: value for name, value in option.items() if name not in argument})


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that can be registered."""

    name: str
    description: str
    arguments: type[BaseModel] | JsonSchema
    """A pydantic model, or a source's JSON Schema: the function then gets a plain dict."""
    function: ToolFunction
    annotations: Annotations
    timeout_s: float | None = None
    """The default timeout of its calls in seconds; None means the daemon's default."""
    unmetered: bool = False
    """Its calls take no permit. For cheap tools that must answer even if all permits are in use."""
    orchestration: bool = False
    """The tool calls other tools, so its function takes an ``OrchestrationContext``. Its calls take no permit, since
    their child calls may have to wait for it; separate limits apply (docs/limits.md)."""
    agent: bool = False
    """An orchestration tool whose steps a model chooses. Agents that call each other have a separate limit. Neither
    they nor the hidden orchestration tools of an agent count as nested orchestration calls."""
    source: str = OWN_SOURCE
    """The package or source of the tool."""
    output_schema: dict[str, Any] | None = None
    """The JSON Schema of its data, if known."""
    bound: Mapping[str, Json] = field(default_factory=dict, repr=False)
    """Bound arguments: callers neither see nor send them."""
    mask: ValueMask | None = field(default=None, repr=False)
    """Hides the values of bound arguments in results."""
    credentials: tuple[CredentialField, ...] = ()
    """The caller's credentials that it needs (``ToolContext.user_credential``)."""
    cache_s: float = 0.0
    """The seconds for which a result may answer the same call of the same principal again; 0: never."""
    prompt: bool = False
    """Whether it is also offered as a prompt: a text that asks a model to call it."""
    former_names: tuple[str, ...] = ()
    """Names that earlier servers gave to this tool: accepted with a notice, and never listed."""
    withheld: str | None = None
    """The reason for withholding it, as a sentence for callers; None if it is listed and can run."""
    mcp: Mapping[str, Json] | None = None
    """Further fields of its listing at an MCP server (``ToolInfo.mcp``)."""
    info: ToolInfo = field(init=False)
    typed: bool | msgspec.UnsetType = field(init=False, repr=False)
    """``ToolResult.typed`` of its results."""
    conversational: bool = field(init=False, repr=False)
    """Whether it keeps a conversation; its answers then have a ``continuation_id`` in their data."""
    local: bool = field(init=False, repr=False)
    """Whether it is read-only and closed-world. Its calls then have no outside effect and are not journalled."""
    max_fields: int = field(init=False, repr=False)
    """If a call has more arguments than this, most are unknown, and not all of them are checked."""

    def __post_init__(self) -> None:
        schema = without_arguments(_input_schema(self.arguments), self.bound)
        output = msgspec.UNSET if self.output_schema is None else self.output_schema
        mcp = msgspec.UNSET if self.mcp is None else dict(self.mcp)
        info = ToolInfo(self.name, self.description, schema, self.annotations, output, mcp)
        object.__setattr__(self, "info", info)
        object.__setattr__(self, "typed", msgspec.UNSET if self.output_schema is None else True)
        closed = schema.get("additionalProperties") is False
        max_fields = len(schema.get("properties", ())) + MAX_UNKNOWN_ARGUMENTS if closed else sys.maxsize
        object.__setattr__(self, "max_fields", max_fields)
        local = self.annotations.read_only_hint and not self.annotations.open_world_hint
        object.__setattr__(self, "local", local)
        own = not isinstance(self.arguments, JsonSchema)
        object.__setattr__(self, "conversational", own and "continuation_id" in schema.get("properties", {}))

    def with_function(self, function: ToolFunction) -> "Tool":
        """The same tool with another function. Its schema is not computed again."""
        tool = copy.copy(self)
        object.__setattr__(tool, "function", function)
        return tool

    def cached_for(self, seconds: float) -> "Tool":
        """The same tool with another ``cache_s``."""
        tool = copy.copy(self)
        object.__setattr__(tool, "cache_s", seconds)
        return tool

    def run(self, arguments: Any, context: ToolContext) -> Awaitable[Any]:
        """Run the tool with the arguments that ``bind`` returned.

        Raises:
            InvalidArgumentsError: large arguments do not match the schema; nothing was executed.
        """
        if isinstance(self.arguments, JsonSchema):
            return self._run_with_schema(self.arguments, arguments, context)
        return self.function(arguments, context)

    async def _run_with_schema(self, schema: JsonSchema, arguments: dict[str, Any], context: ToolContext) -> Any:
        if schema.takes_long(arguments):
            await asyncio.to_thread(schema.check, self.name, arguments)
        return await self.function({**arguments, **self.bound} if self.bound else arguments, context)

    def has_former_name(self, arguments: Mapping[str, Json]) -> bool:
        """Whether one of a call's arguments has a former name, which is accepted but not listed."""
        listed = self.info.input_schema.get("properties", {})
        return any(name not in listed for name in arguments)

    @property
    def repeatable(self) -> bool:
        """Whether the same call can run twice without a second effect."""
        return self.annotations.read_only_hint or self.annotations.idempotent_hint


def _input_schema(arguments: type[BaseModel] | JsonSchema) -> dict[str, Any]:
    if isinstance(arguments, JsonSchema):
        return arguments.schema
    schema = arguments.model_json_schema(schema_generator=_CompactSchema)
    schema.pop("title", None)
    schema.pop("description", None)
    return schema
