"""Selects the tools of an MCP server, and decides their names in this daemon. Pure."""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

from ..tools import TOOL_NAME
from .source import SourceNote
from .source_tool_names import tool_name
from .upstream_definition import UpstreamListing, served_name

Prefix = Literal["always", "on_collision", "never"]
"""When a tool's name gets the source's name as prefix: always, if the name is taken or invalid, or never."""


@dataclass(frozen=True, slots=True)
class ToolNaming:
    """``prefix``, ``rename``, ``include`` and ``exclude`` of a source."""

    prefix: Prefix = "on_collision"
    rename: Mapping[str, str] = field(default_factory=dict)
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()

    def selected(self, listing: UpstreamListing) -> UpstreamListing:
        """Returns the tools that the globs select, with a note for each renamed tool that the server does not have."""
        tools = tuple(tool for tool in listing.tools if self._selects(tool.name))
        names = {tool.name for tool in listing.tools}
        unknown = [
            SourceNote("omitted", f"rename.{old}", "the server has no such tool")
            for old in self.rename
            if old not in names
        ]
        return UpstreamListing(tools, (*listing.notes, *unknown))

    def served(self, source: str, name: str, pinned: str | None, taken: Container[str]) -> str | None:
        """Returns the name of a server's tool in this daemon; None if it cannot have one.

        ``pinned`` is its pinned name, if that is free. The name stays unless a rule says otherwise.
        """
        renamed = self.rename.get(name)
        if renamed is not None and renamed not in taken:
            return renamed
        if self.prefix == "never":
            return name if TOOL_NAME.fullmatch(name) and name not in taken and renamed is None else None
        if self.prefix == "always" and renamed is None:
            free = tool_name(source, re.sub(r"[^A-Za-z0-9_-]+", "_", name), ())
            return free if free not in taken else tool_name(source, name, taken)
        return pinned if pinned is not None else served_name(source, renamed or name, taken)

    def _selects(self, name: str) -> bool:
        return (not self.include or _matches(name, self.include)) and not _matches(name, self.exclude)


def _matches(name: str, globs: Iterable[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)
