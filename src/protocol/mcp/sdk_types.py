"""What is sent, held against the SDK's types, the official words of each revision."""

from collections.abc import Mapping
from typing import Any

from .mcp_revision import McpRevision


def official_types() -> Any:
    """The SDK's types; None where they are not installed (the extra ``mcp``)."""
    try:
        from mcp_types import methods  # noqa: PLC0415 - it takes part of a second, so only where it is needed
    except ImportError:
        return None
    return methods


def objection(types: Any, tool: Mapping[str, Any], revision: McpRevision) -> str | None:
    """Why these types do not take the tool of a listing; None where they do."""
    listing: dict[str, Any] = {"tools": [tool], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    try:
        types.validate_server_result("tools/list", revision.name, listing)
    except ValueError as error:  # pydantic's are
        return " ".join(str(error).split())[:300]
    return None


def is_plain(tool: Mapping[str, Any]) -> bool:
    """Whether the types of every revision take the tool, as far as can be told without them; true of most tools."""
    schema = tool["inputSchema"]
    properties, required = schema.get("properties", {}), schema.get("required", [])
    return (
        schema.get("type") == "object"
        and isinstance(properties, dict)
        and all(isinstance(one, dict) for one in properties.values())
        and isinstance(required, list)
        and all(isinstance(name, str) for name in required)
    )
