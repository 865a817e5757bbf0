"""The client library: ``MCPWebSocketClient``, its results and its errors (docs/client.md)."""

from .call_result import CallOutcome, CallResult, result_of
from .client import MCPWebSocketClient
from .client_errors import ConnectionFailedError, ConnectionLostError
from .daemon_endpoint import local_token, read_announcement
from .pending_answers import OnChunk, OnNotification, OnProgress, OnToolsChanged, TextChunk
from .question_callbacks import OnQuestion

__all__ = [
    "CallOutcome",
    "CallResult",
    "ConnectionFailedError",
    "ConnectionLostError",
    "MCPWebSocketClient",
    "OnChunk",
    "OnNotification",
    "OnProgress",
    "OnQuestion",
    "OnToolsChanged",
    "TextChunk",
    "local_token",
    "read_announcement",
    "result_of",
]
