"""Tools of the tests: small functions behind ``make_tool``."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import BaseModel, ConfigDict
from toold.protocol.tool_call import Annotations
from toold.providers import CompletionRequest, Delta, Message
from toold.tools import Tool, ToolContext


class AnyArguments(BaseModel):
    """Accepts any arguments."""

    model_config = ConfigDict(extra="allow")

    def get(self, name: str, default: Any = None) -> Any:
        return (self.model_extra or {}).get(name, default)


Function = Callable[[AnyArguments, ToolContext], Awaitable[Any]]


def make_tool(name: str, function: Function, *, read_only: bool = True, open_world: bool = False, **more: Any) -> Tool:
    """A tool with this function."""
    annotations = Annotations(read_only, False, False, open_world)
    return Tool(name, f"The tool {name} of a test.", AnyArguments, function, annotations, **more)


async def _ask(arguments: AnyArguments, context: ToolContext) -> str:
    model = context.daemon.catalog.default(arguments.get("vendor", "kimi"))
    request = CompletionRequest(model=model, messages=(Message("user", arguments.get("prompt", "")),))

    def pass_on(delta: Delta) -> None:
        context.stream(delta.text)

    return (await context.complete(request, on_delta=pass_on)).text


ask = make_tool("ask", _ask, open_world=True)
"""A tool that asks the vendor named by its argument."""


async def say(arguments: Any, context: Any) -> Any:
    return arguments.get("text", "said")


async def hang(arguments: Any, context: Any) -> Any:
    await asyncio.Event().wait()


def raising(error: BaseException) -> Any:
    """A function that raises an error."""

    async def function(arguments: Any, context: Any) -> Any:
        raise error

    return function
