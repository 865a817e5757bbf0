"""What a tool is, the registry, and the daemon's own tools, one file each.

Who calls it: dispatch, which binds, runs and answers; and packages that bring tools of their own. What it knows: the
providers' neutral request and the catalogue. What it must never know: sockets, sessions, limits, who waits.
"""

from .asking import estimate_tokens
from .binding import bind
from .context import DaemonView, Operation, ToolContext
from .conversation import MAX_STATE_BYTES, Conversation, Turn
from .files import FileAccess
from .registry import Registry, load_registry
from .result import content
from .simulated import EFFECT_LOG, simulated_tools
from .tool import Answer, Arguments, Tool, tool

__all__ = [
    "EFFECT_LOG",
    "MAX_STATE_BYTES",
    "Answer",
    "Arguments",
    "Conversation",
    "DaemonView",
    "FileAccess",
    "Operation",
    "Registry",
    "Tool",
    "ToolContext",
    "Turn",
    "bind",
    "content",
    "estimate_tokens",
    "load_registry",
    "simulated_tools",
    "tool",
]
