"""A conversation with tool calls, in the form in which the vendors take it. Pure."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from ....protocol.error_codes import InvalidArgumentsError
from ....providers import ImagePart, Message, TextPart, ToolInvocation, follow_up, functions_wanted
from ...completions import CompletionLoop
from ...tool import Arguments


class CalledFunction(Arguments):
    """What was called."""

    name: str
    arguments: str = Field(description="JSON, as the model wrote it.")


class ModelToolCall(Arguments):
    """One of ``tool_calls``."""

    id: str = Field(min_length=1)
    type: Literal["function", "builtin_function"] = "function"
    function: CalledFunction


class ChatText(Arguments):
    """Words, as one of several parts."""

    type: Literal["text"]
    text: str


class ImageAddress(Arguments):
    """Where an image is."""

    url: str = Field(pattern="^(https:|data:image/)")


class ChatImage(Arguments):
    """An image, as one of several parts."""

    type: Literal["image_url"]
    image_url: ImageAddress


class ChatMessage(Arguments):
    """One turn."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | list[ChatText | ChatImage] | None = None
    tool_calls: list[ModelToolCall] = Field(default=[])
    tool_call_id: str | None = None
    name: str | None = None
    reasoning_content: str | None = None


def read(messages: Sequence[ChatMessage]) -> tuple[Message, ...]:
    """The turns as they are asked with.

    Raises:
        InvalidArgumentsError: a call of the model's has no result right after it, a result belongs to no call, or a
            turn has nothing in it.
    """
    turns: list[Message] = []
    open_calls: dict[str, str] = {}
    for index, message in enumerate(messages):
        place = f"messages.{index}"
        if message.role == "tool":
            turns.append(_result(message, place, open_calls))
            continue
        _require_results(open_calls, place)
        if not message.content and not message.tool_calls:
            raise _wrong(place, "it has no content")
        if message.tool_call_id is not None:
            raise _wrong(place, "only a message of a tool has a tool_call_id")
        content = _content(message)
        if message.role != "user" and images_in(content):
            raise _wrong(place, "only a message of the user has images")
        if message.tool_calls and message.role != "assistant":
            raise _wrong(place, "only a message of the assistant has tool_calls")
        open_calls = {call.id: call.function.name for call in message.tool_calls}
        calls = tuple(
            ToolInvocation(call.id, call.function.name, call.function.arguments) for call in message.tool_calls
        )
        turns.append(Message(message.role, content, calls, reasoning=message.reasoning_content or ""))
    _require_results(open_calls, f"messages.{len(messages)}")
    return tuple(turns)


def said(asked: tuple[Message, ...], rounds: CompletionLoop) -> tuple[Message, ...]:
    """What was said after the messages that were ``asked``: all turns but the results that are the caller's to give."""
    completion = rounds.completion
    wanted = {call.id: "" for call in functions_wanted(completion)}
    turns = follow_up(rounds.messages, completion, wanted)
    if turns is None:
        turns = (*rounds.messages, Message("assistant", completion.text, reasoning=completion.reasoning))
    return tuple(turn for turn in turns[len(asked) :] if turn.tool_call_id not in wanted)


def _result(message: ChatMessage, place: str, open_calls: dict[str, str]) -> Message:
    if message.tool_call_id is None:
        raise _wrong(place, "a result needs the tool_call_id of its call")
    if open_calls.pop(message.tool_call_id, None) is None:
        raise _wrong(place, f"no call {message.tool_call_id[:100]!r} of the assistant waits for a result here")
    content = _content(message)
    if images_in(content):
        raise _wrong(place, "only a message of the user has images")
    return Message("tool", content, tool_call_id=message.tool_call_id, tool_name=message.name)


def images_in(content: str | tuple[TextPart | ImagePart, ...]) -> list[ImagePart]:
    """The images of a turn."""
    return [] if isinstance(content, str) else [part for part in content if isinstance(part, ImagePart)]


def _content(message: ChatMessage) -> str | tuple[TextPart | ImagePart, ...]:
    if message.content is None or isinstance(message.content, str):
        return message.content or ""
    return tuple(
        TextPart(part.text) if isinstance(part, ChatText) else ImagePart(part.image_url.url) for part in message.content
    )


def _require_results(open_calls: dict[str, str], place: str) -> None:
    for call, name in open_calls.items():
        wanted = {"role": "tool", "tool_call_id": call, "content": "…"}
        raise _wrong(place, f"before it the result of the call {call!r} of {name!r} is missing: add {wanted}")


def _wrong(place: str, what: str) -> InvalidArgumentsError:
    return InvalidArgumentsError(f"{place}: {what}.", details={"fields": {place: what}})
