"""The tools that a viewer may see: listed, searched, and one by name. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ....protocol.error_codes import ToolNotFoundError
from ....store import Sums
from ....tools import FULL_TOOLSET, OWN_SOURCE, Tool, ToolCatalog, rank_tools
from ..http_client import toolset_with, toolsets_of
from .dashboard_port import Viewer

NAMED_SCORE: Final = 50.0
"""The score for a name that contains the text: lower than for a name that begins with it (``tool_ranking``)."""


@dataclass(frozen=True, slots=True)
class SeenTool:
    """A tool that the viewer may see."""

    tool: Tool
    toolset: str | None
    """The viewer's toolset with which to call it; None if it cannot be called."""


def seen_toolsets(catalog: ToolCatalog, viewer: Viewer) -> list[str]:
    """The toolsets whose tools the viewer sees; an operator without toolsets sees all tools."""
    if viewer.access.toolsets is None:
        return [FULL_TOOLSET]
    return toolsets_of(catalog, viewer.access)


def seen_tools(catalog: ToolCatalog, viewer: Viewer) -> dict[str, Tool]:
    """The tools, sorted by name; for an operator without toolsets, including withheld tools."""
    found = {
        name: tool for toolset in seen_toolsets(catalog, viewer) for name, tool in catalog.view(toolset).tools.items()
    }
    if viewer.operator and viewer.access.toolsets is None:
        found |= {tool.name: tool for tool in catalog.registry.tools}
    return dict(sorted(found.items()))


def find_seen(catalog: ToolCatalog, viewer: Viewer, name: str) -> SeenTool:
    """A tool by its exact name.

    Raises:
        ToolNotFoundError: it does not exist, or the viewer may not see it.
    """
    tool = seen_tools(catalog, viewer).get(name)
    if tool is None:
        raise ToolNotFoundError("There is no such tool, or your token does not permit it.")
    toolset = None if tool.withheld else toolset_with(catalog, viewer.access, name)
    return SeenTool(tool, toolset)


def ranked(catalog: ToolCatalog, viewer: Viewer, words: str) -> list[str]:
    """The names of the tools that match a few words, best match first. May take long, so call it in a thread."""
    scores: dict[str, float] = {}
    for toolset in seen_toolsets(catalog, viewer):
        for info, score in rank_tools(words, catalog.view(toolset).index):
            scores[info.name] = max(score, scores.get(info.name, 0.0))
    begun = words.lower().replace(" ", "_")
    for name in seen_tools(catalog, viewer):  # for incompletely typed names
        if begun in name.lower():
            scores[name] = scores.get(name, 0.0) + NAMED_SCORE
    return sorted(scores, key=lambda name: (-scores[name], name))


def tool_row(tool: Tool, usage: Mapping[str, Sums]) -> dict[str, Any]:
    """A tool's line in the list."""
    sums = usage.get(tool.name)
    return {
        "name": tool.name,
        "description": tool.description,
        "source": tool.source,
        "is_own": tool.source == OWN_SOURCE,
        "agent": tool.agent,
        "hints": hints(tool),
        "withheld": tool.withheld,
        "calls": 0 if sums is None else sums.calls,
        "errors": 0 if sums is None else sums.errors,
    }


def hints(tool: Tool) -> list[str]:
    """The annotations of a tool, in words."""
    annotations = tool.annotations
    words = ["read-only" if annotations.read_only_hint else "writes"]
    if annotations.destructive_hint and not annotations.read_only_hint:
        words.append("may destroy")
    if annotations.idempotent_hint and not annotations.read_only_hint:
        words.append("repeatable")
    if annotations.open_world_hint:
        words.append("reaches out")
    return words
