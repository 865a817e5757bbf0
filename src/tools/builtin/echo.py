"""``echo``: returns its input. For testing a connection, and for timing the call path without a vendor."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field, model_validator

from ..former_arguments import MODEL_OPTIONS, FormerNames
from ..tool import Arguments, ToolOutput, tool
from ..tool_context import ToolContext

_REPORT_FROM_S: Final = 5.0
"""A shorter delay needs no progress report."""


class EchoArguments(Arguments):
    """Either ``text`` or ``value``."""

    ignored_arguments: ClassVar[Mapping[str, str]] = {
        **MODEL_OPTIONS,
        "include_metadata": "every answer has metadata",
    }

    text: Annotated[str, FormerNames("prompt")] = Field(default="", description="Text to return.")
    value: Any = Field(default=None, description="Any JSON, null included, to return unchanged in `structured`.")
    delay_ms: float = Field(default=0, ge=0, le=600_000, description="Delay before the answer, in milliseconds.")

    @model_validator(mode="after")
    def _one_of_two(self) -> "EchoArguments":
        text, value = "text" in self.model_fields_set, "value" in self.model_fields_set
        if text and value:
            raise ValueError("give text or value, not both")
        if not (text or value):
            raise ValueError("give text (a string), or value (any JSON; null counts)")
        return self


@tool("echo", read_only=True, open_world=False, idempotent=True, former_names=("test_echo",))
async def echo(arguments: EchoArguments, context: ToolContext) -> str | ToolOutput:
    """Return `text`, or any JSON as `value`, unchanged, optionally after `delay_ms` milliseconds."""
    if arguments.delay_ms:
        if arguments.delay_ms >= _REPORT_FROM_S * 1000:
            context.progress(f"echo answers in {arguments.delay_ms / 1000:g} s")
        await asyncio.sleep(arguments.delay_ms / 1000)
    return arguments.text if "text" in arguments.model_fields_set else ToolOutput(data=arguments.value)
