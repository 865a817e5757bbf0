"""The client library under the name that metric scripts import: ``from mcp_client import MCPWebSocketClient``."""

from toold.client import CallResult, ConnectionFailedError, ConnectionLostError, MCPWebSocketClient

__all__ = ["CallResult", "ConnectionFailedError", "ConnectionLostError", "MCPWebSocketClient"]
