"""Implementations of ``CallPort`` for callers that need only the result, without progress or chunks."""

import asyncio
from collections.abc import Awaitable, Callable

from ...protocol.tool_call import ToolResult, encode_result
from .running_call import DisconnectedPort, RunningCall


class AbsentResultPort(DisconnectedPort):
    """The port of calls whose caller has disconnected: the encoded result stays cached for a repeat of the call."""

    def render(self, _call: RunningCall, result: ToolResult) -> bytes:
        return encode_result(result)


class AwaitedResultPort(AbsentResultPort):
    """The port of one call whose caller awaits ``answer``. Create it in the event loop."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[ToolResult] = asyncio.get_running_loop().create_future()
        """The result, even if the call failed."""
        self.shared = False
        """Whether another request gets the same answer."""
        self._result: ToolResult | None = None

    def render(self, call: RunningCall, result: ToolResult) -> bytes:
        self._result = result
        return super().render(call, result)

    async def deliver(self, call: RunningCall, answer: bytes) -> None:  # noqa: ARG002 - the result is delivered as it is
        if self._result is not None:
            self.settle(self._result)

    def settle(self, result: ToolResult) -> None:
        """Sets the answer, unless it is set or the wait was cancelled."""
        if not self.answer.done():
            self.answer.set_result(result)

    def pass_on_to(self, earlier: "AwaitedResultPort") -> None:
        """Also gives the answer to the port of an earlier request, which this one replaces."""
        self.shared = earlier.shared = True
        self.answer.add_done_callback(lambda answer: earlier.settle(answer.result()))


class DetachedPort(DisconnectedPort):
    """The ``CallPort`` of detached calls: stores their answers, and reports their changes."""

    def __init__(self) -> None:
        self.on_change: Callable[[str], None] | None = None
        """Called with the id of a detached call that has paused, continued or ended, once the change is stored."""
        self.on_chunk: Callable[[str, str], None] | None = None
        """Called with the id of a detached call and a piece of its answer, if its session streams."""
        self.on_resume: Callable[[str], Awaitable[None]] | None = None
        """Called with the id of a detached call before it runs again, possibly for the first time in this process. If
        it raises a ``CallError``, the call is not resumed.
        """

    def render(self, _call: RunningCall, result: ToolResult) -> bytes:
        return encode_result(result)

    async def deliver(self, call: RunningCall, answer: bytes) -> None:  # noqa: ARG002 - a stored answer has no reader
        self.changed(call.id)

    def chunk(self, call: RunningCall, text: str) -> None:
        if self.on_chunk is not None:
            self.on_chunk(call.id, text)

    async def resuming(self, call_id: str) -> None:
        """Reports that a call is about to run again.

        Raises:
            CallError: it cannot be resumed now.
        """
        if self.on_resume is not None:
            await self.on_resume(call_id)

    def changed(self, call_id: str) -> None:
        """Reports a change."""
        if self.on_change is not None:
            self.on_change(call_id)
