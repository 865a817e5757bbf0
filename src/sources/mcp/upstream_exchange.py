"""The exchange of one call with an upstream server, and the JSON-RPC error codes of such exchanges.

This module does not import the MCP SDK, which takes a second: the daemon imports the SDK only if it has an MCP source.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Final

from ...protocol.error_codes import CallError
from ...protocol.json_pieces import MAX_VALUES
from ...protocol.json_rpc import HEADER_MISMATCH, INVALID_PARAMS, METHOD_NOT_FOUND, PARSE_ERROR
from .upstream_questions import CallQuestions

__all__ = [
    "CONNECTION_CLOSED",
    "HEADER_MISMATCH",
    "INVALID_PARAMS",
    "METHOD_NOT_FOUND",
    "PARSE_ERROR",
    "REQUEST_TIMEOUT",
    "TOO_LONG",
    "TOO_MANY_VALUES",
    "UNREADABLE",
    "UpstreamExchange",
]

CONNECTION_CLOSED: Final = -32000
REQUEST_TIMEOUT: Final = -32001
"""The codes of the SDK's own errors."""
TOO_LONG: Final = -32091
UNREADABLE: Final = -32092
"""The codes of errors that replace skipped answers. Servers should not use them."""
TOO_MANY_VALUES: Final = f"it has more than {MAX_VALUES:,} values"
"""The reason why an answer that would block the event loop is not parsed."""


@dataclass(slots=True, eq=False)
class UpstreamExchange:
    """The HTTP exchange of one call."""

    deadline: float | None = None
    """The deadline of the answer, by the loop's clock."""
    sent: bool = False
    """Whether the request may have reached the server."""
    status: int | None = None
    retry_after: str | None = None
    forbidden: str | None = None
    """Why the address is forbidden."""
    refused: CallError | str | None = None
    """Why no token was sent or accepted."""
    broken: bool = False
    """Whether the connection failed."""
    too_large: bool = False
    unreadable: str | None = None
    """Why the answer cannot be read."""
    questions: CallQuestions | None = None
    """Asks the server's questions during the call."""
    _timeouts: list[asyncio.Timeout] = field(default_factory=list)
    _open_questions: int = 0
    _left_s: float | None = None

    @asynccontextmanager
    async def timeout(self) -> AsyncIterator[None]:
        """Ends the block at the deadline. The deadline moves while a question is open.

        Raises:
            TimeoutError: the deadline passed.
        """
        async with asyncio.timeout_at(self.deadline) as timeout:
            self._timeouts.append(timeout)
            try:
                yield
            finally:
                self._timeouts.remove(timeout)

    @contextmanager
    def clock_stopped(self) -> Iterator[None]:
        """Stops the deadline's clock during the block, while a question waits for its answer."""
        clock = asyncio.get_running_loop().time
        self._open_questions += 1
        if self._open_questions == 1 and self.deadline is not None:
            self._left_s = self.deadline - clock()
            self._move_deadline(None)
        try:
            yield
        finally:
            self._open_questions -= 1
            if self._open_questions == 0 and self._left_s is not None:
                self._move_deadline(clock() + self._left_s)

    def extend(self, seconds: float) -> None:
        """Moves the deadline to ``seconds`` from now, if that is later and no question is open."""
        if self.deadline is not None:
            deadline = asyncio.get_running_loop().time() + seconds
            if deadline > self.deadline:
                self._move_deadline(deadline)

    def _move_deadline(self, deadline: float | None) -> None:
        self.deadline = deadline
        for timeout in self._timeouts:
            if not timeout.expired():
                timeout.reschedule(deadline)

    def mark_sent(self) -> None:
        self.sent = True
