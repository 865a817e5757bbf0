"""The agent that the A2A suite tests.

The suite names a scenario in the id of its message; ``tck_plugin`` repeats it as the last part of the message's text.
"""

import asyncio
import re
from typing import Any, Final

from toold.protocol.error_codes import InvalidArgumentsError
from toold.tools import AgentContext

SCENARIO: Final = re.compile(r"\[scenario (?P<name>[\w-]+)\]\s*\Z")
_LONG_S: Final = 4.0


async def answer(context: AgentContext) -> Any:
    """Do what the suite's scenario files expect for the scenario of the message."""
    scenario = _scenario(context.prompt)
    while scenario.startswith("tck-input-required"):
        scenario = _scenario(await context.ask("What else?") or "")
    if scenario.startswith("tck-reject-task"):
        raise InvalidArgumentsError("rejected")
    if scenario.startswith("tck-artifact-data"):
        return {"key": "value", "count": 42}
    if scenario.startswith("test-resubscribe-message-id"):
        await context.step("wait", _wait, changes_nothing=True)
    if scenario.startswith("tck-stream-artifact-chunked"):
        context.stream("chunk-1 ")
        return "chunk-1 chunk-2"
    for prefix, text in _TEXTS.items():
        if scenario.startswith(prefix):
            return text
    return "Hello from TCK"


_TEXTS: Final = {
    "tck-artifact-text": "Generated text content",
    "tck-stream-001": "Stream hello from TCK",
    "tck-stream-003": "Stream task lifecycle",
    "tck-stream-ordering-001": "Ordered output",
    "tck-stream-artifact-text": "Streamed text content",
}


def _scenario(prompt: str) -> str:
    match = SCENARIO.search(prompt)
    return match["name"] if match else ""


async def _wait() -> None:
    await asyncio.sleep(_LONG_S)
