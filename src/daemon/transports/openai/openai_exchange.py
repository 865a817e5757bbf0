"""One request in progress: the ``CallPort`` that converts chunks and the answer to OpenAI's format."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec

from ....protocol.openai.openai_chat_response import (
    AnswerIdentity,
    StreamedParts,
    last_events,
    piece_event,
    whole_answer,
)
from ....protocol.openai.openai_embeddings import embeddings_answer
from ....protocol.openai.openai_error import OpenAIProblem, problem_of
from ....protocol.questions.question_table import OpenQuestion
from ....protocol.tool_call import AnswerPiece, Progress, ReasoningPiece, ToolCallPiece, ToolResult
from ....serving import SLOW_READER_BYTES
from ...dispatch import RunningCall

ALIVE: Final = b": the call is still running\n\n"
"""An SSE comment, which clients ignore, so that proxies do not close the connection."""

_SUPERSEDED: Final = OpenAIProblem(
    409, "A later request with this Idempotency-Key gets the answer.", code="idempotency_key_in_use", executed="maybe"
)
_SPILLED: Final = OpenAIProblem(
    500,
    "The answer is too large to send; limit it with max_completion_tokens, or send fewer inputs.",
    "server_error",
    "answer_too_large",
)


class AnswerForm(Protocol):
    """Encodes the result of a call that succeeded."""

    def __call__(self, result: ToolResult, *, sent: StreamedParts) -> bytes: ...


PieceForm = Callable[[str | AnswerPiece, bool], bytes]
"""Encodes a piece of a stream; the second argument says whether it is the first."""


class OpenAIExchange:
    """The pending parts of an answer. Pieces that the client has not read yet are joined."""

    def __init__(self, form: AnswerForm, piece_form: PieceForm) -> None:
        self.answer: bytes | None = None
        """The last part of the answer, or the body of an error, once the call has ended."""
        self.problem: OpenAIProblem | None = None
        """The error in ``answer``; None if the call succeeded."""
        self.late = False
        """Whether the call was already running when this request joined it: then its text arrives with the answer."""
        self.disconnected = False
        """Whether the client has disconnected."""
        self.changed = asyncio.Event()
        """Set when one of the above changes, or a piece arrives."""
        self._form = form
        self._piece_form = piece_form
        self._pending: list[_PendingPiece] = []
        self._received = StreamedParts()
        self._written = False
        self._alive = False
        # Set when the request is done; None unless a large answer waits for that.
        self._sent: asyncio.Event | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"<OpenAIExchange answered={self.answer is not None}>"

    def events(self) -> bytes:
        """Returns and clears the events to send before the answer."""
        pending, alive = self._pending, self._alive
        self._pending, self._alive = [], False
        if not pending:
            return ALIVE if alive else b""
        first, self._written = not self._written, True
        return b"".join(self._piece_form(each.joined(), first and not at) for at, each in enumerate(pending))

    def set_disconnected(self, _: object = None) -> None:
        """Records that the client disconnected."""
        self.disconnected = True
        self.changed.set()

    def supersede(self) -> None:
        """Answers with an error, because a later request with the same key has taken over the call."""
        self.fail(_SUPERSEDED)

    def fail(self, problem: OpenAIProblem) -> None:
        """Answers with an error, unless the answer is already set."""
        if self.answer is None:
            self.problem = problem
            self._settle(problem.encode())

    def settle(self, result: ToolResult) -> None:
        """Answers with the result of a call that did not run, or had run earlier."""
        self._settle(self._rendered(result))

    def close(self) -> None:
        """Reports that the request is done: the answer is sent, or no client waits for it."""
        self._closed = True
        if self._sent is not None:
            self._sent.set()

    # --- CallPort ----------------------------------------------------------------------------------------------------

    def render(self, _running: RunningCall, result: ToolResult) -> bytes:
        return self._rendered(result)

    async def deliver(self, _running: RunningCall, answer: bytes) -> None:
        self._settle(answer)
        if len(answer) > SLOW_READER_BYTES and not self._closed:
            self._sent = asyncio.Event()
            await self._sent.wait()

    def progress(self, _running: RunningCall, _progress: Progress) -> bool:
        return False

    def chunk(self, _running: RunningCall, text: str) -> None:
        self._add(text)

    def piece(self, _running: RunningCall, piece: AnswerPiece) -> None:
        self._add(piece)

    def question(self, _running: RunningCall, entry: OpenQuestion) -> None:
        """Does nothing: clients of this API answer no questions."""

    def question_closed(self, _running: RunningCall, entry: OpenQuestion) -> None:
        """Does nothing, like ``question``."""

    def heartbeat(self, _calls: Sequence[RunningCall], _now: float) -> None:
        self._alive = True
        self.changed.set()

    def _rendered(self, result: ToolResult) -> bytes:
        if result.error is None and result.metadata.spilled is None:
            self.problem = None
            return self._form(result, sent=self._received)
        self.problem = _SPILLED if result.error is None else problem_of(result.error)
        return self.problem.encode()

    def _add(self, piece: str | AnswerPiece) -> None:
        if not self.late:
            if not (self._pending and self._pending[-1].take(piece)):
                self._pending.append(_PendingPiece(piece))
            self._received.add(piece)
            self.changed.set()

    def _settle(self, answer: bytes) -> None:
        if self.answer is None:
            self.answer = answer
        self.changed.set()


class _PendingPiece:
    """An unsent piece, with the pieces that continue it."""

    __slots__ = ("_first", "_kind", "_texts")

    def __init__(self, piece: str | AnswerPiece) -> None:
        self._first = piece
        self._kind, text = _continued(piece)
        self._texts = [text]

    def take(self, piece: str | AnswerPiece) -> bool:
        """Adds the piece if it continues this one; returns whether it does."""
        kind, text = _continued(piece)
        if kind != self._kind or (isinstance(piece, ToolCallPiece) and (piece.id or piece.extra_content is not None)):
            return False
        self._texts.append(text)
        return True

    def joined(self) -> str | AnswerPiece:
        text = "".join(self._texts)
        match self._first:
            case str():
                return text
            case ReasoningPiece():
                return ReasoningPiece(text)
            case ToolCallPiece():
                return msgspec.structs.replace(self._first, arguments=text)


def _continued(piece: str | AnswerPiece) -> tuple[str | int, str]:
    """The part of the answer that the piece continues, and its text."""
    match piece:
        case str():
            return "text", piece
        case ReasoningPiece(text=text):
            return "reasoning", text
        case ToolCallPiece(index=index, arguments=arguments):
            return index, arguments


def whole_form(identity: Callable[[], AnswerIdentity]) -> AnswerForm:
    """Answers of requests without ``stream``."""

    def form(result: ToolResult, *, sent: StreamedParts) -> bytes:  # noqa: ARG001 - nothing is sent before
        return whole_answer(result, identity())

    return form


def embeddings_form(_identity: Callable[[], AnswerIdentity]) -> AnswerForm:
    """Answers of requests for embeddings, which have no id."""

    def form(result: ToolResult, *, sent: StreamedParts) -> bytes:  # noqa: ARG001 - nothing is sent before
        return embeddings_answer(result)

    return form


def stream_forms(identity: Callable[[], AnswerIdentity], *, include_usage: bool) -> tuple[AnswerForm, PieceForm]:
    """Answers of requests with ``stream``: the end of the stream, and a piece of it."""

    def end(result: ToolResult, *, sent: StreamedParts) -> bytes:
        first = sent == StreamedParts()
        return last_events(result, identity(), sent=sent, first=first, include_usage=include_usage)

    def encode(piece: str | AnswerPiece, first: bool) -> bytes:
        return piece_event(identity(), piece, first=first, include_usage=include_usage)

    return end, encode
