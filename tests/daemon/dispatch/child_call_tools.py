"""Orchestration functions of the tests of child calls."""

from typing import Any

import msgspec
from toold.providers import CompletionRequest, OnDelta


async def say(arguments: Any, context: Any) -> Any:
    return {"said": arguments.get("text")}


async def answer(request: CompletionRequest, on_delta: OnDelta | None) -> str:
    return "An answer."


def calling(tool: str, *, name: str = "step", timeout_s: float | None = None, **arguments: Any) -> Any:
    """A function that calls a tool once and returns its data or error."""

    async def function(_arguments: Any, context: Any) -> Any:
        result = await context.call(tool, arguments, name=name, timeout_s=timeout_s)
        return result.structured if result.error is None else {"error": msgspec.to_builtins(result.error)}

    return function
