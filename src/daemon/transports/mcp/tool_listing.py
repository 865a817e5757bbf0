"""What ``tools/list`` shows: a toolset's tools in the words of a revision, in a stable order, page by page."""

import asyncio
from typing import Any, Final

import structlog

from ....protocol.mcp.json_rpc import INVALID_PARAMS, MessageProblem
from ....protocol.mcp.mcp_revision import McpRevision
from ....protocol.mcp.tool_entry import official_types, schema_problem, tool_entry
from ....protocol.tool_call import ToolInfo
from ....tools import ToolsetView

_PAGE: Final = 500
"""Tools on a page. Clients that do not turn pages see this many, and models choose badly among far fewer."""

_log = structlog.get_logger(__name__)


class ToolListing:
    """The tools as clients are shown them, made once for each toolset and revision, and anew when the tools change."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str], tuple[str, list[dict[str, Any]]]] = {}

    async def page(
        self, selection: ToolsetView, revision: McpRevision, cursor: object
    ) -> tuple[list[dict[str, Any]], str | None] | MessageProblem:
        """The tools of a page and the cursor of the next one; the first page has no cursor."""
        key = (selection.toolset.name, revision.name)
        made = self._made.get(key)
        if made is None or made[0] != selection.rev:
            # In a thread: the SDK's types take part of a second to import, and some milliseconds for hundreds of tools.
            made = self._made[key] = selection.rev, await asyncio.to_thread(shown, selection.infos, revision)
        rev, tools = made
        start = 0 if cursor is None else _start(cursor, rev)
        if start is None:
            return MessageProblem(
                INVALID_PARAMS, "The cursor is none of this listing, or the tools have changed; begin again."
            )
        end = start + _PAGE
        return tools[start:end], f"{rev}-{end}" if end < len(tools) else None


def shown(infos: tuple[ToolInfo, ...], revision: McpRevision) -> list[dict[str, Any]]:
    """These tools in the revision's words. One that its types do not take is left out: clients that check what they
    are sent would else refuse the whole listing.
    """
    types = official_types()
    tools = [tool_entry(info, revision) for info in infos]
    return tools if types is None else [tool for tool in tools if _fits(types, tool, revision)]


def _start(cursor: object, rev: str) -> int | None:
    given, _, start = cursor.partition("-") if isinstance(cursor, str) else ("", "", "")
    return int(start) if given == rev and start.isascii() and start.isdigit() and len(start) < 9 else None


def _fits(types: Any, tool: dict[str, Any], revision: McpRevision) -> bool:
    reason = schema_problem(types, tool, revision)
    if reason is not None:
        _log.warning("tool left out of the listing", tool=tool["name"], revision=revision.name, reason=reason)
    return reason is None
