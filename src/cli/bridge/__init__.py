"""MCP over stdio: an editor's lines on one side, one resuming WebSocket to the daemon on the other.

Who calls it: ``toold mcp``. What it knows: MCP's messages, the client library, where the daemon announces itself. What
it must never know: limits, time-outs, what a tool does.
"""

from .daemon_starter import DaemonStarter
from .line_channel import LineChannel
from .stdio_bridge import StdioBridge

__all__ = ["DaemonStarter", "LineChannel", "StdioBridge"]
