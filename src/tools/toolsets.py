"""Toolsets: the tools that a session may call, and their presentation. Pure, except for reading the shipped toolsets.

The shipped toolsets are in toolsets.toml; the operator's are tables of the same form in toold.toml.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Final, Literal, get_args

from ..protocol.name_suggestions import close_names, did_you_mean
from .result_text import ResultText

DEFAULT_TOOLSET: Final = "standard"
"""The toolset of sessions that request none, unless the operator sets another."""
FULL_TOOLSET: Final = "full"
"""All tools; it cannot be redefined."""

Presentation = Literal["classic", "code", "hybrid"]
"""How tools are listed: ``classic`` lists each with its schema; ``code`` lists ``CODE_TOOLS``, for programs that call
the others as functions; ``hybrid`` lists these and some chosen tools. It never limits which tools can be called
(decision 35).
"""

INIT_TOOL: Final = "00_INIT"
"""The tool that returns the ``instructions``, for clients that do not show them; listed in every presentation."""
CODE_TOOLS: Final = (INIT_TOOL, "search_tools", "read_stubs", "execute_code")
"""The tools that ``code`` lists."""
_REFERENCED_TOOLS: Final = ("describe_tools", "read_result")
"""Tools to which the listed tools refer: they return the arguments of a tool, and the rest of a long output."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Usable in URLs and on command lines."""
_GLOB: Final = re.compile(r"[A-Za-z0-9_*?\[\]!-]{1,200}")
"""The characters of tool names and globs."""
_PRESENTATIONS: Final[tuple[str, ...]] = get_args(Presentation)
_RESULT_TEXTS: Final[tuple[str, ...]] = get_args(ResultText)
_KEYS: Final = ("include", "exclude", "presentation", "listed", "result_text")


class ToolsetError(ValueError):
    """A toolset is invalid; the message names the toolset, the key and the remedy."""


@dataclass(frozen=True, slots=True)
class Toolset:
    """A selection of tools, by globs of their names."""

    name: str
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    """Removed from the tools that ``include`` matches."""
    presentation: Presentation = "classic"
    listed: tuple[str, ...] = ()
    """The tools that ``hybrid`` lists in addition to ``CODE_TOOLS``."""
    result_text: ResultText | None = None
    """The form of conversational answers (``result_text``); None: as the operator or the client sets it."""

    def contains(self, tool: str) -> bool:
        """Whether a tool with this name belongs to the toolset. Tools that its presentation needs belong to it, unless
        excluded."""
        return (_matches(self.include, tool) or tool in self._needed) and not _matches(self.exclude, tool)

    def lists(self, tool: str) -> bool:
        """Whether the toolset lists this tool, which it contains."""
        return self.presentation == "classic" or tool in CODE_TOOLS or _matches(self.listed, tool)

    @property
    def _needed(self) -> tuple[str, ...]:
        return (INIT_TOOL,) if self.presentation == "classic" else (*CODE_TOOLS, *_REFERENCED_TOOLS)


def _matches(globs: Iterable[str], name: str) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)


@cache
def shipped_toolsets() -> Mapping[str, Toolset]:
    """The toolsets of toolsets.toml."""
    tables = tomllib.loads((files(__package__) / "toolsets.toml").read_text(encoding="utf-8"))
    return {name: _toolset(name, table) for name, table in tables.items()}


def read_toolsets(tables: object) -> dict[str, Toolset]:
    """The operator's toolsets by name, from the configuration's tables.

    Raises:
        ToolsetError: a toolset is invalid.
    """
    if not isinstance(tables, Mapping):
        raise ToolsetError("must be set in toold.toml, as tables [toolsets.NAME] with include and exclude")
    toolsets: dict[str, Toolset] = {}
    for name, table in tables.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ToolsetError(f"a toolset name is 1–64 of A-Z, a-z, 0-9, _ and -, not {str(name)[:64]!r}")
        if name == FULL_TOOLSET:
            raise ToolsetError(f"[toolsets.{name}] cannot be redefined: {name} is all tools; choose another name")
        toolsets[name] = table if isinstance(table, Toolset) else _toolset(name, table)
    return toolsets


def problems_of(toolset: Toolset, tools: Iterable[str]) -> list[str]:
    """A sentence for each plain name that matches no tool: the name may be misspelt, or its source unavailable."""
    known = list(tools)
    return [
        f"toolset {toolset.name!r}: {key} names {name!r}, but there is no such tool; {hint}"
        for key, names in (("include", toolset.include), ("exclude", toolset.exclude), ("listed", toolset.listed))
        for name in names
        if name not in known and not set("*?[") & set(name)
        if (hint := did_you_mean(close_names(name, known, n=1)) or "`toold tools` lists them")
    ]


def _toolset(name: str, table: object) -> Toolset:
    place = f"[toolsets.{name}]"
    if not isinstance(table, Mapping):
        raise ToolsetError(f"{place} must be a table with include and exclude")
    for key in table:
        if key not in _KEYS:
            hint = did_you_mean(close_names(str(key), _KEYS, n=1)) or f"the keys are {', '.join(_KEYS)}"
            raise ToolsetError(f"{place} has no key {str(key)[:64]!r}; {hint}")
    presentation = table.get("presentation", "classic")
    if presentation not in _PRESENTATIONS:
        raise ToolsetError(f"{place} presentation must be one of {', '.join(_PRESENTATIONS)}")
    include = _globs(f"{place} include", table.get("include", ["*"]))
    if not include:
        raise ToolsetError(f'{place} include must have at least one glob; "*" is all tools')
    listed = _globs(f"{place} listed", table.get("listed", []))
    if (presentation == "hybrid") != bool(listed):
        raise ToolsetError(
            f'{place} presentation = "hybrid" and listed require each other: listed names the tools that are listed in '
            f"addition to {', '.join(CODE_TOOLS)}"
        )
    result_text = table.get("result_text")
    if result_text is not None and result_text not in _RESULT_TEXTS:
        raise ToolsetError(f"{place} result_text must be {' or '.join(_RESULT_TEXTS)}")
    exclude = _globs(f"{place} exclude", table.get("exclude", []))
    return Toolset(name, include, exclude, presentation, listed, result_text)


def _globs(place: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise ToolsetError(f'{place} must be a list of tool names or globs, such as ["chat", "kimi_*"]')
    for glob in value:
        if not isinstance(glob, str) or not _GLOB.fullmatch(glob):
            raise ToolsetError(f"{place} has {str(glob)[:64]!r}, neither a tool name nor a glob such as kimi_*")
    return tuple(value)
