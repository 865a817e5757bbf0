"""``echo``: says back what it is told. For trying a connection, and for timing the road without a vendor."""

import asyncio
from typing import Any, Final

from pydantic import Field, model_validator

from ..tool import Answer, Arguments, tool
from ..tool_context import ToolContext

_REPORT_FROM_S: Final = 5.0
"""A shorter delay is over before the caller would wonder."""


class EchoArguments(Arguments):
    """Either ``text`` or ``value``."""

    text: str = Field(default="", description="Comes back as the answer's text.")
    value: Any = Field(default=None, description="Any JSON, null included; comes back in `structured` as it went in.")
    delay_ms: float = Field(default=0, ge=0, le=600_000, description="Milliseconds to wait before answering.")

    @model_validator(mode="after")
    def _one_of_two(self) -> "EchoArguments":
        text, value = "text" in self.model_fields_set, "value" in self.model_fields_set
        if text and value:
            raise ValueError("give text or value, not both")
        if not (text or value):
            raise ValueError("give text (a string), or value (any JSON; null counts)")
        return self


@tool("echo", read_only=True, open_world=False, idempotent=True)
async def echo(arguments: EchoArguments, context: ToolContext) -> str | Answer:
    """Give back `text`, or any JSON as `value`, as it came, after `delay_ms` milliseconds if given."""
    if arguments.delay_ms:
        if arguments.delay_ms >= _REPORT_FROM_S * 1000:
            context.progress(f"echo answers in {arguments.delay_ms / 1000:g} s")
        await asyncio.sleep(arguments.delay_ms / 1000)
    return arguments.text if "text" in arguments.model_fields_set else Answer(data=arguments.value)
