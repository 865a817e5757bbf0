"""What a tool is, the registry, and the daemon's own tools, one file each.

Who calls it: dispatch, which binds, runs and answers; and packages that bring tools of their own. What it knows: the
providers' neutral request and the catalogue. What it must never know: sockets, sessions, limits, who waits.
"""

from .binding import bind
from .context import Completion, CompletionRequest, DaemonView, Delta, OnDelta, ToolContext
from .files import FileAccess, TextFile
from .registry import ENTRY_POINT_GROUP, Registry, load_registry
from .result import content
from .tool import Answer, Arguments, Tool, ToolFunction, tool

__all__ = [
    "ENTRY_POINT_GROUP",
    "Answer",
    "Arguments",
    "Completion",
    "CompletionRequest",
    "DaemonView",
    "Delta",
    "FileAccess",
    "OnDelta",
    "Registry",
    "TextFile",
    "Tool",
    "ToolContext",
    "ToolFunction",
    "bind",
    "content",
    "load_registry",
    "tool",
]
