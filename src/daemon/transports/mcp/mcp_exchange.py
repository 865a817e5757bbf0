"""One ``tools/call`` in progress: the ``CallPort`` that converts progress and the answer to messages."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any, Final

from ....protocol import json_rpc
from ....protocol.json_rpc import JsonRpcId, MessageProblem, RpcRequest
from ....protocol.long_texts import encode_answer
from ....protocol.mcp.catalog_result import catalog_answer
from ....protocol.mcp.mcp_call import ProgressCounter, missing_capability
from ....protocol.mcp.mcp_result import call_result
from ....protocol.mcp.mcp_revision import REVISIONS, McpRevision
from ....protocol.mcp.request_envelope import RequestEnvelope
from ....protocol.questions.question_table import OpenQuestion
from ....protocol.tool_call import AnswerPiece, Progress, ToolResult
from ....serving import SLOW_READER_BYTES
from ...dispatch import DisconnectedPort, RunningCall

ALIVE: Final = b": the call is still running\n\n"
"""An SSE comment, which clients ignore, so that proxies do not close the connection."""


class McpExchange:
    """The pending messages of a call to its client. Only the latest progress is pending: a slow reader misses earlier
    ones.
    """

    def __init__(self, request_id: JsonRpcId, envelope: RequestEnvelope) -> None:
        self._id = request_id
        self._revision = envelope.revision
        self._token = envelope.progress_token
        self.responses: dict[str, Any] = {}
        """The unused answers from the request, by the ids of the questions."""

    # Most calls do not use the following, so these are attributes of the class until they change.

    answer: bytes | None = None
    """The answer, once the call has ended."""
    problem: MessageProblem | None = None
    """The error that is its answer; set no later than ``answer``."""
    disconnected = False
    """Whether the client has disconnected."""
    cancelled = False
    """Whether the client has cancelled the request, so that it expects no answer."""
    overdue = False
    """Whether the call has run long enough for its client to get a task."""
    asked = False
    """Whether the call has asked a question since this was last reset."""
    _changed = False
    # Created when the first waiter waits for a change.
    _wakes: asyncio.Event | None = None
    _counter: ProgressCounter | None = None
    _progress: Progress | None = None
    _alive = False
    # Requests to the client and their cancellations, in the revisions that have them.
    _requests: tuple[bytes, ...] = ()
    # Set when the POST is done; None unless a large answer waits for that.
    _sent: asyncio.Event | None = None
    _closed = False

    def __repr__(self) -> str:
        return f"<McpExchange {self._id!r}>"

    async def wait_changed(self) -> None:
        """Waits until one of the attributes above has changed, or a report has arrived, since this method last
        returned."""
        if not self._changed:
            self._wakes = self._wakes or asyncio.Event()
            self._wakes.clear()
            await self._wakes.wait()
        self._changed = False

    def reports(self) -> bytes:
        """Returns and clears the events to send before the answer."""
        progress, alive, requests = self._progress, self._alive, b"".join(self._requests)
        self._progress, self._alive, self._requests = None, False, ()
        if progress is not None and self._token is not None:
            self._counter = self._counter or ProgressCounter()
            params = self._counter.count(progress, self._token)
            return requests + json_rpc.event(json_rpc.notification("notifications/progress", params))
        return requests or (ALIVE if alive else b"")

    def set_disconnected(self, _: object = None) -> None:
        """Records that the client disconnected."""
        self.disconnected = True
        self._note_change()

    def set_overdue(self) -> None:
        """Records that the call is still running, and that its client accepts a task."""
        self.overdue = True
        self._note_change()

    def close(self) -> None:
        """Reports that the POST is done: the answer is sent, or no client waits for it."""
        self._closed = True
        if self._sent is not None:
            self._sent.set()

    def refuse(self, result: ToolResult) -> None:
        """Sets the answer of a call that did not run."""
        self._settle(self._rendered(result))

    # --- CallPort ----------------------------------------------------------------------------------------------------

    def render(self, _running: RunningCall, result: ToolResult) -> bytes:
        return self._rendered(result)

    def deliver(self, _running: RunningCall, answer: bytes) -> Awaitable[None] | None:
        self._settle(answer)
        return None if len(answer) <= SLOW_READER_BYTES or self._closed else self._wait_sent()

    def progress(self, _running: RunningCall, progress: Progress) -> bool:
        if self._token is None:
            return False
        self._progress = progress
        self._note_change()
        return True

    def chunk(self, running: RunningCall, text: str) -> None:
        pass

    def piece(self, running: RunningCall, piece: AnswerPiece) -> None:
        pass

    def question(self, _running: RunningCall, entry: OpenQuestion) -> None:
        self.asked = True
        if not self._revision.stateless:
            self._requests += (question_event(entry),)
        self._note_change()

    def question_closed(self, _running: RunningCall, entry: OpenQuestion) -> None:
        if not self._revision.stateless:
            reason = "The answer is not needed any longer."
            params = {"requestId": entry.token, "reason": reason}
            self._requests += (json_rpc.event(json_rpc.notification("notifications/cancelled", params)),)
            self._note_change()

    def heartbeat(self, calls: Sequence[RunningCall], now: float) -> None:
        for call in calls:  # always exactly one
            self._progress = self._progress or call.heartbeat(now)
        self._alive = True
        self._note_change()

    def _rendered(self, result: ToolResult) -> bytes:
        self.problem = missing_capability(result.error, self._revision)
        if self.problem is not None:
            return json_rpc.failure(self._id, self.problem)
        return _call_answer(self._id, result, self._revision)

    async def _wait_sent(self) -> None:
        self._sent = asyncio.Event()
        await self._sent.wait()

    def _note_change(self) -> None:
        self._changed = True
        if self._wakes is not None:
            self._wakes.set()

    def _settle(self, answer: bytes) -> None:
        self.answer = answer
        self._note_change()


class CatalogExchange(McpExchange):
    """A request about resources or prompts in progress, which runs as a call."""

    def __init__(self, request: RpcRequest, envelope: RequestEnvelope) -> None:
        super().__init__(request.id, envelope)
        self._request = request

    def _rendered(self, result: ToolResult) -> bytes:
        request = self._request
        answer = catalog_answer(request.method, request.params, result, self._revision)
        if isinstance(answer, MessageProblem):
            self.problem = answer
            return json_rpc.failure(request.id, answer)
        return json_rpc.answer(request.id, answer)


def question_event(entry: OpenQuestion) -> bytes:
    """A question as a request to the client, in the revisions that have them. Its id is the question's token."""
    return json_rpc.event(json_rpc.request(entry.token, entry.question.method, entry.question.params))


def _call_answer(request_id: JsonRpcId, result: ToolResult, revision: McpRevision) -> bytes:
    return encode_answer(result, lambda result: json_rpc.answer(request_id, call_result(result, revision)))


class McpAbsentPort(DisconnectedPort):
    """The port of calls whose client has disconnected or got a task."""

    def render(self, _running: RunningCall, result: ToolResult) -> bytes:
        return _call_answer(0, result, _NEWEST)


_NEWEST: Final = next(iter(REVISIONS.values()))
ABSENT_PORT: Final = McpAbsentPort()
