"""The messages of a role's conversation with its model. Pure.

A turn with tool calls is always followed by one result per call, because vendors refuse a conversation in which a call
has no result.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from ...protocol.content_text import described_text
from ...protocol.error_codes import ToolError
from ...protocol.tool_call import ToolResult, Usage
from ...providers import Completion, ImagePart, Message, TextPart, ToolInvocation

Row = dict[str, Any]
"""A message as JSON: ``role``, ``content``, and for tool calls ``tool_calls``, ``tool_call_id`` and ``reasoning``.
``images`` are indexes of the run's images.
"""


class WantedCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool call by the model; ``arguments`` is JSON text, as the model wrote it."""

    id: str
    name: str
    arguments: str
    extra_content: dict[str, Any] | None = None
    """Data that the vendor requires back with the call."""


class TurnAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model's answer to one turn, in the journal's form."""

    text: str
    model: str
    finish_reason: str
    reasoning: str = ""
    calls: tuple[WantedCall, ...] = ()
    model_choice_reason: str = ""
    """Why another model answered; empty if the role's model answered."""
    usage: Usage | None = None


def turn_answer(completion: Completion, model_choice_reason: str | None = None) -> TurnAnswer:
    """The completion as a turn's answer."""
    calls = tuple(
        WantedCall(call.id, call.name, call.arguments, None if call.extra_content is None else dict(call.extra_content))
        for call in completion.tool_calls
    )
    return TurnAnswer(
        completion.text,
        completion.model,
        completion.finish_reason,
        completion.reasoning,
        calls,
        model_choice_reason or "",
        completion.usage,
    )


def row_of(message: Message) -> Row:
    """A message as JSON.

    Raises:
        TypeError: the message has images, which a turn does not store.
    """
    if not isinstance(message.content, str):
        raise TypeError("a turn's messages have text only")
    row: Row = {"role": message.role, "content": message.content}
    if message.tool_calls:
        row["tool_calls"] = [asdict(call) for call in message.tool_calls]
    optional = {"tool_call_id": message.tool_call_id, "tool_name": message.tool_name, "reasoning": message.reasoning}
    return row | {name: value for name, value in optional.items() if value}


def user_row(text: str, images: Sequence[int] = ()) -> Row:
    """A message of the user. ``images`` are indexes of the run's images."""
    row: Row = {"role": "user", "content": text}
    return {**row, "images": list(images)} if images else row


def answer_row(answer: TurnAnswer) -> Row:
    """The model's turn as a message of the next request."""
    row: Row = {"role": "assistant", "content": answer.text}
    if answer.calls:
        row["tool_calls"] = msgspec.to_builtins(answer.calls)
    if answer.reasoning:
        row["reasoning"] = answer.reasoning
    return row


def result_rows(answer: TurnAnswer, results: Sequence[str]) -> list[Row]:
    """One message per call of the turn, in the order of the calls."""
    return [
        {"role": "tool", "content": text, "tool_call_id": call.id, "tool_name": call.name}
        for call, text in zip(answer.calls, results, strict=True)
    ]


def images_of(rows: Iterable[Row], images: Sequence[str]) -> tuple[str, ...]:
    """The images of the messages, as URLs. ``images`` are the run's images."""
    return tuple(images[place] for row in rows for place in row.get("images", ()))


def _content(row: Row, images: Sequence[str]) -> str | tuple[TextPart | ImagePart, ...]:
    if "images" not in row:
        text: str = row["content"]
        return text
    return (TextPart(row["content"]), *map(ImagePart, images_of([row], images)))


def messages_of(rows: Iterable[Row], images: Sequence[str] = ()) -> tuple[Message, ...]:
    """The messages in the form for providers. ``images`` are the run's images, as URLs."""
    return tuple(
        Message(
            row["role"],
            _content(row, images),
            tool_calls=tuple(ToolInvocation(**call) for call in row.get("tool_calls", ())),
            tool_call_id=row.get("tool_call_id"),
            tool_name=row.get("tool_name"),
            reasoning=row.get("reasoning", ""),
        )
        for row in rows
    )


def result_text(result: ToolResult) -> str:
    """The result of a call for the model: its text, which describes images and files, or its error as JSON.

    ``turn_results`` shortens it.
    """
    if result.error is not None:
        return error_text(result.error)
    if not result.outputs and result.structured is not msgspec.UNSET:  # the result of an MCP server, without text
        return msgspec.json.encode(result.structured).decode()
    return described_text(result.outputs)


def error_text(error: ToolError) -> str:
    """An error as JSON, for the model."""
    shown = {"code": error.code, "message": error.message, "executed": error.executed}
    return msgspec.json.encode({"error": shown}).decode()


def problem_text(code: str, message: str) -> str:
    """The error of a call that was not made."""
    return error_text(ToolError(code, message, "no", retryable=False))
