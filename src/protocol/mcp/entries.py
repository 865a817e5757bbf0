"""One tool as ``tools/list`` shows it, in the words of a revision. Pure."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ..calls import ToolInfo
from .revisions import Revision

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


def tool_entry(info: ToolInfo, revision: Revision) -> dict[str, Any]:
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
    ``result``, and a call that failed has the error in its place, which clients hold against the schema as well.
    """
    own = dict(schema)
    definitions: dict[str, Any] = {name: own.pop(name) for name in ("$schema", "$defs", "definitions") if name in own}
    if own.get("type") != "object":
        own = {"type": "object", "properties": {"result": own}, "required": ["result"]}
    return {**definitions, "type": "object", "anyOf": [own, _ERROR_SCHEMA]}


def _without_header_names(schema: dict[str, Any]) -> dict[str, Any]:
    """Without ``x-mcp-header``, by which clients repeat an argument in a header: nobody routes by these here."""
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not any(
        isinstance(one, dict) and "x-mcp-header" in one for one in properties.values()
    ):
        return schema
    bare = {
        name: {key: value for key, value in one.items() if key != "x-mcp-header"} if isinstance(one, dict) else one
        for name, one in properties.items()
    }
    return {**schema, "properties": bare}
