"""The completion loop: repeats a completion while the model calls the vendor's built-in tools."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from ...protocol.error_codes import ProviderError
from ...protocol.tool_call import ReasoningPiece
from ...providers import (
    Completion,
    CompletionRequest,
    Delta,
    Message,
    WebSearch,
    follow_up,
    functions_wanted,
    is_builtin,
)
from ..tool_context import ToolContext

MAX_COMPLETIONS: Final = 6
"""Completions per request. If the model still searches the web after the last one, the request fails."""


@dataclass(frozen=True, slots=True)
class CompletionLoop:
    """The result of a completion loop."""

    completion: Completion
    """The last completion."""
    completions: int
    """The number of completions made."""
    messages: tuple[Message, ...]
    """The messages of the last request: the original messages and those that the loop added."""


async def complete(
    request: CompletionRequest,
    context: ToolContext,
    *,
    model_choice_reason: str | None = None,
    stream: bool = True,
    pieces: bool = False,
    on_start: Callable[[], None] | None = None,
) -> CompletionLoop:
    """Repeats the completion until the model calls no built-in tool, or calls one of the caller's functions.

    With ``pieces``, reasoning and tool calls are streamed too, unless the model may search the web, which takes several
    completions. ``on_start`` is called for everything that arrives; with it, the vendor streams.

    Raises:
        CallError: the vendor failed; ProviderError if the model exceeds ``MAX_COMPLETIONS``.
    """

    streaming = stream and context.streaming
    forwarder = _PieceForwarder(context) if pieces and streaming and WebSearch not in map(type, request.tools) else None

    def forward(delta: Delta) -> None:
        if on_start is not None:
            on_start()
        if forwarder is not None:
            forwarder.forward(delta)
        if delta.text and streaming:
            context.stream(delta.text)

    on_delta = forward if streaming or on_start is not None else None
    for number in range(1, MAX_COMPLETIONS + 1):
        completion = await context.complete(request, on_delta=on_delta, model_choice_reason=model_choice_reason)
        messages = None if functions_wanted(completion) else follow_up(request.messages, completion)
        if messages is None:
            return CompletionLoop(completion, number, request.messages)
        request = replace(request, messages=messages)
        context.progress(f"{request.model.id} is searching the web", number)
    raise ProviderError(
        f"{request.model.id} searched the web {MAX_COMPLETIONS} times without answering; ask a narrower question.",
        executed="yes",
    )


class _PieceForwarder:
    """Forwards reasoning and calls of the caller's functions, until the first call of a built-in tool: up to there, a
    piece has the same position in the stream and in the answer.
    """

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._calls = True

    def forward(self, delta: Delta) -> None:
        if delta.reasoning:
            self._context.stream_piece(ReasoningPiece(delta.reasoning))
        for piece in delta.tool_calls:
            self._calls = self._calls and not is_builtin(piece.name)
            if self._calls:
                self._context.stream_piece(piece)
