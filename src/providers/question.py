"""From the neutral request to the body that both vendors take, and what a model cannot do. Pure."""

from collections.abc import Callable
from html import escape
from typing import Any

from ..protocol.errors import InvalidArgumentsError
from .completion import AttachedFile, CompletionRequest, ImagePart, Message, TextPart

Body = dict[str, Any]
"""The JSON object of ``POST …/chat/completions``."""


def check(request: CompletionRequest) -> None:
    """Refuse what the model cannot do, before anything is sent.

    Raises:
        InvalidArgumentsError: names the model and, in ``details.fields``, the argument.
    """
    model = request.model
    if not request.messages and not request.files:
        raise _refused("messages", "There is nothing to ask: the request has no message.")
    if "image" not in model.inputs and _has_image(request):
        raise _refused("images", f"{model.id} takes no images; `listmodels` shows those that do.")
    if request.tools and not model.tools:
        raise _refused("tools", f"{model.id} cannot call tools; `listmodels` shows those that can.")
    if request.thinking is True and model.thinking == "none":
        raise _refused("thinking", f"{model.id} cannot think first; leave thinking out or name a model that can.")
    if request.thinking is False and model.thinking == "always":
        raise _refused("thinking", f"{model.id} always thinks first; leave thinking out or name another model.")
    _check_numbers(request)


def _check_numbers(request: CompletionRequest) -> None:
    model = request.model
    if request.temperature is not None:
        if model.fixed_temperature:
            raise _refused("temperature", f"{model.id} has a fixed temperature; leave temperature out.")
        if not 0 <= request.temperature <= 1:
            raise _refused("temperature", f"{model.id} takes a temperature from 0 to 1, not {request.temperature:g}.")
    if request.max_tokens is not None:
        bound = model.max_output or model.context_window
        if not 0 < request.max_tokens <= bound:
            raise _refused("max_tokens", f"{model.id} takes max_tokens from 1 to {bound}, not {request.max_tokens}.")


def body(request: CompletionRequest, *, stream: bool, image_url: Callable[[str], str]) -> Body:
    """What both vendors spell alike; ``image_url`` makes the vendor's form of an image's URL."""
    document: Body = {
        "model": request.model.id,
        "messages": [_message(message, image_url) for message in with_files(request.messages, request.files)],
        "stream": stream,
    }
    if request.temperature is not None:
        document["temperature"] = request.temperature
    if request.tools:
        document["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
            }
            for tool in request.tools
        ]
    if request.thinking is not None and request.model.thinking == "switch":
        document["thinking"] = {"type": "enabled" if request.thinking else "disabled"}
    return document


def with_files(messages: tuple[Message, ...], files: tuple[AttachedFile, ...]) -> tuple[Message, ...]:
    """The conversation with the files' text ahead of the last user message.

    Not in system messages: what a file says is the user's material, never the daemon's instruction.
    """
    if not files:
        return messages
    text = "\n\n".join(f'<file name="{escape(file.name)}">\n{file.text}\n</file>' for file in files)
    at = max((i for i, message in enumerate(messages) if message.role == "user"), default=None)
    if at is None:
        return (*messages, Message("user", text))
    asked = messages[at]
    content = f"{text}\n\n{asked.content}" if isinstance(asked.content, str) else (TextPart(text), *asked.content)
    return (*messages[:at], Message("user", content), *messages[at + 1 :])


def _message(message: Message, image_url: Callable[[str], str]) -> dict[str, Any]:
    document: dict[str, Any] = {"role": message.role}
    if isinstance(message.content, str):
        document["content"] = message.content
    else:
        document["content"] = [
            {"type": "text", "text": part.text}
            if isinstance(part, TextPart)
            else {"type": "image_url", "image_url": {"url": image_url(part.url)}}
            for part in message.content
        ]
    if message.reasoning:
        document["reasoning_content"] = message.reasoning
    if message.tool_calls:
        document["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        document["tool_call_id"] = message.tool_call_id
    return document


def _has_image(request: CompletionRequest) -> bool:
    return any(
        isinstance(part, ImagePart)
        for message in request.messages
        if not isinstance(message.content, str)
        for part in message.content
    )


def _refused(field: str, message: str) -> InvalidArgumentsError:
    return InvalidArgumentsError(message, details={"fields": {field: message}})
