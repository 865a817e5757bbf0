"""Generation of values that match a JSON Schema."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.providers.simulator.schema_example import value_for

FINDINGS = {
    "type": "object",
    "properties": {
        "findings": {"type": "array", "items": {"$ref": "#/$defs/finding"}, "minItems": 2},
        "summary": {"anyOf": [{"type": "null"}, {"type": "string"}]},
        "confidence": {"type": ["null", "number"], "minimum": 0, "maximum": 0.5},
    },
    "required": ["findings"],
    "$defs": {
        "finding": {
            "type": "object",
            "properties": {
                "severity": {"enum": ["high", "low"]},
                "line": {"type": "integer", "minimum": 7},
                "file": {"type": "string", "maxLength": 5},
                "fixed": {"type": "boolean"},
                "cause": {"$ref": "#/$defs/finding"},
            },
            "required": ["severity"],
        }
    },
}


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Whether a value matches a schema at every level. Supports only the schemas that ``schemas`` generates."""
    if "enum" in schema:
        return value in list(schema["enum"])
    match schema["type"]:
        case "object":
            return all(fits(value[name], inner) for name, inner in schema["properties"].items())
        case "array":
            bounded: bool = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 99)
            return bounded and all(fits(item, schema["items"]) for item in value)
        case "string":
            return bool(schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 99))
        case "integer":
            return type(value) is int and schema.get("minimum", -99) <= value <= schema.get("maximum", 99)
        case "number":
            return type(value) is float and schema.get("minimum", -99) <= value <= schema.get("maximum", 99)
        case kind:
            return type(value) is bool if kind == "boolean" else value is None


bounds = st.tuples(st.integers(-20, 20), st.integers(0, 20)).map(lambda at: {"minimum": at[0], "maximum": sum(at)})
lengths = st.tuples(st.integers(0, 5), st.integers(0, 5))
leaves = st.one_of(
    st.just({"type": "boolean"}),
    st.just({"type": "null"}),
    st.just({"enum": [3, "x"]}),
    lengths.map(lambda at: {"type": "string", "minLength": at[0], "maxLength": sum(at)}),
    st.builds(lambda kind, at: {"type": kind, **at}, st.sampled_from(["integer", "number"]), bounds),
)
schemas = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from("abc"), inner).map(lambda result: {"type": "object", "properties": result}),
        st.builds(
            lambda items, at: {"type": "array", "items": items, "minItems": at[0], "maxItems": sum(at)}, inner, lengths
        ),
    ),
    max_leaves=8,
)


@given(schemas)
def test_generated_values_match_the_schema(schema: dict[str, Any]) -> None:
    """A generated value matches types, bounds, lengths and enums at any nesting depth."""
    assert fits(value_for(schema), schema)


def test_realistic_tool_schema_is_supported() -> None:
    """References, alternatives, enums and bounds are supported. Free text is marked as simulated,
    and recursion ends.
    """
    value = value_for(FINDINGS)
    assert value["summary"] == "Simulated summary"
    assert 0 <= value["confidence"] <= 0.5
    first, second = value["findings"]
    assert first == second
    assert (first["severity"], first["line"], first["file"], first["fixed"]) == ("high", 7, "Simul", True)
    assert "Simulated" in str(first["cause"]) or first["cause"]["severity"] == "high"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"const": 3}, 3),
        ({"properties": {"a": {"type": "null"}}}, {"a": None}),
        ({"type": "object", "required": ["a"]}, {"a": "Simulated a"}),
        ({"allOf": [{"properties": {"a": {"const": 1}}}, {"properties": {"b": {"const": 2}}}]}, {"a": 1, "b": 2}),
        ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, 1),
        ({"type": "integer", "exclusiveMinimum": 4, "multipleOf": 3}, 6),
        ({"type": "string", "format": "date"}, "2026-01-01"),
        ({"type": "array", "maxItems": 0}, []),
        ({}, "Simulated answer"),
        (True, "Simulated answer"),
    ],
)
def test_schema_keywords_are_supported(schema: Any, value: Any) -> None:
    """Each keyword determines the generated value."""
    assert value_for(schema) == value
