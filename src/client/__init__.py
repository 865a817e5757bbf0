"""The client library: ``MCPWebSocketClient`` and what it returns and raises (docs/client.md)."""

from .answers import OnChunk, OnProgress
from .client import FEATURES, MCPWebSocketClient
from .endpoint import Endpoint
from .errors import ConnectionFailedError, ConnectionLostError
from .records import CallResult

__all__ = [
    "FEATURES",
    "CallResult",
    "ConnectionFailedError",
    "ConnectionLostError",
    "Endpoint",
    "MCPWebSocketClient",
    "OnChunk",
    "OnProgress",
]
