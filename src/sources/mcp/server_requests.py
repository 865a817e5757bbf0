"""Bounds the open requests of a server.

The SDK keeps a request in memory until the server has read the answer, which the server may delay while it sends more
requests. Importing this module takes a second, because of the SDK.
"""

from collections import deque
from typing import Final

import msgspec
import structlog
from mcp_types import JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, RequestId

MAX_OPEN_REQUESTS: Final = 1000
"""The maximum number of open requests, as of questions of all calls (``question_table.MAX_OPEN``)."""
MAX_OPEN_BYTES: Final = 32 * 1024 * 1024
"""The maximum size, as JSON, of the parameters of all open requests. One question has at most
``client_question.MAX_QUESTION_BYTES``.
"""

_log = structlog.get_logger("toold.sources.mcp")


class ServerRequests:
    """The open requests of one session."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._sizes: dict[RequestId, deque[int]] = {}
        self._open = 0
        self._bytes = 0
        self._has_dropped = False

    def __repr__(self) -> str:
        return f"<ServerRequests of {self._source} open={self._open}>"

    def admits(self, message: JSONRPCMessage) -> bool:
        """Counts a message of the server. Returns False for a request beyond the limit, which is then not answered."""
        if isinstance(message, JSONRPCNotification):
            if message.method == "notifications/cancelled" and message.params is not None:
                self.answered(message.params.get("requestId"))
            return True
        if not isinstance(message, JSONRPCRequest):
            return True
        try:
            size = len(msgspec.json.encode(message.params))
        except (TypeError, ValueError, RecursionError):
            return False
        if self._open >= MAX_OPEN_REQUESTS or self._bytes + size > MAX_OPEN_BYTES:
            if not self._has_dropped:
                _log.warning("server request dropped: too many open requests", source=self._source)
            self._has_dropped = True
            return False
        self._sizes.setdefault(message.id, deque()).append(size)
        self._open += 1
        self._bytes += size
        return True

    def answered(self, request_id: object) -> None:
        """Records that the server has read the answer to a request, or has cancelled the request."""
        if not isinstance(request_id, int | str) or (sizes := self._sizes.get(request_id)) is None:
            return
        self._open -= 1
        self._bytes -= sizes.popleft()
        if not sizes:
            del self._sizes[request_id]
