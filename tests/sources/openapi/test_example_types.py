"""Objects without properties take the types that their examples and descriptions show."""

from typing import Any

import pytest

DATE = {"type": "object", "description": "The birth date", "example": "1990-09-25"}


def body(schema: Any, **media: Any) -> dict[str, Any]:
    return {"requestBody": {"content": {"application/json": {"schema": schema, **media}}}}


@pytest.mark.parametrize(
    ("part", "value"),
    [
        (DATE, "1991-01-02"),
        (DATE | {"nullable": True}, None),
        ({"type": "object", "example": 100}, 7.5),
        ({"type": "object", "default": False}, True),
        ({"type": "object", "examples": [["a"]]}, ["b"]),
        ({"type": "object", "description": "Supported formats: YYYY/MM/DD"}, "1991/01/02"),
        ({"type": "object", "format": "date-time"}, "2024-01-01T00:00:00Z"),
        ({"type": "array", "items": {"type": "object"}, "example": ["a", 1]}, ["b", 2]),
        ({"type": "object", "properties": {"at": {"type": "object"}}, "example": {"at": "now"}}, {"at": "later"}),
        ({"$ref": "#/components/schemas/Any", "example": "x"}, "y"),
    ],
)
def test_an_object_takes_what_its_example_shows(part: Any, value: Any, read_one: Any) -> None:
    """A date, number, flag or list is accepted, and an object still is, at any level."""
    components = {"schemas": {"Any": {"type": "object"}}}
    operation = read_one(body({"type": "object", "properties": {"a": part}}), components=components)
    operation.arguments.check("op", {"a": value})
    if part["type" if "type" in part else "$ref"] != "array":
        operation.arguments.check("op", {"a": {}})


@pytest.mark.parametrize(
    "part",
    [
        {"type": "object"},
        {"type": "object", "example": {"a": 1}},
        {"type": "object", "example": '{"a": 1}'},
        {"type": "object", "description": "A date range: from and to"},
        {"type": "object", "properties": {"a": {}}, "example": "x"},
        {"type": "integer", "example": "five"},
    ],
)
def test_other_schemas_stay_strict(part: Any, read_one: Any) -> None:
    """An object with properties, or whose example is an object, takes no text; nor does another type."""
    operation = read_one(body({"type": "object", "properties": {"a": part}}))
    with pytest.raises(Exception, match="a should be"):
        operation.arguments.check("op", {"a": "x"})


def test_examples_of_parameters_and_media_types_count(read_one: Any) -> None:
    """They are next to the schema; the caller sees the shown value."""
    parameter = {"name": "since", "in": "query", "schema": {"type": "object"}, "examples": {"a": {"value": "2024"}}}
    schema = {"type": "object", "properties": {"until": {"type": "object"}}}
    operation = read_one({"parameters": [parameter], **body(schema, example={"until": "2025"})})
    properties = operation.arguments.schema["properties"]
    assert properties["since"] == {"type": ["string", "object"], "examples": ["2024"]}
    assert properties["until"] == {"type": ["string", "object"], "examples": ["2025"]}


def test_any_form_of_overlapping_alternatives_is_accepted(read_one: Any) -> None:
    """Forms of a ``oneOf`` that fit at the same time: the API decides which one the value has."""
    forms = [{"type": "string"}, {"type": "string", "format": "date"}, {"type": "object", "properties": {"a": {}}}]
    both = {"oneOf": forms, "anyOf": [{"minLength": 2}, {"type": "null"}]}
    operation = read_one(body({"type": "object", "properties": {"a": {"oneOf": forms}, "b": both}}))
    operation.arguments.check("op", {"a": "2024-01-01", "b": "ab"})
    for wrong in ({"a": 1}, {"b": "a"}):
        with pytest.raises(Exception, match=r"matches none|should"):
            operation.arguments.check("op", wrong)
