"""The ``CallPort`` of the short calls that A2A's requests make: one that detaches an agent, one that decides."""

import asyncio

from ....protocol.tool_call import ToolResult, encode_result
from ...dispatch import DisconnectedPort, RunningCall


class A2AExchange(DisconnectedPort):
    """Takes the answer of one call. A later request with the same message replaces this one, and both
    get the answer."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[ToolResult] = asyncio.get_running_loop().create_future()
        self.shared = False
        """Whether another request gets the same answer."""
        self._result: ToolResult | None = None

    def render(self, _call: RunningCall, result: ToolResult) -> bytes:
        self._result = result
        return encode_result(result)

    async def deliver(self, call: RunningCall, answer: bytes) -> None:  # noqa: ARG002 - both have the result
        if self._result is not None:
            self.settle(self._result)

    def settle(self, result: ToolResult) -> None:
        """Sets the answer."""
        if not self.answer.done():
            self.answer.set_result(result)

    def pass_on_to(self, earlier: "A2AExchange") -> None:
        """Also gives the answer to an earlier request with the same message."""
        self.shared = earlier.shared = True
        self.answer.add_done_callback(lambda answer: earlier.settle(answer.result()))


class A2AAbsentPort(DisconnectedPort):
    """The port of sessions without a request."""

    def render(self, _call: RunningCall, result: ToolResult) -> bytes:
        return encode_result(result)
