"""The exchange of one call with an upstream server, and the JSON-RPC error codes of such exchanges.

Does not import the MCP SDK, which takes a second: the daemon imports it only if it has such a source.
"""

from dataclasses import dataclass
from typing import Final

from ...protocol.mcp.json_rpc import HEADER_MISMATCH, INVALID_PARAMS, METHOD_NOT_FOUND, PARSE_ERROR

__all__ = [
    "CONNECTION_CLOSED",
    "HEADER_MISMATCH",
    "INVALID_PARAMS",
    "METHOD_NOT_FOUND",
    "PARSE_ERROR",
    "REQUEST_TIMEOUT",
    "TOO_LONG",
    "UNREADABLE",
    "UpstreamExchange",
]

CONNECTION_CLOSED: Final = -32000
REQUEST_TIMEOUT: Final = -32001
"""The codes of the SDK's own errors."""
TOO_LONG: Final = -32091
UNREADABLE: Final = -32092
"""The codes that replace skipped answers; no server should use them."""


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
