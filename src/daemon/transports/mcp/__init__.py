"""MCP over Streamable HTTP: its messages to calls, and the calls' answers to messages.

Who calls it: the side port. What it knows: the router, MCP's revisions, ASGI. What it must never know: limits,
time-outs, what a tool does.
"""

from .mcp_server import McpOptions, McpServer

__all__ = ["McpOptions", "McpServer"]
