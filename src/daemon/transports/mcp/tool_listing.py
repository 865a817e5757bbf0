"""The pages of ``tools/list``: a toolset's tools in a revision's format, in a stable order."""

import asyncio
from typing import Any, Final

import structlog

from ....protocol.json_rpc import INVALID_PARAMS, MessageProblem
from ....protocol.mcp.mcp_revision import McpRevision
from ....protocol.mcp.tool_entry import official_types, schema_problem, tool_entry
from ....protocol.tool_call import ToolInfo
from ....tools import ToolsetView

_PAGE: Final = 500
"""Tools per page. Some clients read only the first page, but models choose badly even among far fewer tools."""

_log = structlog.get_logger(__name__)


class ToolListing:
    """The tool lists by toolset and revision, rebuilt when the tools change."""

    def __init__(self) -> None:
        self._lists: dict[tuple[str, str], tuple[str, list[dict[str, Any]]]] = {}

    async def page(
        self, view: ToolsetView, revision: McpRevision, cursor: object
    ) -> tuple[list[dict[str, Any]], str | None] | MessageProblem:
        """Returns the tools of a page, and the cursor of the next page; ``cursor`` is None for the first page."""
        key = (view.toolset.name, revision.name)
        cached = self._lists.get(key)
        if cached is None or cached[0] != view.rev:
            # In a thread: the SDK's types are slow to import, and take some milliseconds for hundreds of tools.
            cached = self._lists[key] = view.rev, await asyncio.to_thread(entries, view.infos, revision)
        rev, tools = cached
        start = 0 if cursor is None else _start(cursor, rev)
        if start is None:
            return MessageProblem(
                INVALID_PARAMS, "The cursor is invalid, or the tools have changed; list from the start."
            )
        end = start + _PAGE
        return tools[start:end], f"{rev}-{end}" if end < len(tools) else None


def entries(infos: tuple[ToolInfo, ...], revision: McpRevision) -> list[dict[str, Any]]:
    """Returns the tools in the revision's format. Tools that the revision's types reject are omitted: clients that
    validate would otherwise reject the whole list.
    """
    types = official_types()
    tools = [tool_entry(info, revision) for info in infos]
    return tools if types is None else [tool for tool in tools if _is_valid(types, tool, revision)]


def _start(cursor: object, rev: str) -> int | None:
    revision, _, start = cursor.partition("-") if isinstance(cursor, str) else ("", "", "")
    return int(start) if revision == rev and start.isascii() and start.isdigit() and len(start) < 9 else None


def _is_valid(types: Any, tool: dict[str, Any], revision: McpRevision) -> bool:
    reason = schema_problem(types, tool, revision)
    if reason is not None:
        _log.warning("tool omitted from the listing", tool=tool["name"], revision=revision.name, reason=reason)
    return reason is None
