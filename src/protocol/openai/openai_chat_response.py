"""Completions in OpenAI's format: whole, or as the events of a stream. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

import msgspec

from ..tool_call import AnswerPiece, ReasoningPiece, ToolCallPiece, ToolResult, Usage

DONE: Final = b"data: [DONE]\n\n"
"""The end of a stream."""

_encode: Final = msgspec.json.Encoder().encode


class AnswerIdentity(msgspec.Struct, frozen=True):
    """The fields that are the same in all parts of an answer."""

    id: str
    created: int
    """A Unix time in seconds."""
    model: str
    """The model name that the client sent. The last event has the name of the model that answered."""


@dataclass(slots=True)
class StreamedParts:
    """How much of each part of an answer was streamed, in characters."""

    text: int = 0
    reasoning: int = 0
    arguments: dict[int, int] = field(default_factory=dict)
    """The characters of each tool call, by its position. A call without an entry has not begun."""

    def add(self, piece: str | AnswerPiece) -> None:
        match piece:
            case str():
                self.text += len(piece)
            case ReasoningPiece(text=text):
                self.reasoning += len(text)
            case ToolCallPiece(index=index, arguments=arguments):
                self.arguments[index] = self.arguments.get(index, 0) + len(arguments)


def whole_answer(result: ToolResult, identity: AnswerIdentity) -> bytes:
    """Encodes the result of ``complete`` as a ``chat.completion``.

    Raises:
        TypeError, ValueError, RecursionError: the answer is not valid JSON data.
    """
    data = _data(result)
    choice = {"index": 0, "message": data["message"], "logprobs": None, "finish_reason": data["finish_reason"]}
    return _encode(
        {
            "id": identity.id,
            "object": "chat.completion",
            "created": identity.created,
            "model": data["model"],
            "choices": [choice],
            "usage": usage_fields(result.metadata.usage),
            "toold": report(result),
        }
    )


def piece_event(identity: AnswerIdentity, piece: str | AnswerPiece, *, first: bool, include_usage: bool) -> bytes:
    """Encodes a piece of the answer: text, reasoning, or a part of a tool call. The first piece has the role.

    Raises:
        TypeError, ValueError, RecursionError: the answer is not valid JSON data.
    """
    delta: dict[str, Any] = {"role": "assistant"} if first else {}
    match piece:
        case str():
            delta["content"] = piece
        case ReasoningPiece(text=text):
            delta["reasoning_content"] = text
        case ToolCallPiece():
            delta["tool_calls"] = [_call_delta(piece)]
    return _event(identity, delta, include_usage=include_usage)


def _call_delta(piece: ToolCallPiece) -> dict[str, Any]:
    call: dict[str, Any] = {"index": piece.index}
    if piece.id:
        call |= {"id": piece.id, "type": "function"}
        call["function"] = {"name": piece.name, "arguments": piece.arguments}
    elif piece.arguments:
        call["function"] = {"arguments": piece.arguments}
    if piece.extra_content is not None:
        call["extra_content"] = piece.extra_content
    return call


def last_events(
    result: ToolResult, identity: AnswerIdentity, *, sent: StreamedParts, first: bool, include_usage: bool
) -> bytes:
    """Encodes the end of a stream: the reasoning, text and tool calls that were not ``sent``, the finish reason, and
    the usage if the client wants it.

    Raises:
        TypeError, ValueError, RecursionError: the result is not valid JSON data.
    """
    data = _data(result)
    message: Mapping[str, Any] = data["message"]
    answered = msgspec.structs.replace(identity, model=data["model"])
    rest: dict[str, Any] = {"role": "assistant"} if first else {}
    if text := (message["content"] or "")[sent.text :]:
        rest["content"] = text
    if reasoning := message.get("reasoning_content", "")[sent.reasoning :]:
        rest["reasoning_content"] = reasoning
    if calls := [*_unsent_calls(message.get("tool_calls", ()), sent)]:
        rest["tool_calls"] = calls
    events = [_event(answered, rest, include_usage=include_usage)] if rest else []
    end = {"toold": report(result)}
    events.append(_event(answered, {}, finish=data["finish_reason"], include_usage=include_usage, more=end))
    if include_usage:
        usage: dict[str, Any] = {"choices": [], "usage": usage_fields(result.metadata.usage)}
        events.append(_event(answered, {}, include_usage=True, more=usage))
    return b"".join((*events, DONE))


def _unsent_calls(calls: Iterable[Mapping[str, Any]], sent: StreamedParts) -> Iterator[dict[str, Any]]:
    """Yields the calls that have not begun, and the rest of the others."""
    for index, call in enumerate(calls):
        begun = sent.arguments.get(index)
        if begun is None:
            yield {"index": index, **call}
        elif rest := call["function"]["arguments"][begun:]:
            yield {"index": index, "function": {"arguments": rest}}


def error_event(error: bytes) -> bytes:
    """Wraps an encoded error in an event. No ``[DONE]`` follows, so clients do not take the answer for complete."""
    return b"data: " + error + b"\n\n"


def usage_fields(usage: Usage | None) -> dict[str, Any] | None:
    """The token usage in OpenAI's format."""
    if usage is None:
        return None
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def report(result: ToolResult) -> dict[str, Any]:
    """The fields that toold adds to an answer: provider, model, the reason for their choice, and the cost. OpenAI's
    SDKs keep unknown fields.
    """
    metadata, data = result.metadata, _data(result)
    shown = {
        "provider": metadata.provider,
        "cost": None if metadata.cost is None else msgspec.to_builtins(metadata.cost),
        "simulated": metadata.simulated,
        "model_choice_reason": metadata.model_choice_reason,
        "replayed": metadata.replayed,
        "notice": data.get("notice"),
        "fallback": data.get("fallback"),
    }
    return {name: value for name, value in shown.items() if value is not None}


def _data(result: ToolResult) -> Mapping[str, Any]:
    """The data of ``complete``, which is always an object."""
    return cast("Mapping[str, Any]", result.structured)


def _event(
    identity: AnswerIdentity,
    delta: dict[str, Any],
    *,
    include_usage: bool,
    finish: str | None = None,
    more: Mapping[str, Any] | None = None,
) -> bytes:
    chunk = {
        "id": identity.id,
        "object": "chat.completion.chunk",
        "created": identity.created,
        "model": identity.model,
        "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
        **({"usage": None} if include_usage else {}),
        **(more or {}),
    }
    return b"data: " + _encode(chunk) + b"\n\n"
