"""Tools that make calls: one and shape its result, several in one, one over many items; and finding a tool first."""

from .batch import execute_batch
from .execute_code import execute_code
from .execute_tool import execute_tool
from .finding import describe_tools, search_tools
from .pipeline import execute_pipeline
from .ranking import ToolIndex
from .read_result import read_result
from .saved import named_by, pipelines_in

__all__ = [
    "ToolIndex",
    "describe_tools",
    "execute_batch",
    "execute_code",
    "execute_pipeline",
    "execute_tool",
    "named_by",
    "pipelines_in",
    "read_result",
    "search_tools",
]
