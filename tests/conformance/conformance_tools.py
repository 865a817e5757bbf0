"""The tools that the suite's scenarios call during a run. The suite determines what they do."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

from pydantic import Field
from toold.protocol.error_codes import ToolExecutionError
from toold.protocol.tool_call import Annotations, AudioContent, EmbeddedResource, ImageContent
from toold.tools import Arguments, JsonSchema, Tool, ToolContext, ToolOutput, tool


class Nothing(Arguments):
    """No arguments."""


class Name(Arguments):
    """The name to greet."""

    name: str


class Filename(Arguments):
    """The file that the suite wants to delete."""

    filename: str = ""


class Seconds(Arguments):
    """The duration."""

    seconds: float = Field(ge=0, le=60)
    label: str = ""


@tool("test_simple_text", read_only=True, open_world=False)
async def simple_text(_arguments: Nothing, _context: ToolContext) -> str:
    """Answer with a text."""
    return "This is a simple text response for testing."


PICTURE = ImageContent(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "image/png"
)
RESOURCE = EmbeddedResource({"uri": "test://a-resource", "mimeType": "text/plain", "text": "A resource's text."})


@tool("test_image_content", read_only=True, open_world=False)
async def image_content(_arguments: Nothing, _context: ToolContext) -> ToolOutput:
    """Answer with a picture."""
    return ToolOutput("one point", blocks=(PICTURE,))


@tool("test_audio_content", read_only=True, open_world=False)
async def audio_content(_arguments: Nothing, _context: ToolContext) -> ToolOutput:
    """Answer with a sound."""
    silence = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA="
    return ToolOutput("silence", blocks=(AudioContent(silence, "audio/wav"),))


@tool("test_embedded_resource", read_only=True, open_world=False)
async def embedded_resource(_arguments: Nothing, _context: ToolContext) -> ToolOutput:
    """Answer with a resource."""
    return ToolOutput("a resource", blocks=(RESOURCE,))


@tool("test_multiple_content_types", read_only=True, open_world=False)
async def multiple_content_types(_arguments: Nothing, _context: ToolContext) -> ToolOutput:
    """Answer with text, a picture and a resource."""
    return ToolOutput("words, a picture and a resource", blocks=(PICTURE, RESOURCE))


@tool("test_error_handling", read_only=True, open_world=False)
async def error_handling(_arguments: Nothing, _context: ToolContext) -> str:
    """Fail."""
    raise ToolExecutionError("This tool intentionally returns an error for testing")


@tool("test_tool_with_progress", read_only=True, open_world=False)
async def tool_with_progress(_arguments: Nothing, context: ToolContext) -> str:
    """Report 0, 50 and 100 of 100."""
    for done in (0, 50, 100):
        context.progress(f"{done} of 100", done, 100)
        await asyncio.sleep(0.05)
    return "done"


@tool("test_logging_tool", read_only=True, open_world=False)
async def logging_tool(_arguments: Nothing, _context: ToolContext) -> str:
    """Answer; the suite checks whether unrequested log messages arrive."""
    return "nothing is logged to clients"


@tool("test_streaming_elicitation", read_only=True, open_world=False)
async def streaming_elicitation(_arguments: Nothing, context: ToolContext) -> str:
    """Answer; the suite checks whether requests arrive on the stream of an answer."""
    context.progress("nothing is asked of clients")
    return "nothing was asked"


@tool("test_trigger_tool_change", read_only=False, open_world=False)
async def trigger_tool_change(_arguments: Nothing, _context: ToolContext) -> str:
    """Change the listing as an operator does: change the configuration and signal a reload."""
    config = Path(os.environ["TOOLD_CONFIG"])
    was, now = ("true", "false") if "true" in config.read_text() else ("false", "true")
    config.write_text(config.read_text().replace(was, now))
    os.kill(os.getpid(), signal.SIGHUP)
    return f"list_init is {now}"


@tool("greet", read_only=True, open_world=False)
async def greet(arguments: Name, _context: ToolContext) -> str:
    """Greet someone at once."""
    return f"Hello, {arguments.name}!"


@tool("slow_compute", read_only=True, open_world=True, timeout_s=90)
async def slow_compute(arguments: Seconds, _context: ToolContext) -> str:
    """Take several seconds."""
    await asyncio.sleep(arguments.seconds)
    return f"{arguments.label} took {arguments.seconds:g} s"


@tool("failing_job", read_only=True, open_world=True)
async def failing_job(_arguments: Nothing, _context: ToolContext) -> str:
    """Fail after a second."""
    await asyncio.sleep(1)
    raise ToolExecutionError("This job always fails")


@tool("confirm_delete", read_only=True, open_world=True)
async def confirm_delete(arguments: Filename, _context: ToolContext) -> str:
    """Take a second without asking anyone, so that there is a task to send answers to."""
    await asyncio.sleep(1)
    return f"{arguments.filename} would be deleted"


async def _accept(arguments: dict[str, Any], _context: ToolContext) -> dict[str, Any]:
    return arguments


SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

json_schema_2020_12_tool = Tool(
    "json_schema_2020_12_tool",
    "Takes what is said with many of JSON Schema's keywords.",
    JsonSchema(SCHEMA),
    _accept,
    Annotations(read_only_hint=True, destructive_hint=False, idempotent_hint=False, open_world_hint=False),
)
