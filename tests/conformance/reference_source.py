"""An MCP server over stdio, made with the SDK: the resources, prompts and log messages that the suite's scenarios want.
The daemon under test has it as a source, and relays it. The suite determines what it answers.
"""

import asyncio
import base64
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.prompts.base import Message, UserMessage
from mcp_types import (
    Completion,
    ElicitRequest,
    ElicitRequestFormParams,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    TextResourceContents,
)

PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # one point
)
server: MCPServer[Any] = MCPServer("reference")


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """A picture."""
    return base64.b64decode(PICTURE)


@server.resource("test://watched-resource", mime_type="text/plain")
def watched_resource() -> str:
    """A text that clients subscribe to."""
    return "Nothing has changed yet."


@server.resource("test://template/{id}/data", mime_type="application/json")
def template_data(id: str) -> dict[str, Any]:  # noqa: A002 - the variable of the template
    """Data with the variable of its URI."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


@server.prompt()
def test_simple_prompt() -> str:
    """A text."""
    return "This is a simple prompt for testing."


@server.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A text with its arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[Message]:  # noqa: N803 - the suite's name
    """A resource and a text."""
    text = "Embedded resource content for testing."
    contents = TextResourceContents(uri=resourceUri, mime_type="text/plain", text=text)
    return [
        UserMessage(EmbeddedResource(type="resource", resource=contents)),
        UserMessage("Please process the embedded resource above."),
    ]


@server.prompt()
def test_prompt_with_image() -> list[Message]:
    """A picture and a text."""
    picture = ImageContent(type="image", data=PICTURE, mime_type="image/png")
    return [UserMessage(picture), UserMessage("Please analyze the image above.")]


@server.prompt()
def test_input_required_result_prompt(ctx: Context[Any]) -> str | InputRequiredResult:
    """A text with what the client's user has filled in."""
    answer: Any = (ctx.input_responses or {}).get("user_context")
    if answer is not None:
        return f"Use this context: {answer.content}"
    form = {"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]}
    message = "What context should the prompt use?"
    asked = ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=form))
    return InputRequiredResult(input_requests={"user_context": asked})


@server.completion()  # type: ignore[no-untyped-call, untyped-decorator]
async def complete(_ref: Any, argument: Any, _context: Any) -> Completion:
    """Completes every argument in one way."""
    return Completion(values=[f"{argument.value}ing"], total=1)


@server.tool()
async def test_tool_with_logging(ctx: Context[Any]) -> str:
    """Sends three log messages."""
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(message)
        await asyncio.sleep(0.05)
    return "logged"


def _another() -> str:
    """A prompt that comes and goes."""
    return "Another prompt."


@server.tool()
async def test_trigger_prompt_change(ctx: Context[Any]) -> str:
    """Adds a prompt, or removes it again, and announces it."""
    names = {prompt.name for prompt in await server.list_prompts()}
    if "test_another_prompt" in names:
        server.remove_prompt("test_another_prompt")
    else:
        server.prompt(name="test_another_prompt")(_another)
    await ctx.notify_prompts_changed()
    return "the prompts have changed"


if __name__ == "__main__":
    server.run("stdio")
