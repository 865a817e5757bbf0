"""MCP over Streamable HTTP, and over HTTP with SSE: converts its messages to calls, and results to messages.

The HTTP port uses it. It depends on the router, MCP's revisions and ASGI, but not on limits, timeouts or tools.
"""

from .mcp_server import McpServer
from .sse_server import SseServer

__all__ = ["McpServer", "SseServer"]
