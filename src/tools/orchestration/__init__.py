"""Tools that call other tools, shape results, or find tools."""

from ..tool_ranking import ToolIndex
from .call_retry import RetryPolicy, cannot_wait
from .detach_option import detach
from .execute_batch import execute_batch
from .execute_code import execute_code
from .execute_pipeline import execute_pipeline
from .execute_tool import execute_tool
from .read_result import read_result
from .run_limits import CALL_MARGIN_S, time_left
from .saved_pipelines import named_by, pipelines_in
from .tool_search import describe_tools, search_tools

__all__ = [
    "CALL_MARGIN_S",
    "RetryPolicy",
    "ToolIndex",
    "cannot_wait",
    "describe_tools",
    "detach",
    "execute_batch",
    "execute_code",
    "execute_pipeline",
    "execute_tool",
    "named_by",
    "pipelines_in",
    "read_result",
    "search_tools",
    "time_left",
]
