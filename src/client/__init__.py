"""The client library: ``MCPWebSocketClient`` and what it returns and raises (docs/client.md)."""

from .answers import OnChunk, OnProgress
from .client import FEATURES, MCPWebSocketClient
from .endpoint import Announcement, Endpoint, local_token, read_announcement
from .errors import ConnectionFailedError, ConnectionLostError
from .records import CallResult

__all__ = [
    "FEATURES",
    "Announcement",
    "CallResult",
    "ConnectionFailedError",
    "ConnectionLostError",
    "Endpoint",
    "MCPWebSocketClient",
    "OnChunk",
    "OnProgress",
    "local_token",
    "read_announcement",
]
