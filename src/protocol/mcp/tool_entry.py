"""One tool as ``tools/list`` shows it, in the words of a revision. Pure."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ..tool_call import ToolInfo
from .mcp_revision import McpRevision

_ERROR_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "code": {"type": "string"},
        "message": {"type": "string"},
        "executed": {"enum": ["no", "maybe", "yes"]},
        "retryable": {"type": "boolean"},
    },
    "required": ["code", "message", "executed", "retryable"],
}
_KEPT_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "handle": {"type": "string"},
        "count": {"type": "integer"},
        "bytes": {"type": "integer"},
        "format": {"type": "string"},
        "expires": {"type": "string"},
    },
    "required": ["handle", "count", "bytes", "format", "expires"],
}
"""What stands for an answer that is too large and was kept as a file."""
_SHARED: Final = ("$schema", "$defs", "definitions")
"""Keywords that stay at the top."""
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
"""Keywords whose value is a schema; what others hold is data, and nobody's to change."""
_HOLDING_SEVERAL: Final = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_HOLDING_NAMED: Final = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)
_STAYING: Final = ("#/$defs/", "#/definitions/")
"""References to what stays at the top, and so leads where it led."""


def tool_entry(info: ToolInfo, revision: McpRevision) -> dict[str, Any]:
    """One tool in the revision's words."""
    entry: dict[str, Any] = msgspec.to_builtins(info)
    entry["inputSchema"] = _without_header_names(entry["inputSchema"])
    if "outputSchema" in entry:
        entry["outputSchema"] = answer_schema(entry["outputSchema"])
    if revision.tasks == "asked":
        entry["execution"] = {"taskSupport": "optional"}
    return entry


def answer_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of structured content, of that of what the tool returns: values that are no object stand under
    ``result``, and a call that failed has the error in its place, one whose answer is too large the file's handle.
    Clients hold these against the schema as well.
    """
    own = dict(schema)
    is_object = own.get("type") == "object"
    shared: dict[str, Any] = {}
    if "$id" not in own:  # else it is a document of its own, within which its references lead
        place = "#/anyOf/0" if is_object else "#/anyOf/0/properties/result"
        own = _moved(own, place)
        shared = {name: own.pop(name) for name in _SHARED if name in own}
    if not is_object:
        own = {"type": "object", "properties": {"result": own}, "required": ["result"]}
    return {**shared, "type": "object", "anyOf": [own, _ERROR_SCHEMA, _KEPT_SCHEMA]}


def _moved(part: Any, place: str) -> Any:
    """A part of a schema that stands at ``place`` now, with its references to other parts of it."""
    if isinstance(part, list):
        return [_moved(one, place) for one in part]
    if not isinstance(part, dict):
        return part
    moved = {name: _moved(one, place) for name, one in part.items()}
    target = part.get("$ref")
    if isinstance(target, str) and (target == "#" or target.startswith("#/")) and not target.startswith(_STAYING):
        moved["$ref"] = place + target[1:]
    return moved


def _without_header_names(schema: Any) -> Any:
    """Without ``x-mcp-header``, by which clients repeat an argument in a header, however deep it stands: nobody routes
    by these here.
    """
    if not isinstance(schema, dict):
        return schema
    bare = {key: value for key, value in schema.items() if key != _HEADER_NAME}
    for key in _HOLDING_ONE & bare.keys():
        bare[key] = _without_header_names(bare[key])
    for key in _HOLDING_SEVERAL & bare.keys():
        if isinstance(bare[key], list):
            bare[key] = [_without_header_names(one) for one in bare[key]]
    for key in _HOLDING_NAMED & bare.keys():
        if isinstance(bare[key], dict):
            bare[key] = {name: _without_header_names(one) for name, one in bare[key].items()}
    return bare


def official_types() -> Any:
    """The SDK's types; None where they are not installed (the extra ``mcp``)."""
    try:
        from mcp_types import methods  # noqa: PLC0415 - it takes part of a second, so only where it is needed
    except ImportError:
        return None
    return methods


def schema_problem(types: Any, tool: Mapping[str, Any], revision: McpRevision) -> str | None:
    """Why these types do not take the tool of a listing; None where they do."""
    listing: dict[str, Any] = {"tools": [tool], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    try:
        types.validate_server_result("tools/list", revision.name, listing)
    except ValueError as error:  # pydantic's are
        return " ".join(str(error).split())[:300]
    return None


def is_trivially_valid(tool: Mapping[str, Any]) -> bool:
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
