"""The tools that the suite's scenarios call during a run. The suite determines what they do."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field
from toold.protocol.error_codes import ToolExecutionError
from toold.protocol.questions.client_question import ELICIT, LIST_ROOTS, SAMPLE, ClientQuestion, read_question
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


class Prompt(Arguments):
    """What the suite wants to be asked."""

    prompt: str = "Hi"
    message: str = "What is your name?"


class Named(BaseModel):
    """A form."""

    name: str


class Colored(BaseModel):
    """A form."""

    color: str


class Confirmed(BaseModel):
    """A form."""

    ok: bool


class Deletion(BaseModel):
    """A form."""

    confirm: bool


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
async def confirm_delete(arguments: Filename, context: ToolContext) -> str:
    """Ask for a confirmation after a second, when the call is a task."""
    await asyncio.sleep(1)
    if "form" not in context.answered_kinds:
        return f"{arguments.filename} would be deleted"
    answer = await context.elicit(f"Delete {arguments.filename}?", Deletion)
    return f"{arguments.filename}: {answer}"


@tool("multi_input", read_only=True, open_world=True)
async def multi_input(_arguments: Nothing, context: ToolContext) -> str:
    """Ask two questions at once after a second, when the call is a task."""
    await asyncio.sleep(1)
    answers = await asyncio.gather(context.elicit("Who?", Named), context.elicit("Do it?", Deletion))
    return str(answers)


@tool("test_tool_with_task", read_only=True, open_world=True)
async def tool_with_task(_arguments: Nothing, context: ToolContext) -> str:
    """Ask for a name at once, and then take so long that the call becomes a task."""
    answer = await context.elicit("What is your name?", Named, name="user_name")
    await asyncio.sleep(1)
    return "Hello!" if answer is None else f"Hello, {answer.name}!"


@tool("test_missing_capability", read_only=True, open_world=False)
async def missing_capability(_arguments: Nothing, context: ToolContext) -> str:
    """Ask the client's model, also if the client has not declared that it has one."""
    return str(await context.ask_client(_prompt("Hi")))


def _prompt(text: str) -> ClientQuestion:
    messages = [{"role": "user", "content": {"type": "text", "text": text}}]
    return read_question(SAMPLE, {"messages": messages, "maxTokens": 100})


@tool("test_sampling", read_only=True, open_world=False)
async def sampling(arguments: Prompt, context: ToolContext) -> str:
    """Ask the client's model."""
    answer = await context.ask_client(_prompt(arguments.prompt))
    return f"LLM response: {answer['content'].get('text')}"


@tool("test_elicitation", read_only=True, open_world=False)
async def elicitation(arguments: Prompt, context: ToolContext) -> str:
    """Ask the user."""
    form = {"type": "object", "properties": {"username": {"type": "string"}, "email": {"type": "string"}}}
    question = read_question(ELICIT, {"message": arguments.message, "requestedSchema": form})
    return f"User response: {await context.ask_client(question)}"


DEFAULTS: dict[str, Any] = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
_OPTIONS = ["option1", "option2", "option3"]
_TITLED = [{"const": f"value{number}", "title": f"Option {number}"} for number in (1, 2, 3)]
ENUMS: dict[str, Any] = {
    "untitledSingle": {"type": "string", "enum": _OPTIONS},
    "titledSingle": {"type": "string", "oneOf": _TITLED},
    "legacyEnum": {"type": "string", "enum": _OPTIONS, "enumNames": ["One", "Two", "Three"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": _TITLED}},
}


async def _form(fields: dict[str, Any], context: ToolContext) -> str:
    form = {"type": "object", "properties": fields}
    answer = await context.ask_client(read_question(ELICIT, {"message": "Please fill in", "requestedSchema": form}))
    return f"Elicitation completed: action={answer['action']}, content={answer.get('content')}"


@tool("test_elicitation_sep1034_defaults", read_only=True, open_world=False)
async def elicitation_defaults(_arguments: Nothing, context: ToolContext) -> str:
    """Ask for a form with defaults."""
    return await _form(DEFAULTS, context)


@tool("test_elicitation_sep1330_enums", read_only=True, open_world=False)
async def elicitation_enums(_arguments: Nothing, context: ToolContext) -> str:
    """Ask for a form with choices."""
    return await _form(ENUMS, context)


@tool("test_input_required_result_elicitation", read_only=True, open_world=False)
async def round_elicitation(_arguments: Nothing, context: ToolContext) -> str:
    """Ask for a name."""
    answer = await context.elicit("What is your name?", Named, name="user_name")
    return "Hello!" if answer is None else f"Hello, {answer.name}!"


@tool("test_input_required_result_sampling", read_only=True, open_world=False)
async def round_sampling(_arguments: Nothing, context: ToolContext) -> str:
    """Ask the client's model."""
    answer = await context.ask_client(_prompt("What is the capital of France?"), name="capital_question")
    return str(answer["content"].get("text"))


@tool("test_input_required_result_list_roots", read_only=True, open_world=False)
async def round_roots(_arguments: Nothing, context: ToolContext) -> str:
    """Ask for roots."""
    return str(await context.ask_client(read_question(LIST_ROOTS, {}), name="client_roots"))


async def _confirm(_arguments: Nothing, context: ToolContext) -> str:
    answer = await context.elicit("Please confirm", Confirmed, name="confirm")
    return f"state-ok: {answer}"


@tool("test_input_required_result_request_state", read_only=True, open_world=False)
async def round_state(arguments: Nothing, context: ToolContext) -> str:
    """Ask for a confirmation."""
    return await _confirm(arguments, context)


@tool("test_input_required_result_tampered_state", read_only=True, open_world=False)
async def round_tampered(arguments: Nothing, context: ToolContext) -> str:
    """Ask for a confirmation; the suite changes the state."""
    return await _confirm(arguments, context)


@tool("test_input_required_result_multiple_inputs", read_only=True, open_world=False)
async def round_several(_arguments: Nothing, context: ToolContext) -> str:
    """Ask three questions at once."""
    answers = await asyncio.gather(
        context.elicit("What is your name?", Named, name="user_name"),
        context.ask_client(_prompt("Generate a greeting"), name="greeting"),
        context.ask_client(read_question(LIST_ROOTS, {}), name="client_roots"),
    )
    return str(answers)


@tool("test_input_required_result_multi_round", read_only=True, open_world=False)
async def round_twice(_arguments: Nothing, context: ToolContext) -> str:
    """Ask one question after the other."""
    named = await context.elicit("Step 1: What is your name?", Named, name="step1")
    colored = await context.elicit("Step 2: What is your favorite color?", Colored, name="step2")
    return f"{named} {colored}"


@tool("test_input_required_result_capabilities", read_only=True, open_world=False)
async def round_capabilities(_arguments: Nothing, context: ToolContext) -> str:
    """Ask only what the client answers."""
    if "sampling" in context.answered_kinds:
        return str(await context.ask_client(_prompt("Hi"), name="sampled"))
    answer = await context.elicit("What is your name?", Named, name="user_name")
    return str(answer)


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
