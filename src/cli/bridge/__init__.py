"""MCP over stdio: lines from an editor on one side, one resuming WebSocket connection to the daemon on the other.

Used by ``toold mcp``. It depends on MCP's messages, the client library and the daemon's address file, but not on
limits, timeouts or tools.
"""

from .daemon_starter import DaemonStarter
from .line_channel import LineChannel
from .stdio_bridge import StdioBridge

__all__ = ["DaemonStarter", "LineChannel", "StdioBridge"]
