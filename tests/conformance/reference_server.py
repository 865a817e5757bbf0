"""The reference server of the suite through the daemon: an MCP server over HTTP, made with the SDK, that offers what
the suite's scenarios call. The suite runs against it directly, and against a daemon whose only source it is.

``python -m tests.conformance.reference_server PORT``; the resources, prompts and log messages are those of
``reference_source``.
"""

import asyncio
import sys
from typing import Annotated, Any

from mcp.server.mcpserver import Context, Elicit, Resolve, Sample
from mcp.shared.exceptions import MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)
from pydantic import BaseModel, Field

from .reference_source import PICTURE, server

SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA="
RESOURCE = EmbeddedResource(
    type="resource", resource=TextResourceContents(uri="test://a-resource", mime_type="text/plain", text="A text.")
)


@server.tool(structured_output=False)
def test_simple_text() -> str:
    """Answer with a text."""
    return "This is a simple text response for testing."


@server.tool(structured_output=False)
def test_image_content() -> ImageContent:
    """Answer with a picture."""
    return ImageContent(type="image", data=PICTURE, mime_type="image/png")


@server.tool(structured_output=False)
def test_audio_content() -> AudioContent:
    """Answer with a sound."""
    return AudioContent(type="audio", data=SILENCE, mime_type="audio/wav")


@server.tool(structured_output=False)
def test_embedded_resource() -> EmbeddedResource:
    """Answer with a resource."""
    return RESOURCE


@server.tool(structured_output=False)
def test_multiple_content_types() -> list[Any]:
    """Answer with text, a picture and a resource."""
    return [TextContent(type="text", text="Three blocks:"), test_image_content(), RESOURCE]


@server.tool()
def test_error_handling() -> str:
    """Fail."""
    raise RuntimeError("This tool intentionally returns an error for testing")


@server.tool()
async def test_tool_with_progress(ctx: Context[Any]) -> str:
    """Report 0, 50 and 100 of 100."""
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100, f"{done} of 100")
        await asyncio.sleep(0.05)
    return "done"


@server.tool()
def test_logging_tool() -> str:
    """Answer; the suite checks whether log messages arrive that it has not asked for."""
    return "nothing was logged"


@server.tool()
async def test_streaming_elicitation(ctx: Context[Any]) -> str:
    """Report progress; the suite checks whether requests arrive on the stream of an answer."""
    await ctx.report_progress(1, 1, "nothing is asked")
    return "nothing was asked"


def _come_and_go() -> str:
    return "here"


server.add_tool(_come_and_go, name="test_coming_and_going", description="A tool that comes and goes.")


@server.tool()
async def test_trigger_tool_change(ctx: Context[Any]) -> str:
    """Remove a tool, or add it again, and announce it."""
    if any(tool.name == "test_coming_and_going" for tool in await server.list_tools()):
        server.remove_tool("test_coming_and_going")
    else:
        server.add_tool(_come_and_go, name="test_coming_and_going", description="A tool that comes and goes.")
    await ctx.notify_tools_changed()
    return "the tools have changed"


class Person(BaseModel):
    """A form."""

    username: str
    email: str


class Defaults(BaseModel):
    """A form whose fields have defaults."""

    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: str = Field("active", json_schema_extra={"enum": ["active", "inactive", "pending"]})
    verified: bool = True


_OPTIONS = ["option1", "option2", "option3"]
_TITLED: list[Any] = [{"const": f"value{number}", "title": f"Option {number}"} for number in (1, 2, 3)]


class Choices(BaseModel):
    """A form whose fields are choices."""

    untitledSingle: str = Field(json_schema_extra={"enum": [*_OPTIONS]})  # noqa: N815 - the suite's names
    titledSingle: str = Field(json_schema_extra={"oneOf": _TITLED})  # noqa: N815
    legacyEnum: str = Field(  # noqa: N815
        json_schema_extra={"enum": [*_OPTIONS], "enumNames": ["One", "Two", "Three"]}
    )
    untitledMulti: list[str] = Field(json_schema_extra={"items": {"type": "string", "enum": [*_OPTIONS]}})  # noqa: N815
    titledMulti: list[str] = Field(json_schema_extra={"items": {"anyOf": _TITLED}})  # noqa: N815


class Named(BaseModel):
    """A form."""

    name: str


class Deletion(BaseModel):
    """A form."""

    confirm: bool


def _ask_person(message: str) -> Elicit[Person]:
    return Elicit(message, Person)


def _ask_defaults() -> Elicit[Defaults]:
    return Elicit("Please fill in", Defaults)


def _ask_choices() -> Elicit[Choices]:
    return Elicit("Please choose", Choices)


def _ask_model(prompt: str) -> Sample:
    return Sample([SamplingMessage(role="user", content=TextContent(type="text", text=prompt))], max_tokens=100)


@server.tool()
async def test_elicitation(message: str, person: Annotated[Person, Resolve(_ask_person)]) -> str:
    """Ask the user."""
    return f"User response: {message} {person}"


@server.tool()
async def test_elicitation_sep1034_defaults(filled: Annotated[Defaults, Resolve(_ask_defaults)]) -> str:
    """Ask for a form with defaults."""
    return f"Elicitation completed: {filled}"


@server.tool()
async def test_elicitation_sep1330_enums(chosen: Annotated[Choices, Resolve(_ask_choices)]) -> str:
    """Ask for a form with choices."""
    return f"Elicitation completed: {chosen}"


@server.tool()
async def test_sampling(prompt: str, answer: Annotated[CreateMessageResult, Resolve(_ask_model)]) -> str:
    """Ask the client's model."""
    text = answer.content.text if isinstance(answer.content, TextContent) else ""
    return f"LLM response to {prompt!r}: {text}"


@server.tool()
async def test_missing_capability(ctx: Context[Any]) -> str:
    """Need a client with a model."""
    declared = ctx.client_capabilities
    if declared is None or declared.sampling is None:
        data: Any = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "This tool needs a client with a model.", data)
    return "The client has a model."


def _form(message: str, model: type[BaseModel]) -> ElicitRequest:
    schema = {key: value for key, value in model.model_json_schema().items() if key not in {"title", "description"}}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def _prompt(text: str) -> CreateMessageRequest:
    messages = [SamplingMessage(role="user", content=TextContent(type="text", text=text))]
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=messages, max_tokens=100))


def _one_round(ctx: Context[Any], requests: dict[str, Any], state: str | None = None) -> str | InputRequiredResult:
    """The answers, or what is asked until all are there."""
    answers: Any = ctx.input_responses or {}
    if answers.keys() >= requests.keys():
        return str({name: answers[name] for name in requests})
    return InputRequiredResult(input_requests=requests, request_state=state)


@server.tool()
async def test_input_required_result_elicitation(ctx: Context[Any]) -> str | InputRequiredResult:
    """Ask for a name."""
    return _one_round(ctx, {"user_name": _form("What is your name?", Named)})


@server.tool()
async def test_input_required_result_sampling(ctx: Context[Any]) -> str | InputRequiredResult:
    """Ask the client's model."""
    return _one_round(ctx, {"capital_question": _prompt("What is the capital of France?")})


@server.tool()
async def test_input_required_result_list_roots(ctx: Context[Any]) -> str | InputRequiredResult:
    """Ask for roots."""
    return _one_round(ctx, {"client_roots": ListRootsRequest()})


class Confirmed(BaseModel):
    """A form."""

    ok: bool


@server.tool()
async def test_input_required_result_request_state(ctx: Context[Any]) -> str | InputRequiredResult:
    """Ask for a confirmation, with a state."""
    answered = _one_round(ctx, {"confirm": _form("Please confirm", Confirmed)}, "the-state")
    return f"state-ok: {answered}" if isinstance(answered, str) and ctx.request_state == "the-state" else answered


@server.tool()
async def test_input_required_result_tampered_state(ctx: Context[Any]) -> str | InputRequiredResult:
    """Ask for a confirmation; the suite changes the state."""
    return _one_round(ctx, {"confirm": _form("Please confirm", Confirmed)}, "the-state")


@server.tool()
async def test_input_required_result_multiple_inputs(ctx: Context[Any]) -> str | InputRequiredResult:
    """Ask three questions at once."""
    asked = {
        "user_name": _form("What is your name?", Named),
        "greeting": _prompt("Greet"),
        "client_roots": ListRootsRequest(),
    }
    return _one_round(ctx, asked, "several")


class Colored(BaseModel):
    """A form."""

    color: str


@server.tool()
async def test_input_required_result_multi_round(ctx: Context[Any]) -> str | InputRequiredResult:
    """Ask one question after the other."""
    answers: Any = ctx.input_responses or {}
    if "step2" in answers:
        return f"{ctx.request_state} {answers['step2']}"
    if "step1" in answers:
        second = _form("Step 2: What is your favorite color?", Colored)
        return InputRequiredResult(input_requests={"step2": second}, request_state=f"step 1: {answers['step1']}")
    return _one_round(ctx, {"step1": _form("Step 1: What is your name?", Named)}, "begun")


@server.tool()
async def test_input_required_result_capabilities(ctx: Context[Any]) -> str | InputRequiredResult:
    """Ask only what the client answers."""
    declared = ctx.client_capabilities
    asked: dict[str, Any] = {}
    if declared is not None and declared.sampling is not None:
        asked["sampled"] = _prompt("Hi")
    if declared is not None and declared.elicitation is not None:
        asked["user_name"] = _form("What is your name?", Named)
    return _one_round(ctx, asked, "asked")


@server.tool()
def greet(name: str) -> str:
    """Greet someone at once."""
    return f"Hello, {name}!"


@server.tool()
async def slow_compute(seconds: float, label: str = "") -> str:
    """Take several seconds."""
    await asyncio.sleep(seconds)
    return f"{label} took {seconds:g} s"


@server.tool()
async def failing_job() -> str:
    """Fail after a second."""
    await asyncio.sleep(1)
    raise RuntimeError("This job always fails")


@server.tool()
async def confirm_delete(ctx: Context[Any], filename: str = "") -> str | InputRequiredResult:
    """Ask for a confirmation after a second."""
    await asyncio.sleep(1)
    if ctx.client_capabilities is None or ctx.client_capabilities.elicitation is None:
        return f"{filename} would be deleted"
    return _one_round(ctx, {"confirm": _form(f"Delete {filename}?", Deletion)})


@server.tool()
async def multi_input(ctx: Context[Any]) -> str | InputRequiredResult:
    """Ask two questions at once after a second."""
    await asyncio.sleep(1)
    return _one_round(ctx, {"who": _form("Who?", Named), "really": _form("Do it?", Deletion)})


@server.tool()
async def test_tool_with_task(ctx: Context[Any]) -> str | InputRequiredResult:
    """Ask for a name at once, and then take so long that the call becomes a task."""
    answered = _one_round(ctx, {"user_name": _form("What is your name?", Named)})
    if isinstance(answered, str):
        await asyncio.sleep(1)
    return answered


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


@server.tool()
def json_schema_2020_12_tool() -> str:
    """Has many of JSON Schema's keywords."""
    return "taken"


# The SDK derives a tool's schema from the function, and has no other way to set it.
server._tool_manager._tools["json_schema_2020_12_tool"].parameters = SCHEMA


@server.tool()
def test_x_mcp_header(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "none",  # noqa: PT028 - no test
) -> str:
    """Has an argument that clients repeat in a header."""
    return region


if __name__ == "__main__":
    server.run("streamable-http", port=int(sys.argv[1]))
