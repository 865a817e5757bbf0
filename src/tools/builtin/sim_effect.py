"""``sim_effect``: a side effect that can be counted, for trying what outlives a crash. Only with the simulator."""

import asyncio
import os
from pathlib import Path
from typing import Final

from pydantic import Field

from ..tool import Arguments, tool
from ..tool_context import ToolContext
from ..tool_definition import Tool

EFFECT_LOG: Final = "sim_effect.log"
"""In the state directory; a line an execution."""


class EffectArguments(Arguments):
    """The line, and how long the call goes on after it was written."""

    text: str = Field(max_length=1000, pattern=r"^[^\r\n]*$", description="The line to append; no line breaks.")
    delay_ms: float = Field(default=0, ge=0, le=600_000, description="Milliseconds to wait after it is written.")


def simulated_tools(log: Path) -> list[Tool]:
    """The tools that are there with the simulator, to write to this file."""

    @tool("sim_effect", read_only=False, open_world=False)
    async def sim_effect(arguments: EffectArguments, context: ToolContext) -> str:  # noqa: ARG001 - every tool's signature
        """SIMULATED write: append `text` as a line to `sim_effect.log` in the state directory, then wait `delay_ms`."""
        # One write of one line to a file opened for appending: lines of concurrent calls do not mix, and what is
        # written outlives a kill of the process.
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, f"{arguments.text}\n".encode(errors="replace"))
        finally:
            os.close(descriptor)
        if arguments.delay_ms:
            await asyncio.sleep(arguments.delay_ms / 1000)
        return f"written: {arguments.text}"

    return [sim_effect]
