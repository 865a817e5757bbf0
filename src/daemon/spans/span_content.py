"""The content of spans, if the setting is ``full``: arguments, results and messages, bounded and redacted. Pure.

``call_content`` and ``completion_content`` are cheap and run on the event loop; the other functions search for secrets
and run in the sender's thread.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ...audit import redact, redact_message, redact_text
from ...protocol.tool_call import Json, ToolResult
from ...providers import Completion, CompletionRequest, FunctionTool, ImagePart, Message, TextPart
from ...tools import ValueMask

MAX_HELD_CHARS: Final = 256 * 1024
"""Longer arguments and results are omitted: they would fill the queue, and a span shows only their beginning."""
MAX_MESSAGES_CHARS: Final = 64 * 1024
"""The number of characters of a completion's latest messages that are searched for secrets and sent."""
_VALUE_CHARS: Final = 8
"""The assumed size of a number, a boolean, null, a list or an object."""

_encode = msgspec.json.Encoder(enc_hook=str).encode


class CallContent(msgspec.Struct, frozen=True, gc=False):
    """The arguments and the result of a call in the queue."""

    arguments: Json
    result: str
    chars: int


class CompletionContent(msgspec.Struct, frozen=True, gc=False):
    """The texts of a completion in the queue."""

    request: CompletionRequest
    completion: Completion | None
    mask: ValueMask | None
    """The mask of the tool, whose bound values may be in its prompts."""
    chars: int


def call_content(arguments: Json, arguments_bytes: int, result: ToolResult) -> CallContent:
    """The content that a span shows of a call. ``arguments_bytes`` is the size of its frame; 0 if there was none."""
    arguments_chars = arguments_bytes or _chars(arguments, MAX_HELD_CHARS)
    if arguments_chars > MAX_HELD_CHARS:
        arguments, arguments_chars = f"[more than {MAX_HELD_CHARS} characters]", _VALUE_CHARS
    text = result.text
    if len(text) > MAX_HELD_CHARS:
        text = f"[{len(text)} characters]"
    return CallContent(arguments, text, arguments_chars + len(text))


def _chars(value: Json, most: int) -> int:
    """The approximate size of JSON data; the count ends when it exceeds ``most``."""
    if isinstance(value, str):
        return len(value)
    if not isinstance(value, dict | list | tuple):
        return _VALUE_CHARS
    total = _VALUE_CHARS
    for item in value.items() if isinstance(value, dict) else value:
        total += _chars(item, most - total)
        if total > most:
            break
    return total


def completion_content(
    request: CompletionRequest, completion: Completion | None, mask: ValueMask | None
) -> CompletionContent:
    """The content that a span shows of a completion."""
    total = sum(len(file.name) + len(file.text) for file in request.files)
    total += sum(_held_chars(message) for message in request.messages)
    for tool in request.tools:
        if isinstance(tool, FunctionTool):
            total += len(tool.name) + len(tool.description) + _chars(tool.parameters, MAX_HELD_CHARS)
    if completion is not None:
        total += _held_chars(
            Message("assistant", completion.text, completion.tool_calls, reasoning=completion.reasoning)
        )
    return CompletionContent(request, completion, mask, total)


def _held_chars(message: Message) -> int:
    """The size of a message in the queue, including its images."""
    content = message.content
    return _chars_beside_content(message) + (
        len(content) if isinstance(content, str) else sum(len(_text_of(part)) for part in content)
    )


def _shown_chars(message: Message) -> int:
    """The number of characters that a span shows of a message. It shows only the size of an image that is sent as
    data."""
    content = message.content
    return _chars_beside_content(message) + (
        len(content)
        if isinstance(content, str)
        else sum(_VALUE_CHARS if _is_data(part) else len(_text_of(part)) for part in content)
    )


def _chars_beside_content(message: Message) -> int:
    return len(message.reasoning) + sum(len(call.name) + len(call.arguments) for call in message.tool_calls)


def _text_of(part: TextPart | ImagePart) -> str:
    return part.url if isinstance(part, ImagePart) else part.text


def _is_data(part: TextPart | ImagePart) -> bool:
    return isinstance(part, ImagePart) and part.url.startswith("data:")


def json_text(value: Json) -> str:
    """Arguments or a result as JSON or text, redacted, with the length limit of the audit."""
    redacted = redact(value)
    return redacted if isinstance(redacted, str) else _encode(redacted).decode()


def error_text(message: str) -> str:
    """The message of an error, redacted."""
    return redact_text(message)


def input_messages(request: CompletionRequest) -> str:
    """The messages to the model, without system messages, in the JSON format of the conventions."""
    messages = [message for message in request.messages if message.role != "system"]
    kept = _latest(messages)
    entries: list[Json] = [_entry(message) for message in kept]
    asked = next((entry for entry in reversed(entries) if entry["role"] == "user"), None)
    if asked is not None:  # files are sent with the last question
        asked["parts"].extend({"type": "text", "content": f"{file.name}\n{file.text}"} for file in request.files)
    if len(kept) < len(messages):
        note = f"[{len(messages) - len(kept)} earlier messages]"
        entries.insert(0, {"role": "system", "parts": [{"type": "text", "content": note}]})
    return _encode(redact_message(entries)).decode()


def system_instructions(request: CompletionRequest) -> str | None:
    """The system's messages; None if there are none."""
    parts = [part for message in request.messages if message.role == "system" for part in _parts(message)]
    return _encode(redact_message(parts)).decode() if parts else None


def output_messages(completion: Completion) -> str:
    """The model's answer, in the JSON format of the conventions."""
    message = Message("assistant", completion.text, completion.tool_calls, reasoning=completion.reasoning)
    return _encode(redact_message([{**_entry(message), "finish_reason": completion.finish_reason}])).decode()


def tool_definitions(request: CompletionRequest) -> str | None:
    """The functions that the model may call; None if there are none."""
    functions = [tool for tool in request.tools if isinstance(tool, FunctionTool)]
    definitions = [
        {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.parameters}
        for tool in functions
    ]
    return _encode(redact_message(definitions)).decode() if definitions else None


def _latest(messages: Sequence[Message]) -> Sequence[Message]:
    """The latest messages that fit into ``MAX_MESSAGES_CHARS``; at least the last."""
    total = 0
    for index in range(len(messages) - 1, -1, -1):
        total += _shown_chars(messages[index])
        if total > MAX_MESSAGES_CHARS:
            return messages[min(index + 1, len(messages) - 1) :]
    return messages


def _entry(message: Message) -> dict[str, Any]:
    return {"role": message.role, "parts": _parts(message)}


def _parts(message: Message) -> list[Json]:
    if message.role == "tool":
        return [{"type": "tool_call_response", "id": message.tool_call_id, "response": message.content}]
    parts: list[Json] = []
    if message.reasoning:
        parts.append({"type": "reasoning", "content": message.reasoning})
    if isinstance(message.content, str):
        if message.content:
            parts.append({"type": "text", "content": message.content})
    else:
        parts.extend(map(_part, message.content))
    parts.extend(
        {"type": "tool_call", "id": call.id, "name": call.name, "arguments": _decoded(call.arguments)}
        for call in message.tool_calls
    )
    return parts


def _part(part: TextPart | ImagePart) -> Json:
    if not isinstance(part, ImagePart):
        return {"type": "text", "content": part.text}
    if _is_data(part):
        return {"type": "text", "content": f"[image of {len(part.url)} characters]"}
    return {"type": "uri", "modality": "image", "uri": part.url}


def _decoded(arguments: str) -> Json:
    """A model's arguments as data, so that secrets are found by field names; the text if it is not JSON."""
    try:
        return msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        return arguments
