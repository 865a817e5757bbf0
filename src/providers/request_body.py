"""Converts a vendor-neutral request to the body of a vendor's chat completion. Pure."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from .completion import (
    AttachedFile,
    CompletionRequest,
    FunctionTool,
    ImagePart,
    JsonFormat,
    Message,
    TextPart,
    WebSearch,
)
from .model import Depth, Model
from .prompt_tags import tagged
from .thinking import thinking_fields

Body = dict[str, Any]
"""The JSON object of ``POST …/chat/completions``."""

BUILTIN_PREFIX: Final = "$"
"""The prefix of the names of Kimi's built-in tools (platform.kimi.ai/docs/guide/use-web-search)."""

SCHEMA_BEGINS: Final = "Answer with one JSON object that fits this JSON Schema, and nothing else:\n<schema>\n"
SCHEMA_ENDS: Final = "\n</schema>"
"""Enclose the schema in the instructions of a model whose vendor cannot enforce it."""


def body(
    request: CompletionRequest,
    *,
    stream: bool,
    image_url: Callable[[str], str],
    web_search: Callable[[WebSearch], dict[str, Any]],
    thinking: Callable[[Model, bool | Depth | None], dict[str, Any]] = thinking_fields,
    reasoning_field: str | None = "reasoning_content",
    extra_content: bool = False,
) -> Body:
    """Returns the body for any vendor. ``image_url``, ``web_search`` and ``thinking`` convert values to the vendor's
    format. ``reasoning_field`` is the field for the reasoning of earlier messages; None if it is not sent.
    ``extra_content``: whether the extra content of earlier tool calls is sent.
    """
    messages = with_schema(with_files(request.messages, request.files), request)
    document: Body = {
        "model": request.model.sent_id,
        "messages": [
            _message(message, image_url, reasoning_field, extra_content=extra_content) for message in messages
        ],
        "stream": stream,
    }
    if request.temperature is not None:
        document["temperature"] = request.temperature
    if request.tools:
        document["tools"] = [
            _function(tool) if isinstance(tool, FunctionTool) else web_search(tool) for tool in request.tools
        ]
    if request.response_format is not None:
        document["response_format"] = _response_format(request.response_format, request.model.structured)
    return document | thinking(request.model, request.thinking) | dict(request.fields)


def with_files(messages: tuple[Message, ...], files: tuple[AttachedFile, ...]) -> tuple[Message, ...]:
    """Inserts the files' text before the last user message.

    The text is never in a system message, because files are data and not instructions.
    """
    if not files:
        return messages
    text = "\n\n".join(tagged("file", file.text, name=file.name) for file in files)
    at = max((i for i, message in enumerate(messages) if message.role == "user"), default=None)
    if at is None:
        return (*messages, Message("user", text))
    question = messages[at]
    content = (
        f"{text}\n\n{question.content}" if isinstance(question.content, str) else (TextPart(text), *question.content)
    )
    return (*messages[:at], replace(question, content=content), *messages[at + 1 :])


def with_schema(messages: tuple[Message, ...], request: CompletionRequest) -> tuple[Message, ...]:
    """Adds the JSON Schema to the system instructions if the vendor has no parameter for it."""
    response_format = request.response_format
    if response_format is None or response_format.schema is None or request.model.structured == "schema":
        return messages
    instruction = f"{SCHEMA_BEGINS}{json.dumps(response_format.schema, ensure_ascii=False)}{SCHEMA_ENDS}"
    return with_instruction(messages, instruction)


def with_instruction(messages: tuple[Message, ...], instruction: str) -> tuple[Message, ...]:
    """Adds a paragraph to the system instructions."""
    first = messages[0] if messages else None
    if first is not None and first.role == "system" and isinstance(first.content, str):
        return (replace(first, content=f"{first.content}\n\n{instruction}"), *messages[1:])
    return (Message("system", instruction), *messages)


def _response_format(response_format: JsonFormat, structured: str) -> dict[str, Any]:
    if response_format.schema is None or structured != "schema":
        return {"type": "json_object"}
    return {
        "type": "json_schema",
        "json_schema": {"name": response_format.name, "strict": True, "schema": response_format.schema},
    }


def _function(tool: FunctionTool) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _image(part: ImagePart, image_url: Callable[[str], str]) -> dict[str, str]:
    image = {"url": image_url(part.url)}
    return image if part.detail is None else {**image, "detail": part.detail}


def _message(
    message: Message, image_url: Callable[[str], str], reasoning_field: str | None, *, extra_content: bool
) -> dict[str, Any]:
    document: dict[str, Any] = {"role": message.role}
    if isinstance(message.content, str):
        document["content"] = message.content
    else:
        document["content"] = [
            {"type": "text", "text": part.text}
            if isinstance(part, TextPart)
            else {"type": "image_url", "image_url": _image(part, image_url)}
            for part in message.content
        ]
    if message.reasoning and reasoning_field is not None:
        document[reasoning_field] = message.reasoning
    if message.tool_calls:
        document["tool_calls"] = [
            {
                "id": call.id,
                "type": "builtin_function" if call.name.startswith(BUILTIN_PREFIX) else "function",
                "function": {"name": call.name, "arguments": call.arguments},
                **({"extra_content": call.extra_content} if extra_content and call.extra_content is not None else {}),
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        document["tool_call_id"] = message.tool_call_id
    if message.tool_name is not None:
        document["name"] = message.tool_name
    return document
