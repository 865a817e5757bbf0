"""One ``tools/call`` on its way: the ``CallPort`` that turns its reports and its answer into messages."""

import asyncio
from collections.abc import Sequence
from typing import Final

from ....protocol.mcp import json_rpc
from ....protocol.mcp.json_rpc import JsonRpcId
from ....protocol.mcp.mcp_call import ProgressCounter
from ....protocol.mcp.mcp_result import call_result
from ....protocol.mcp.mcp_revision import REVISIONS
from ....protocol.mcp.request_envelope import RequestEnvelope
from ....protocol.tool_call import Progress, ToolResult
from ...dispatch import DisconnectedPort, RunningCall

ALIVE: Final = b": the call is still at work\n\n"
"""A line of an SSE stream that clients skip, and that proxies take for a sign of life."""


class McpExchange:
    """What a call has to say to its client, until somebody sends it. Only the latest report waits: of a reader that is
    behind, the reports in between are dropped.
    """

    def __init__(self, request_id: JsonRpcId, envelope: RequestEnvelope) -> None:
        self.answer: bytes | None = None
        """The terminal answer, once there is one."""
        self.gone = False
        """The client hung up."""
        self.outlasted = False
        """The call runs for so long that its client is to be given a task."""
        self.news = asyncio.Event()
        """Something of the above, or a report."""
        self._id = request_id
        self._revision = envelope.revision
        self._token = envelope.progress_token
        self._counter = ProgressCounter()
        self._progress: Progress | None = None
        self._alive = False

    def __repr__(self) -> str:
        return f"<McpExchange {self._id!r}>"

    def reports(self) -> bytes:
        """What is to be sent before the answer, as events of an SSE stream; it is told once."""
        progress, alive = self._progress, self._alive
        self._progress, self._alive = None, False
        if progress is not None and self._token is not None:
            params = self._counter.count(progress, self._token)
            return json_rpc.event(json_rpc.notification("notifications/progress", params))
        return ALIVE if alive else b""

    def hang_up(self, _: object = None) -> None:
        """The client is gone."""
        self.gone = True
        self.news.set()

    def outlast(self) -> None:
        """The call is not done yet, and its client takes a task for an answer."""
        self.outlasted = True
        self.news.set()

    def refuse(self, result: ToolResult) -> None:
        """The call was answered before it ran."""
        self._settle(json_rpc.answer(self._id, call_result(result, self._revision)))

    # --- what dispatch asks of a CallPort ----------------------------------------------------------------------------

    def render(self, _running: RunningCall, result: ToolResult) -> bytes:
        return json_rpc.answer(self._id, call_result(result, self._revision))

    async def deliver(self, _running: RunningCall, answer: bytes) -> None:
        self._settle(answer)

    def progress(self, _running: RunningCall, progress: Progress) -> bool:
        if self._token is None:
            return False
        self._progress = progress
        self.news.set()
        return True

    def chunk(self, running: RunningCall, text: str) -> None:
        pass

    def heartbeat(self, calls: Sequence[RunningCall], now: float) -> None:
        for call in calls:  # there is one
            self._progress = self._progress or call.heartbeat(now)
        self._alive = True
        self.news.set()

    def _settle(self, answer: bytes) -> None:
        self.answer = answer
        self.news.set()


class McpAbsentPort(DisconnectedPort):
    """The port of calls whose client has hung up, or was given a task."""

    def render(self, _running: RunningCall, result: ToolResult) -> bytes:
        return json_rpc.answer(0, call_result(result, _NEWEST))


_NEWEST: Final = next(iter(REVISIONS.values()))
ABSENT_PORT: Final = McpAbsentPort()
