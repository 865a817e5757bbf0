"""The setting ``cache_s`` of a source: the tools whose results are cached, and for how long."""

import math
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any, Final

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from ..tools import Tool

MAX_CACHE_S: Final = 86_400
"""The maximum time for which a result is cached: a day."""
MAX_CACHE_GLOBS: Final = 100
"""The maximum number of patterns. Each tool is compared with each pattern."""
_MAX_GLOB_CHARS: Final = 200


def _cache_times(value: Any) -> tuple[tuple[str, float], ...]:
    if isinstance(value, tuple):
        return value
    table = value if isinstance(value, Mapping) else {"*": value}
    if not 0 < len(table) <= MAX_CACHE_GLOBS or not all(0 < len(glob) <= _MAX_GLOB_CHARS for glob in table):
        raise PydanticCustomError(
            "cache_times",
            "must have 1 to {globs} patterns of tools, of up to {chars} characters",
            {"globs": MAX_CACHE_GLOBS, "chars": _MAX_GLOB_CHARS},
        )
    if not all(_is_time(seconds) for seconds in table.values()):
        raise PydanticCustomError(
            "cache_times",
            "must be seconds, 0 to {most}, or a table of them by patterns of tools, such as {example}",
            {"most": MAX_CACHE_S, "example": '{{ "search*" = 60 }}'},
        )
    return tuple((glob, float(seconds)) for glob, seconds in table.items())


def _is_time(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and 0 <= value <= MAX_CACHE_S


CacheTimes = Annotated[tuple[tuple[str, float], ...], BeforeValidator(_cache_times)]
"""Globs of tool names, each with the seconds for which results are cached. The first glob that matches a tool
applies.
"""


def with_cache(tools: Sequence[Tool], times: CacheTimes) -> tuple[Tool, ...]:
    """The tools of a source; each read-only tool with a matching glob gets its cache time."""
    return tuple(tool.cached_for(seconds) if (seconds := _seconds_of(tool, times)) else tool for tool in tools)


def _seconds_of(tool: Tool, times: CacheTimes) -> float:
    if not tool.annotations.read_only_hint or tool.annotations.destructive_hint or tool.orchestration:
        return 0.0
    return next((seconds for glob, seconds in times if fnmatchcase(tool.name, glob)), 0.0)
