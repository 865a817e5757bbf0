"""Tools as ``tools/list`` returns them, and their validation against the SDK's types. Pure."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ..tool_call import ToolInfo
from .mcp_revision import McpRevision

_TOP_LEVEL: Final = ("$schema", "$defs", "definitions")
"""Keywords that stay at the top level."""
_HEADER_NAME: Final = "x-mcp-header"
_HOLDING_ONE: Final = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
"""Keywords whose value is a schema. The values of all keywords outside these three sets are data and stay unchanged."""
_HOLDING_SEVERAL: Final = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_HOLDING_NAMED: Final = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)
_TOP_REFS: Final = ("#/$defs/", "#/definitions/")
"""Matches references to keywords that stay at the top level, and so remain valid."""


def tool_entry(info: ToolInfo, revision: McpRevision) -> dict[str, Any]:
    """Returns one tool in the revision's format."""
    entry: dict[str, Any] = msgspec.to_builtins(info)
    for field, value in entry.pop("mcp", {}).items():
        entry[field] = value
        if value is None:
            del entry[field]
    entry["inputSchema"] = _without_header_names(entry["inputSchema"])
    if "outputSchema" in entry:
        entry["outputSchema"] = answer_schema(entry["outputSchema"])
    if revision.tasks == "requested":
        entry["execution"] = {"taskSupport": "optional"}
    return entry


def answer_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the schema of structured content for the schema of the tool's data. It is the same schema, unless the
    data is not an object and so is wrapped under ``result``.
    """
    if schema.get("type") == "object":
        return dict(schema)
    own = dict(schema)
    shared: dict[str, Any] = {}
    # A schema with an id is a separate document: its references are relative to it.
    if "$id" not in own:
        own = _moved(own, "#/properties/result")
        shared = {name: own.pop(name) for name in _TOP_LEVEL if name in own}
    return {**shared, "type": "object", "properties": {"result": own}, "required": ["result"]}


def _moved(part: Any, place: str) -> Any:
    """Returns a part of a schema that moved to ``place``, with its references adjusted."""
    if isinstance(part, list):
        return [_moved(item, place) for item in part]
    if not isinstance(part, dict):
        return part
    moved = {name: _moved(child, place) for name, child in part.items()}
    target = part.get("$ref")
    if isinstance(target, str) and (target == "#" or target.startswith("#/")) and not target.startswith(_TOP_REFS):
        moved["$ref"] = place + target[1:]
    return moved


def _without_header_names(schema: Any) -> Any:
    """Returns the schema without ``x-mcp-header`` at any depth. Clients repeat such arguments in headers for routing,
    which this server does not use.
    """
    if not isinstance(schema, dict):
        return schema
    bare = {key: value for key, value in schema.items() if key != _HEADER_NAME}
    for key in _HOLDING_ONE & bare.keys():
        bare[key] = _without_header_names(bare[key])
    for key in _HOLDING_SEVERAL & bare.keys():
        if isinstance(bare[key], list):
            bare[key] = [_without_header_names(item) for item in bare[key]]
    for key in _HOLDING_NAMED & bare.keys():
        if isinstance(bare[key], dict):
            bare[key] = {name: _without_header_names(child) for name, child in bare[key].items()}
    return bare


def official_types() -> Any:
    """Returns the SDK's types, the official definition of each revision; None if they are not installed (extra
    ``mcp``).
    """
    try:
        from mcp_types import methods  # noqa: PLC0415 - slow to import
    except ImportError:
        return None
    return methods


def schema_problem(types: Any, tool: Mapping[str, Any], revision: McpRevision) -> str | None:
    """Returns why these types reject a tool of a listing; None if they accept it."""
    listing: dict[str, Any] = {"tools": [tool], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    try:
        types.validate_server_result("tools/list", revision.name, listing)
    except ValueError as error:  # pydantic's ValidationError is one
        return " ".join(str(error).split())[:300]
    return None


def is_trivially_valid(tool: Mapping[str, Any]) -> bool:
    """Whether the tool is certain to pass the types of every revision; true for most tools, and needs no SDK."""
    schema = tool["inputSchema"]
    properties, required = schema.get("properties", {}), schema.get("required", [])
    return (
        schema.get("type") == "object"
        and isinstance(properties, dict)
        and all(isinstance(property_schema, dict) for property_schema in properties.values())
        and isinstance(required, list)
        and all(isinstance(name, str) for name in required)
    )
