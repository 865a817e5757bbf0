"""What a tool is: a name, an argument model, annotations and one async function. ``@tool`` makes one."""

import asyncio
import inspect
import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, get_type_hints

import msgspec
from pydantic import BaseModel, ConfigDict
from pydantic.json_schema import GenerateJsonSchema

from ..protocol.tool_call import MAX_TIMEOUT_S, Annotations, ContentBlock, Json, ToolInfo
from .json_schema import JsonSchema, takes_long
from .schema_filter import without_arguments
from .tool_context import ToolContext
from .validation_errors import MAX_SURPLUS_FIELDS
from .value_mask import ValueMask

TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What both vendors accept as a function's name, so that every tool can be offered to every model."""

OWN_SOURCE: Final = "toold"
"""``Tool.source`` of what ships with the daemon."""


class Arguments(BaseModel):
    """Base of argument models: surplus fields are refused by name, and JSON types are taken at their word.

    A string ``"5"`` is no integer and 1 is no boolean; an integer does for a float. A field that should take more
    says ``Field(strict=False)``. A field whose values must not be repeated in errors is a ``SecretStr``, or says
    ``Field(json_schema_extra={"writeOnly": True})``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool may return to say its words and its data apart: ``Answer("3 models", [...])``.

    Without words, the text is the data as JSON; so ``Answer(data="x")`` is how a string is returned as data.
    """

    text: str | None = None
    data: Json = msgspec.UNSET
    """Any JSON, null included; left out, there is no data."""
    blocks: tuple[ContentBlock, ...] = ()
    """Pictures, sounds and resources behind the text, which should say what they are: not all clients show them."""


ToolFunction = Callable[[Any, ToolContext], Awaitable[Any]]
"""``async (arguments, context) → str | JSON value | Answer``: a string is text alone, any other value is data."""


class _UntitledSchema(GenerateJsonSchema):
    """JSON Schema without the titles that pydantic makes of field names: every client would pay for reading them."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        return False


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool, ready to be registered."""

    name: str
    description: str
    arguments: type[BaseModel] | JsonSchema
    """A model, or where somebody else says what it takes, their JSON Schema: the function then gets a plain dict."""
    function: ToolFunction
    annotations: Annotations
    timeout_s: float | None = None
    """The deadline of a call that names none, in seconds; None takes the daemon's."""
    unmetered: bool = False
    """Takes no permit: for tools that must answer when everything is busy, and cost nothing."""
    composing: bool = False
    """Makes calls of its own (``ToolContext.call``). It takes no permit, which its calls may have to wait for; it has
    bounds of its own (docs/limits.md)."""
    source: str = OWN_SOURCE
    """Which package brought it."""
    output_schema: dict[str, Any] | None = None
    """The JSON Schema of the data that it returns, where that is known."""
    bound: Mapping[str, Json] = field(default_factory=dict, repr=False)
    """Arguments that the operator has set: no caller sees them or may send them."""
    mask: ValueMask | None = field(default=None, repr=False)
    """Hides their values in what it answers."""
    withheld: str | None = None
    """Why it is neither listed nor run, in a sentence for who calls it all the same."""
    info: ToolInfo = field(init=False)
    most_fields: int = field(init=False, repr=False)
    """With more arguments than this, most are surplus, and are not all looked at."""

    def __post_init__(self) -> None:
        schema = without_arguments(_input_schema(self.arguments), self.bound)
        output = msgspec.UNSET if self.output_schema is None else self.output_schema
        object.__setattr__(self, "info", ToolInfo(self.name, self.description, schema, self.annotations, output))
        closed = schema.get("additionalProperties") is False
        most = len(schema.get("properties", ())) + MAX_SURPLUS_FIELDS if closed else sys.maxsize
        object.__setattr__(self, "most_fields", most)

    async def run(self, arguments: Any, context: ToolContext) -> Any:
        """Run it with the arguments that ``bind`` returned.

        Raises:
            InvalidArgumentsError: they are many, and do not fit; nothing was executed.
        """
        if isinstance(self.arguments, JsonSchema) and takes_long(arguments):
            await asyncio.to_thread(self.arguments.check, self.name, arguments)
        if self.bound and isinstance(self.arguments, JsonSchema):
            arguments = {**arguments, **self.bound}
        return await self.function(arguments, context)

    @property
    def local(self) -> bool:
        """Read-only and closed-world: it reaches nobody and changes nothing, so a crash may forget it."""
        return self.annotations.read_only_hint and not self.annotations.open_world_hint

    @property
    def repeatable(self) -> bool:
        """Whether the same call may run twice without a second effect."""
        return self.annotations.read_only_hint or self.annotations.idempotent_hint


def _input_schema(arguments: type[BaseModel] | JsonSchema) -> dict[str, Any]:
    if isinstance(arguments, JsonSchema):
        return arguments.schema
    schema = arguments.model_json_schema(schema_generator=_UntitledSchema)
    schema.pop("title", None)
    schema.pop("description", None)
    return schema


A = TypeVar("A", bound=BaseModel)
R = TypeVar("R")


def tool(
    name: str,
    *,
    read_only: bool,
    open_world: bool,
    idempotent: bool = False,
    destructive: bool = False,
    timeout_s: float | None = None,
    unmetered: bool = False,
    composing: bool = False,
) -> Callable[[Callable[[A, ToolContext], Awaitable[R]]], Tool]:
    """Make a ``Tool`` of an async function ``(arguments: Model, context: ToolContext)``; its docstring describes it.

    The four annotations are MCP's hints; ``read_only`` and ``open_world`` must be said, since replay, retry and
    durability follow from them. ``timeout_s`` is the deadline of a call that names none; None is the daemon's own.
    A tool that calls others is ``composing``.

    Raises:
        TypeError: the function is not async, has no docstring, or its first parameter is not a pydantic model.
        ValueError: the name is not 1–64 of ``A-Za-z0-9_-``, or ``timeout_s`` not within (0, 1800].
    """
    if not TOOL_NAME.fullmatch(name):
        raise ValueError(f"a tool's name is 1–64 of A-Z, a-z, 0-9, _ and -, not {name!r}")
    if timeout_s is not None and not 0 < timeout_s <= MAX_TIMEOUT_S:
        raise ValueError(
            f"tool {name!r}: timeout_s is above 0 and at most {MAX_TIMEOUT_S:g} seconds, not {timeout_s!r}"
        )
    annotations = Annotations(
        read_only_hint=read_only,
        destructive_hint=destructive,
        idempotent_hint=idempotent,
        open_world_hint=open_world,
    )

    def register(function: Callable[[A, ToolContext], Awaitable[R]]) -> Tool:
        if not inspect.iscoroutinefunction(function):
            raise TypeError(f"tool {name!r}: {function!r} must be an async function")
        description = inspect.getdoc(function)
        if not description:
            raise TypeError(f"tool {name!r} needs a docstring: it is what callers and models read to choose it")
        arguments = _argument_model(name, function)
        return Tool(name, description, arguments, function, annotations, timeout_s, unmetered, composing)

    return register


def _argument_model(name: str, function: Callable[..., Any]) -> type[BaseModel]:
    parameters = list(inspect.signature(function).parameters)
    if len(parameters) != 2:
        raise TypeError(f"tool {name!r} takes two parameters, (arguments: Model, context: ToolContext)")
    try:
        model = get_type_hints(function).get(parameters[0])
    except NameError as error:
        raise TypeError(f"tool {name!r}: {error}; import the types of its signature outside TYPE_CHECKING") from error
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise TypeError(
            f"tool {name!r}: annotate {parameters[0]!r} with a pydantic model, such as toold.tools.Arguments"
        )
    return model
