"""Reads a server's tool listing within limits, and omits invalid tools."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from mcp_types import ListToolsResult, Tool
from pydantic import ValidationError

from ..source import SourceNote
from ..upstream_definition import UpstreamDefinition, UpstreamListing

MAX_TOOLS: Final = 2000
MAX_PAGES: Final = 200
MAX_TOOL_BYTES: Final = 256 * 1024
"""The maximum size of a tool definition as JSON. Models cannot use larger ones."""
MAX_LISTING_BYTES: Final = 16 * 1024 * 1024
_NAME_CHARS: Final = 200
"""The maximum length of a tool's name in notes about invalid tools."""


class ListingCollector:
    """Collects a listing page by page, within the limits."""

    def __init__(self) -> None:
        self._definitions: dict[str, UpstreamDefinition] = {}
        self._notes: list[SourceNote] = []
        self._bytes = 0
        self._pages = 0
        self._cursors: set[str | None] = set()

    def add_page(self, page: ListToolsResult) -> str | None:
        """Adds a page; returns the cursor of the next, or None if the listing is complete or a limit is reached."""
        self._pages += 1
        cursor, limit = page.next_cursor or None, None
        for tool in page.tools:
            limit = self._reached_limit()
            if limit is None:
                self._add(definition(tool))
        if cursor is not None:
            limit = self._reached_limit() or (f"{MAX_PAGES} pages" if self._pages >= MAX_PAGES else None)
        if limit is not None:
            self._notes.append(SourceNote("omitted", "the listing", f"everything after {limit}"))
            return None
        if cursor in self._cursors:
            self._notes.append(SourceNote("omitted", "the listing", "everything after a page whose cursor repeats"))
            return None
        self._cursors.add(cursor)
        return cursor

    def listing(self, removal_notes: Sequence[SourceNote]) -> UpstreamListing:
        """Returns the tools so far; ``removal_notes`` are notes about tools omitted by ``FilteredStream``."""
        return UpstreamListing(tuple(self._definitions.values()), (*removal_notes, *self._notes)[:MAX_TOOLS])

    def _reached_limit(self) -> str | None:
        if len(self._definitions) >= MAX_TOOLS:
            return f"{MAX_TOOLS:,} tools"
        return f"{MAX_LISTING_BYTES // 1024**2} MiB" if self._bytes >= MAX_LISTING_BYTES else None

    def _add(self, tool: UpstreamDefinition) -> None:
        size = len(msgspec.json.encode(tool))
        if tool.name in self._definitions:
            self._notes.append(SourceNote("omitted", tool.name, "another tool of the server has this name"))
        elif size > MAX_TOOL_BYTES:
            limit = f"{MAX_TOOL_BYTES // 1024} KiB"
            self._notes.append(
                SourceNote("omitted", tool.name, f"its definition has {size:,} bytes, more than {limit}")
            )
        else:
            self._definitions[tool.name] = tool
            self._bytes += size


def remove_invalid_tools(result: dict[str, Any]) -> list[SourceNote]:
    """Removes invalid tools from a page, because the SDK rejects the whole page for one invalid tool; returns notes.
    One of the tools beyond the limit of a listing stays, so that the listing ends there.

    An ``outputSchema`` whose type is not object, which older revisions forbid, is removed from its tool.
    """
    tools, valid, notes = result.get("tools"), [], []
    if not isinstance(tools, list):
        return []
    for tool in tools[: MAX_TOOLS + 1]:
        reason = _invalid_because(tool)
        if reason is None:
            valid.append(tool)
            if _is_not_object_schema(tool.get("outputSchema")):
                del tool["outputSchema"]
                notes.append(
                    SourceNote("repaired", _name(tool), 'its outputSchema has no "type": "object" and is not shown')
                )
        else:
            notes.append(SourceNote("omitted", _name(tool), reason))
    result["tools"] = valid
    return notes


def _invalid_because(tool: Any) -> str | None:
    try:
        definition = Tool.model_validate(tool, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "it"
        return f"it is not a valid MCP tool: {where}: {first['msg']}"
    if not definition.name:
        return "it has no name"
    if definition.input_schema.get("type") != "object":
        return 'inputSchema must have "type": "object"'
    return None


def _is_not_object_schema(schema: Any) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") != "object"


def _name(tool: Any) -> str:
    name = tool.get("name") if isinstance(tool, Mapping) else None
    return name[:_NAME_CHARS] if isinstance(name, str) and name else "a tool without a name"


def definition(tool: Tool) -> UpstreamDefinition:
    """Returns the definition of the SDK's tool."""
    plain = tool.model_dump(mode="json", by_alias=True, exclude_none=True)
    annotations = plain.get("annotations", {})
    hints = {name: value for name, value in annotations.items() if name != "title"}
    title = plain.get("title") or annotations.get("title") or ""
    shown = {"annotations": plain.get("annotations")}
    shown |= {name: plain[name] for name in ("title", "icons", "_meta") if name in plain}
    if "description" not in plain:
        shown["description"] = None
    return UpstreamDefinition(
        plain["name"],
        plain.get("description") or title,
        plain["inputSchema"],
        plain.get("outputSchema"),
        hints,
        title=title,
        shown=shown,
        as_task=plain.get("execution", {}).get("taskSupport") == "required",
    )
