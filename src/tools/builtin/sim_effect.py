"""``sim_effect``: a countable side effect for crash tests. Available only with the simulator."""

import asyncio
import os
from pathlib import Path
from typing import Final

from pydantic import Field

from ..tool import Arguments, tool
from ..tool_context import ToolContext
from ..tool_definition import Tool

EFFECT_LOG: Final = "sim_effect.log"
"""The name of the log in the state directory. It has one line per execution."""


class EffectArguments(Arguments):
    """The line, and the delay after it is written."""

    text: str = Field(max_length=1000, pattern=r"^[^\r\n]*$", description="Line to append, without line breaks.")
    delay_ms: float = Field(default=0, ge=0, le=600_000, description="Delay after the write, in milliseconds.")


def simulated_tools(log: Path) -> list[Tool]:
    """Returns the tools that exist only with the simulator; they write to ``log``."""

    @tool("sim_effect", read_only=False, open_world=False)
    async def sim_effect(arguments: EffectArguments, context: ToolContext) -> str:  # noqa: ARG001 - every tool's signature
        """SIMULATED write: append `text` as a line to `sim_effect.log` in the state directory, then wait `delay_ms`."""
        # One write to a file opened with O_APPEND: lines of concurrent calls do not interleave, and the line survives a
        # kill of the process.
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, f"{arguments.text}\n".encode(errors="replace"))
        finally:
            os.close(descriptor)
        if arguments.delay_ms:
            await asyncio.sleep(arguments.delay_ms / 1000)
        return f"written: {arguments.text}"

    return [sim_effect]
