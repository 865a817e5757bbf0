"""A transport's port that records what it is sent."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from toold.daemon.dispatch import RunningCall
from toold.protocol.questions.question_table import OpenQuestion
from toold.protocol.tool_call import AnswerPiece, Progress, RequestId, ToolResult, decode_result, encode_result


@dataclass(eq=False)
class FakePort:
    """A caller that records what it is sent."""

    answered: ClassVar[list[RunningCall]] = []
    """The answered calls of all ports, for ``one_answer_per_call``."""

    answers: dict[RequestId, ToolResult] = field(default_factory=dict)
    heard: list[tuple[RequestId, Progress]] = field(default_factory=list)
    chunks: list[tuple[RequestId, str]] = field(default_factory=list)
    pieces: list[AnswerPiece] = field(default_factory=list)
    questions: list[OpenQuestion] = field(default_factory=list)
    closed: list[OpenQuestion] = field(default_factory=list)
    heartbeats: int = 0
    reading: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.reading.set()

    def render(self, running: RunningCall, result: ToolResult) -> bytes:
        return encode_result(result)

    async def deliver(self, running: RunningCall, answer: bytes) -> None:
        await self.reading.wait()
        self.answered.append(running)
        self.answers[running.request.request_id] = decode_result(answer)

    def progress(self, running: RunningCall, progress: Progress) -> bool:
        self.heard.append((running.request.request_id, progress))
        return True

    def chunk(self, running: RunningCall, text: str) -> None:
        self.chunks.append((running.request.request_id, text))

    def piece(self, running: RunningCall, piece: AnswerPiece) -> None:
        self.pieces.append(piece)

    def question(self, running: RunningCall, entry: OpenQuestion) -> None:
        self.questions.append(entry)

    def question_closed(self, running: RunningCall, entry: OpenQuestion) -> None:
        self.closed.append(entry)

    def heartbeat(self, calls: Sequence[RunningCall], now: float) -> None:
        self.heartbeats += 1
        self.heard.extend((call.request.request_id, call.heartbeat(now)) for call in calls)
