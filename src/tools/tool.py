"""The ``@tool`` decorator, the base class of argument models, and ``ToolOutput``."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar, get_type_hints, overload

import msgspec
from pydantic import BaseModel, ConfigDict

from ..protocol.tool_call import MAX_TIMEOUT_S, Annotations, ContentBlock, Json
from .former_arguments import FormerArgument
from .orchestration_context import LookupContext, OrchestrationContext
from .tool_definition import TOOL_NAME, Tool


class Arguments(BaseModel):
    """Base class of argument models: rejects unknown fields by name, and does not convert JSON types.

    The string ``"5"`` is not accepted as an integer, nor 1 as a boolean; an integer is accepted as a float. A field
    that should convert has ``Field(strict=False)``. A field whose values must not appear in errors is a ``SecretStr``,
    or has ``Field(json_schema_extra={"writeOnly": True})``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    ignored_arguments: ClassVar[Mapping[str, str]] = {}
    """Arguments of earlier servers without a meaning here, with the reasons. They are accepted with a notice
    (``former_arguments``)."""
    former_arguments: ClassVar[Mapping[str, FormerArgument]] = {}
    """Arguments of earlier servers whose values are now values of another argument. They are accepted with a notice."""

    former_defaults: ClassVar[Mapping[str, str]] = {}
    """Arguments whose default differs from that of earlier servers, with the difference. A session that sent a former
    name or form gets it as a notice when it omits such an argument."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """A tool's return value with separate text and data: ``ToolOutput("3 models", [...])``.

    Without text, the text is the data as JSON; so ``ToolOutput(data="x")`` returns a string as data.
    """

    text: str | None = None
    data: Json = msgspec.UNSET
    """Any JSON, including null; unset means no data."""
    blocks: tuple[ContentBlock, ...] = ()
    """Images, audio and resources that follow the text. The text should describe them: not all clients show them."""
    content: tuple[ContentBlock, ...] | None = None
    """All blocks of an MCP server's result, in its order and as JSON, in place of ``text`` and ``blocks``."""
    meta: dict[str, Json] | None = None
    """The ``_meta`` of an MCP server's result."""


A = TypeVar("A", bound=BaseModel)
R = TypeVar("R")


@overload
def tool(
    name: str,
    *,
    read_only: bool,
    open_world: bool,
    idempotent: bool = False,
    destructive: bool = False,
    timeout_s: float | None = None,
    unmetered: bool = False,
    former_names: tuple[str, ...] = (),
    orchestration: Literal[False] = False,
) -> Callable[[Callable[[A, LookupContext], Awaitable[R]]], Tool]: ...


@overload
def tool(
    name: str,
    *,
    read_only: bool,
    open_world: bool,
    idempotent: bool = False,
    destructive: bool = False,
    timeout_s: float | None = None,
    unmetered: bool = False,
    former_names: tuple[str, ...] = (),
    orchestration: Literal[True],
) -> Callable[[Callable[[A, OrchestrationContext], Awaitable[R]]], Tool]: ...


def tool(
    name: str,
    *,
    read_only: bool,
    open_world: bool,
    idempotent: bool = False,
    destructive: bool = False,
    timeout_s: float | None = None,
    unmetered: bool = False,
    former_names: tuple[str, ...] = (),
    orchestration: bool = False,
) -> Callable[[Callable[[A, Any], Awaitable[R]]], Tool]:
    """Make a ``Tool`` from an async function ``(arguments: Model, context: ToolContext)``; its docstring becomes the
    tool's description.

    The four annotations are MCP's hints. ``read_only`` and ``open_world`` are required, since replay, retry and
    durability depend on them. ``timeout_s`` is the default timeout; None means the daemon's. ``former_names`` are the
    names that earlier servers gave to the tool. The function of an ``orchestration`` tool takes an
    ``OrchestrationContext``, through which it calls other tools.

    Raises:
        TypeError: the function is not async, has no docstring, or its first parameter is not a pydantic model.
        ValueError: the name is not 1–64 of ``A-Za-z0-9_-``, or ``timeout_s`` is not within (0, 1800].
    """
    if not TOOL_NAME.fullmatch(name):
        raise ValueError(f"a tool name is 1–64 of A-Z, a-z, 0-9, _ and -, not {name!r}")
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

    def decorate(function: Callable[[A, Any], Awaitable[R]]) -> Tool:
        if not inspect.iscoroutinefunction(function):
            raise TypeError(f"tool {name!r}: {function!r} must be an async function")
        description = inspect.getdoc(function)
        if not description:
            raise TypeError(f"tool {name!r} needs a docstring: callers and models read it to choose a tool")
        arguments = _argument_model(name, function)
        return Tool(
            name,
            description,
            arguments,
            function,
            annotations,
            timeout_s,
            unmetered,
            orchestration,
            former_names=former_names,
        )

    return decorate


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
