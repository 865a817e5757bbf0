"""The client library: ``MCPWebSocketClient`` and what it returns and raises (docs/client.md)."""

from .answers import OnChunk, OnProgress, OnToolsChanged
from .client import MCPWebSocketClient
from .endpoint import local_token, read_announcement
from .errors import ConnectionFailedError, ConnectionLostError
from .records import CallResult

__all__ = [
    "CallResult",
    "ConnectionFailedError",
    "ConnectionLostError",
    "MCPWebSocketClient",
    "OnChunk",
    "OnProgress",
    "OnToolsChanged",
    "local_token",
    "read_announcement",
]
