"""MCP over stdio: lines from an editor on one side, one resuming WebSocket connection to the daemon on the other.

Used by ``toold mcp``. It knows MCP's messages, the client library and where the daemon publishes its address; it knows
nothing of limits, timeouts and what tools do.
"""

from .daemon_starter import DaemonStarter
from .line_channel import LineChannel
from .stdio_bridge import StdioBridge

__all__ = ["DaemonStarter", "LineChannel", "StdioBridge"]
