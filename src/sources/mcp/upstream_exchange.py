"""The exchange of one call with an upstream server, and the JSON-RPC error codes of such exchanges.

Does not import the MCP SDK, which takes a second: the daemon imports it only if it has such a source.
"""

from dataclasses import dataclass
from typing import Final

from ...protocol.json_pieces import MAX_VALUES
from ...protocol.json_rpc import HEADER_MISMATCH, INVALID_PARAMS, METHOD_NOT_FOUND, PARSE_ERROR

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
"""The codes that replace skipped answers; no server should use them."""
TOO_MANY_VALUES: Final = f"it has more than {MAX_VALUES:,} values"
"""Why an answer is not parsed: that would hold up the event loop."""


@dataclass(slots=True)
class UpstreamExchange:
    """The HTTP exchange of one call."""

    deadline: float | None = None
    """By the loop's clock; the answer is not read past it."""
    sent: bool = False
    """The request may have reached the server."""
    status: int | None = None
    retry_after: str | None = None
    forbidden: str | None = None
    """Why the address is forbidden."""
    broken: bool = False
    """The connection failed."""
    too_large: bool = False
    unreadable: str | None = None
    """Why the answer cannot be read."""

    def mark_sent(self) -> None:
        self.sent = True
