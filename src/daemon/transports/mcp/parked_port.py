"""The port of a call between two rounds of a multi-round-trip request: no request of its client is open."""

from collections.abc import Callable

from ....protocol.questions.question_table import OpenQuestion
from ...dispatch import RunningCall
from .mcp_exchange import McpAbsentPort


class ParkedPort(McpAbsentPort):
    """Reports that the call has ended, or that no answer came in time, so that its client has probably disconnected."""

    def __init__(self, on_ended: Callable[[], None], on_abandoned: Callable[[], None]) -> None:
        self._on_ended = on_ended
        self._on_abandoned = on_abandoned

    async def deliver(self, _call: RunningCall, _answer: bytes) -> None:
        self._on_ended()

    def question_closed(self, _call: RunningCall, _entry: OpenQuestion) -> None:
        self._on_abandoned()
