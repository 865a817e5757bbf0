"""Tools as ``tools/list`` returns them, and their validation by the SDK's types."""

from typing import Any

import jsonschema
import msgspec
import pytest
from toold.protocol.error_codes import ToolExecutionError
from toold.protocol.mcp.mcp_result import ERROR_KEY, RETAINED_KEY, call_result
from toold.protocol.mcp.mcp_revision import REVISIONS, McpRevision
from toold.protocol.mcp.tool_entry import answer_schema, is_trivially_valid, official_types, schema_problem, tool_entry
from toold.protocol.tool_call import Annotations, Metadata, Timings, ToolInfo, ToolResult
from toold.tools import RetainedResult

NEW = REVISIONS["2026-07-28"]
ASKED = REVISIONS["2025-11-25"]
_DRAFT_7 = "http://json-schema.org/draft-07/schema#"
HINTS = Annotations(read_only_hint=True, destructive_hint=False, idempotent_hint=False, open_world_hint=False)


def info(schema: dict[str, Any] | None = None, name: str = "t") -> ToolInfo:
    return ToolInfo(name, "A tool.", schema or {"type": "object"}, HINTS)


def test_a_tool_entry() -> None:
    """Name, description, schema and annotations; task support in the revision that has it."""
    assert tool_entry(info(), NEW) == {
        "name": "t",
        "description": "A tool.",
        "inputSchema": {"type": "object"},
        "annotations": {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": False,
            "openWorldHint": False,
        },
    }
    assert tool_entry(info(), ASKED)["execution"] == {"taskSupport": "optional"}


def test_schemas_are_unchanged() -> None:
    """Except for header names, which this server does not use."""
    schema = {
        "type": "object",
        "$defs": {"a": {"const": None}},
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "rest": True, "n": {"default": None}},
        "additionalProperties": False,
    }
    entry = tool_entry(info(schema), NEW)
    assert entry["inputSchema"] == schema | {
        "properties": {"region": {"type": "string"}, "rest": True, "n": {"default": None}}
    }
    assert schema["properties"]["region"]["x-mcp-header"] == "Region"  # type: ignore[index] # the tool's own stays


@pytest.mark.parametrize(
    "around",
    [
        lambda part: {"properties": {"a": {"type": "object", "properties": {"b": part}}}},
        lambda part: {"properties": {"a": {"items": part}}},
        lambda part: {"properties": {"a": {"items": [True, part]}}},
        lambda part: {"properties": {"a": {"anyOf": [{"type": "null"}, part]}}},
        lambda part: {"$defs": {"a": part}, "properties": {"a": {"$ref": "#/$defs/a"}}},
        lambda part: {"additionalProperties": part},
    ],
    ids=["object", "items", "tuple", "choice", "definition", "map"],
)
def test_header_names_are_removed_at_any_depth(around: Any) -> None:
    """In every keyword that contains schemas."""
    schema = {"type": "object", **around({"type": "string", "x-mcp-header": "Region"})}
    assert tool_entry(info(schema), NEW)["inputSchema"] == {"type": "object", **around({"type": "string"})}


def test_only_the_keyword_is_removed() -> None:
    """Properties of that name stay, and so do values that contain it."""
    value = {"x-mcp-header": "Region"}
    schema = {
        "type": "object",
        "properties": {"x-mcp-header": {"type": "string"}, "b": {"default": value, "enum": [value], "const": value}},
    }
    assert tool_entry(info(schema), NEW)["inputSchema"] == schema


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}}, {"a": 1}),
        ({"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer"}}}, [1, 2]),
        ({"type": ["object", "null"]}, None),
        (
            {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"$ref": "#/properties/a"}}},
            {"a": 1, "b": 2},
        ),
        ({"type": "array", "items": [{"type": "integer"}, {"$ref": "#/items/0"}], "$schema": _DRAFT_7}, [1, 2]),
        (
            {"type": "object", "properties": {"a": {"type": "integer"}, "next": {"$ref": "#"}}},
            {"a": 1, "next": {"a": 2, "next": {}}},
        ),
        (
            {
                "$id": "urn:x",
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/n"}, "b": {"$ref": "#/properties/a"}},
            }
            | {"$defs": {"n": {"type": "integer"}}},
            {"a": 1, "b": 2},
        ),
    ],
)
def test_results_match_the_output_schema(schema: dict[str, Any], value: Any) -> None:
    """Clients validate them: the tool's data, wrapped if it is not an object. Errors and spilled answers have none."""
    published = answer_schema(schema)
    assert published["type"] == "object"
    metadata = Metadata(1.0, Timings())
    answer = msgspec.to_builtins(call_result(ToolResult(metadata, (), value, typed=True), NEW))
    jsonschema.validate(answer["structuredContent"], published)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"a": "x", "result": ["x"]}, published)
    handle = msgspec.to_builtins(RetainedResult("h-1", 1, 9, "json", "2026-11-22T09:30:00Z"))
    error = ToolExecutionError("no").to_tool_error()
    failed = msgspec.to_builtins(call_result(ToolResult(metadata, error=error, typed=True), NEW))
    spilled = ToolResult(Metadata(1.0, Timings(), spilled=True), (), handle, typed=True)
    retained = msgspec.to_builtins(call_result(spilled, NEW))
    for result, key, value_there in ((failed, ERROR_KEY, error), (retained, RETAINED_KEY, handle)):
        assert (result["isError"], "structuredContent" in result) == (True, False)
        assert result["_meta"][key] == msgspec.to_builtins(value_there)


def test_an_object_schema_is_unchanged() -> None:
    """Clients see what the tool's server declares."""
    schema = {"type": "object", "properties": {"result": {"type": "string"}}, "x-fastmcp-wrap-result": True}
    assert answer_schema(schema) == schema


@pytest.mark.parametrize("wrong", [{"a": 1, "b": "x"}, {"next": {"next": {"a": "x"}}}])
def test_references_in_output_schemas_stay_valid(wrong: dict[str, Any]) -> None:
    """They lead to the same part of the tool's schema, which is nested deeper."""
    properties = {"a": {"type": "integer"}, "b": {"$ref": "#/properties/a"}, "next": {"$ref": "#"}}
    published = answer_schema({"type": "object", "properties": properties})
    jsonschema.validate({"a": 1, "b": 2, "next": {"next": {"a": 3}}}, published)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, published)


EVERY = pytest.mark.parametrize("revision", REVISIONS.values(), ids=REVISIONS)


def tool(**schema: Any) -> dict[str, Any]:
    return {"name": "t", "description": "A tool.", "inputSchema": schema}


@EVERY
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "properties": {"x": {"enum": [None]}}, "required": ["x"], "$defs": {"a": True}},
        {"type": "object", "additionalProperties": False, "properties": {"x": {}}},
    ],
)
def test_trivially_valid_tools_are_valid(schema: dict[str, Any], revision: McpRevision) -> None:
    """The types of every revision accept them."""
    assert is_trivially_valid(tool(**schema))
    assert schema_problem(official_types(), tool(**schema), revision) is None


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "string"},
        {"type": "object", "properties": []},
        {"type": "object", "properties": {"x": "nonsense"}},
        {"type": "object", "required": "x"},
        {"type": "object", "required": [1]},
    ],
)
def test_other_tools_are_validated(schema: dict[str, Any]) -> None:
    """They are not trivially valid, and some revision rejects them with a reason."""
    assert not is_trivially_valid(tool(**schema))
    assert any(schema_problem(official_types(), tool(**schema), revision) for revision in REVISIONS.values())
