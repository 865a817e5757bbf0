"""Toolsets: which tools a session may call, and how it is shown them. Pure, but for reading those that are shipped.

Those that ship are data, in toolsets.toml; an operator's are tables of toold.toml of the same form.
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

DEFAULT_TOOLSET: Final = "standard"
"""What a session has that asks for none, unless the operator says otherwise."""
FULL_TOOLSET: Final = "full"
"""All tools there are; nobody defines it anew."""

Presentation = Literal["classic", "code", "hybrid"]
"""How tools are listed: ``classic`` is each by itself, with its schema; ``code`` is ``CODE_TOOLS``, for programs that
call the rest as functions; ``hybrid`` is these and some chosen ones. It never bounds what can be called (decision 35).
"""

INIT_TOOL: Final = "00_INIT"
"""Tells what ``instructions`` do, to clients that deliver none: listed in every presentation."""
CODE_TOOLS: Final = (INIT_TOOL, "search_tools", "read_stubs", "execute_code")
"""What ``code`` lists."""
_LED_TO: Final = ("describe_tools", "read_result")
"""What those send a model to: the arguments of a tool that was found, all of what was printed."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""It stands in addresses and on command lines."""
_GLOB: Final = re.compile(r"[A-Za-z0-9_*?\[\]!-]{1,200}")
"""The characters of a tool's name, and those of a glob."""
_PRESENTATIONS: Final[tuple[str, ...]] = get_args(Presentation)
_KEYS: Final = ("include", "exclude", "presentation", "listed")


class ToolsetError(ValueError):
    """A toolset cannot be used; the message says which, which key of it, and what to write."""


@dataclass(frozen=True, slots=True)
class Toolset:
    """Some of the tools there are, by globs of their names."""

    name: str
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    """Left out of what ``include`` has."""
    presentation: Presentation = "classic"
    listed: tuple[str, ...] = ()
    """What ``hybrid`` lists beside ``CODE_TOOLS``."""

    def holds(self, tool: str) -> bool:
        """Whether a tool of this name belongs to it. What its presentation needs does, unless it is excluded."""
        return (_matches(self.include, tool) or tool in self._needed) and not _matches(self.exclude, tool)

    def lists(self, tool: str) -> bool:
        """Whether one that it holds is listed."""
        return self.presentation == "classic" or tool in CODE_TOOLS or _matches(self.listed, tool)

    @property
    def _needed(self) -> tuple[str, ...]:
        return (INIT_TOOL,) if self.presentation == "classic" else (*CODE_TOOLS, *_LED_TO)


def _matches(globs: Iterable[str], name: str) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)


@cache
def shipped_toolsets() -> Mapping[str, Toolset]:
    """Those of toolsets.toml."""
    tables = tomllib.loads((files(__package__) / "toolsets.toml").read_text(encoding="utf-8"))
    return {name: _toolset(name, table) for name, table in tables.items()}


def read_toolsets(tables: object) -> dict[str, Toolset]:
    """An operator's toolsets, by their names, from the tables of a configuration.

    Raises:
        ToolsetError: one cannot be used.
    """
    if not isinstance(tables, Mapping):
        raise ToolsetError("must be tables of toold.toml: [toolsets.NAME] with include and exclude")
    toolsets: dict[str, Toolset] = {}
    for name, table in tables.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ToolsetError(f"a toolset's name is 1–64 of A-Z, a-z, 0-9, _ and -, not {str(name)[:64]!r}")
        if name == FULL_TOOLSET:
            raise ToolsetError(f"[toolsets.{name}] cannot be defined anew: {name} is all tools; take another name")
        toolsets[name] = table if isinstance(table, Toolset) else _toolset(name, table)
    return toolsets


def problems_of(toolset: Toolset, tools: Iterable[str]) -> list[str]:
    """A sentence for each plain name in it that no tool has: it may be misspelt, or its source away."""
    known = list(tools)
    return [
        f"toolset {toolset.name!r}: {key} names {name!r}, and there is no such tool; {hint}"
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
            hint = did_you_mean(close_names(str(key), _KEYS, n=1)) or f"there are {', '.join(_KEYS)}"
            raise ToolsetError(f"{place} has no key {str(key)[:64]!r}; {hint}")
    presentation = table.get("presentation", "classic")
    if presentation not in _PRESENTATIONS:
        raise ToolsetError(f"{place} presentation must be {', '.join(_PRESENTATIONS)}")
    include = _globs(f"{place} include", table.get("include", ["*"]))
    if not include:
        raise ToolsetError(f'{place} include must have one glob or more; "*" is all tools')
    listed = _globs(f"{place} listed", table.get("listed", []))
    if (presentation == "hybrid") != bool(listed):
        raise ToolsetError(
            f'{place} presentation = "hybrid" and listed go together: listed names the tools that are listed beside '
            f"{', '.join(CODE_TOOLS)}"
        )
    return Toolset(name, include, _globs(f"{place} exclude", table.get("exclude", [])), presentation, listed)


def _globs(place: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise ToolsetError(f'{place} must be a list of tool names or globs, such as ["chat", "kimi_*"]')
    for glob in value:
        if not isinstance(glob, str) or not _GLOB.fullmatch(glob):
            raise ToolsetError(f"{place} has {str(glob)[:64]!r}, which is no tool's name and no glob such as kimi_*")
    return tuple(value)
