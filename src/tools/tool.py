"""What a tool is: a name, an argument model, annotations and one async function. ``@tool`` makes one."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from ..protocol.calls import DEFAULT_TIMEOUT_S, Annotations, Json, ToolInfo
from .context import ToolContext


class Arguments(BaseModel):
    """Base of argument models: surplus fields are refused by name."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool may return to say its words and its data apart: ``Answer(text="3 models", data=[…])``."""

    text: str
    data: Json = None


ToolFunction = Callable[[Any, ToolContext], Awaitable[Any]]
"""``async (arguments, context) → str | JSON value | Answer``: a string is text alone, any other value is data."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool, ready to be registered."""

    name: str
    description: str
    arguments: type[BaseModel]
    function: ToolFunction
    annotations: Annotations
    timeout_s: float = DEFAULT_TIMEOUT_S
    """The deadline of a call that names none."""
    unmetered: bool = False
    """Takes no permit: for tools that must answer when everything is busy, and cost nothing."""
    source: str = "toold"
    """Which package brought it."""
    info: ToolInfo = field(init=False)

    def __post_init__(self) -> None:
        schema = self.arguments.model_json_schema()
        schema.pop("title", None)
        schema.pop("description", None)
        object.__setattr__(self, "info", ToolInfo(self.name, self.description, schema, self.annotations))

    @property
    def local(self) -> bool:
        """Read-only and closed-world: it reaches nobody and changes nothing, so a crash may forget it."""
        return self.annotations.read_only_hint and not self.annotations.open_world_hint

    @property
    def repeatable(self) -> bool:
        """Whether the same call may run twice without a second effect."""
        return self.annotations.read_only_hint or self.annotations.idempotent_hint


A = TypeVar("A", bound=BaseModel)
R = TypeVar("R")


def tool(
    name: str,
    *,
    read_only: bool,
    open_world: bool,
    idempotent: bool = False,
    destructive: bool = False,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    unmetered: bool = False,
) -> Callable[[Callable[[A, ToolContext], Awaitable[R]]], Tool]:
    """Make a ``Tool`` of an async function ``(arguments: Model, context: ToolContext)``; its docstring describes it.

    The four annotations are MCP's hints; ``read_only`` and ``open_world`` must be said, since replay, retry and
    durability follow from them. ``timeout_s`` is in seconds.

    Raises:
        TypeError: the function is not async, has no docstring, or its first parameter is not a pydantic model.
    """
    raise TypeError  # the tools' room fills this in
