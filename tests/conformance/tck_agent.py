"""The agent that the A2A suite tests.

The suite for 1.0 names a scenario in the id of its message; ``tck_plugin`` repeats it as the last part of the message's
text.
"""

import asyncio
import re
from typing import Any, Final

from toold.protocol.error_codes import InvalidArgumentsError
from toold.protocol.tool_call import EmbeddedResource, ResourceLink
from toold.tools import AgentContext, ToolOutput

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
    for prefix, block in _FILES.items():
        if scenario.startswith(prefix):
            return ToolOutput("", blocks=(block,))
    if scenario.startswith("test-resubscribe-message-id"):
        await context.step("wait", _wait, changes_nothing=True)
    if scenario.startswith("tck-stream-artifact-chunked"):
        context.stream("chunk-1 ")
        return "chunk-1 chunk-2"
    for prefix, text in _TEXTS.items():
        if scenario.startswith(prefix):
            return text
    return "Hello from TCK"


async def ask_on(context: AgentContext) -> str:
    """Ask after each message for one more: the suite for 0.3 wants tasks that take messages and can be cancelled."""
    while True:
        await context.ask("What else?")


_FILE: Final = EmbeddedResource({"uri": "file:///output.txt", "mimeType": "text/plain", "text": "The output."})
_FILES: Final[dict[str, EmbeddedResource | ResourceLink]] = {
    "tck-artifact-file-url": ResourceLink("https://example.com/output.txt", "output.txt", mime_type="text/plain"),
    "tck-artifact-file": _FILE,
    "tck-stream-artifact-file": _FILE,
}
_TEXTS: Final = {
    "tck-message-response": "Direct message response",
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
