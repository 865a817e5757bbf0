"""What a tool is, the registry, and the daemon's own tools, one file each.

Who calls it: dispatch, which binds, runs and answers; and packages that bring tools of their own. What it knows: the
providers' neutral request and the catalogue. What it must never know: sockets, sessions, limits, who waits.
"""

from .asking import ANSWER_TOKENS, estimate_request, estimate_tokens
from .binding import bind
from .bound import BoundValue, mask_of, read_values, with_bound
from .bound_settings import Binding, BindingError, anchored_table, read_bindings, read_source_bindings
from .composing import named_by, pipelines_in
from .context import CHILD_NAME, DaemonView, Operation, ToolContext
from .conversation import MAX_STATE_BYTES, Conversation, Turn
from .files import BinaryFile, FileAccess
from .instructions import instructions
from .json_schema import JsonSchema
from .known_call import CallState, KnownCall
from .mask import MASKED, Mask
from .offer import Offer, Selection
from .registry import Registry, find_tools, load_registry
from .result import content, described
from .results import RESULT_FORMATS, ResultFile, ResultFormat, Results
from .simulated import EFFECT_LOG, simulated_tools
from .stubs import StubSet, module_for
from .tool import TOOL_NAME, Answer, Arguments, Tool, tool
from .toolsets import (
    DEFAULT_TOOLSET,
    FULL_TOOLSET,
    Presentation,
    Toolset,
    ToolsetError,
    read_toolsets,
    shipped_toolsets,
)
from .workflow import workflows_in

__all__ = [
    "ANSWER_TOKENS",
    "CHILD_NAME",
    "DEFAULT_TOOLSET",
    "EFFECT_LOG",
    "FULL_TOOLSET",
    "MASKED",
    "MAX_STATE_BYTES",
    "RESULT_FORMATS",
    "TOOL_NAME",
    "Answer",
    "Arguments",
    "BinaryFile",
    "Binding",
    "BindingError",
    "BoundValue",
    "CallState",
    "Conversation",
    "DaemonView",
    "FileAccess",
    "JsonSchema",
    "KnownCall",
    "Mask",
    "Offer",
    "Operation",
    "Presentation",
    "Registry",
    "ResultFile",
    "ResultFormat",
    "Results",
    "Selection",
    "StubSet",
    "Tool",
    "ToolContext",
    "Toolset",
    "ToolsetError",
    "Turn",
    "anchored_table",
    "bind",
    "content",
    "described",
    "estimate_request",
    "estimate_tokens",
    "find_tools",
    "instructions",
    "load_registry",
    "mask_of",
    "module_for",
    "named_by",
    "pipelines_in",
    "read_bindings",
    "read_source_bindings",
    "read_toolsets",
    "read_values",
    "shipped_toolsets",
    "simulated_tools",
    "tool",
    "with_bound",
    "workflows_in",
]
