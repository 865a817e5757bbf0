"""A conversation with tool calls in the vendors' message format. Pure."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field

from ....protocol.error_codes import InvalidArgumentsError
from ....providers import ImagePart, Message, TextPart, ToolInvocation, follow_up, functions_wanted
from ...completions import CompletionLoop
from ...tool import Arguments


class CalledFunction(Arguments):
    """The function of a tool call."""

    name: str
    arguments: str = Field(description="JSON text, as the model wrote it.")


class ModelToolCall(Arguments):
    """An item of ``tool_calls``."""

    id: str = Field(min_length=1)
    type: Literal["function", "builtin_function"] = "function"
    function: CalledFunction
    extra_content: dict[str, Any] | None = None
    """Data that the vendor sent with the call, such as Gemini's thought signature."""


class ChatText(Arguments):
    """A text part of a message."""

    type: Literal["text"]
    text: str


class ImageAddress(Arguments):
    """The URL of an image."""

    url: str = Field(pattern="^(https:|data:image/)")
    detail: Literal["auto", "low", "high"] | None = None


class ChatImage(Arguments):
    """An image part of a message."""

    type: Literal["image_url"]
    image_url: ImageAddress


class ChatMessage(Arguments):
    """One message of the conversation."""

    role: Literal["system", "user", "assistant", "tool"] = "user"
    content: str | list[ChatText | ChatImage] | None = Field(
        default=None, validation_alias=AliasChoices("content", "text")
    )
    tool_calls: list[ModelToolCall] = Field(default=[])
    tool_call_id: str | None = None
    name: str | None = None
    reasoning_content: str | None = None


ChatMessages = Annotated[list[ChatMessage | str], Field(min_length=1, max_length=1000)] | str
"""The argument ``messages``: the conversation. A text is a message of the user."""


def parse_messages(messages: Sequence[ChatMessage | str] | str) -> tuple[Message, ...]:
    """Converts the caller's messages to neutral ones.

    Raises:
        InvalidArgumentsError: a tool call is not followed by its result, a result has no matching call, or a message
            is empty.
    """
    turns: list[Message] = []
    open_calls: dict[str, str] = {}
    written = [messages] if isinstance(messages, str) else messages
    for index, item in enumerate(written):
        message = ChatMessage(content=item) if isinstance(item, str) else item
        place = f"messages.{index}"
        if message.role == "tool":
            turns.append(_result(message, place, open_calls))
            continue
        _require_results(open_calls, place)
        if not message.content and not message.tool_calls:
            raise _invalid(place, "the message has no content")
        if message.tool_call_id is not None:
            raise _invalid(place, "only a tool message may have a tool_call_id")
        content = _content(message)
        if message.role != "user" and images_in(content):
            raise _invalid(place, "only a user message may have images")
        if message.tool_calls and message.role != "assistant":
            raise _invalid(place, "only an assistant message may have tool_calls")
        open_calls = {call.id: call.function.name for call in message.tool_calls}
        calls = tuple(
            ToolInvocation(call.id, call.function.name, call.function.arguments, call.extra_content)
            for call in message.tool_calls
        )
        reasoning = message.reasoning_content or ""
        turns.append(Message(message.role, content, calls, tool_name=message.name, reasoning=reasoning))
    _require_results(open_calls, f"messages.{len(written)}")
    return tuple(turns)


def new_turns(request: tuple[Message, ...], loop: CompletionLoop) -> tuple[Message, ...]:
    """Returns the turns added after the ``request``, without the function results, which the caller supplies."""
    completion = loop.completion
    pending = {call.id: "" for call in functions_wanted(completion)}
    turns = follow_up(loop.messages, completion, pending)
    if turns is None:
        turns = (*loop.messages, Message("assistant", completion.text, reasoning=completion.reasoning))
    return tuple(turn for turn in turns[len(request) :] if turn.tool_call_id not in pending)


def _result(message: ChatMessage, place: str, open_calls: dict[str, str]) -> Message:
    if message.tool_call_id is None:
        raise _invalid(place, "a result needs the tool_call_id of its call")
    if open_calls.pop(message.tool_call_id, None) is None:
        raise _invalid(place, f"no preceding assistant message has an open call {message.tool_call_id[:100]!r}")
    content = _content(message)
    if images_in(content):
        raise _invalid(place, "only a user message may have images")
    return Message("tool", content, tool_call_id=message.tool_call_id, tool_name=message.name)


def images_in(content: str | tuple[TextPart | ImagePart, ...]) -> list[ImagePart]:
    """Returns the images of a message's content."""
    return [] if isinstance(content, str) else [part for part in content if isinstance(part, ImagePart)]


def _content(message: ChatMessage) -> str | tuple[TextPart | ImagePart, ...]:
    if message.content is None or isinstance(message.content, str):
        return message.content or ""
    return tuple(
        TextPart(part.text) if isinstance(part, ChatText) else ImagePart(part.image_url.url, part.image_url.detail)
        for part in message.content
    )


def _require_results(open_calls: dict[str, str], place: str) -> None:
    for call, name in open_calls.items():
        result = {"role": "tool", "tool_call_id": call, "content": "…"}
        raise _invalid(place, f"the result of the call {call!r} of {name!r} is missing; insert {result} here")


def _invalid(place: str, problem: str) -> InvalidArgumentsError:
    return InvalidArgumentsError(f"{place}: {problem}.", details={"fields": {place: problem}})
