"""The types that a schema accepts, for people and for the command line."""

from typing import Any

import pytest
from toold.cli.argument_schema import items_of, takes_text, types_in_words, types_of

SCHEMA: dict[str, Any] = {"$defs": {"Level": {"enum": ["low", "high"]}, "Loop": {"$ref": "#/$defs/Loop"}}}


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"type": "string"}, "string"),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, "integer or null"),
        ({"type": "array", "items": {"type": "string"}}, "array of string"),
        ({"type": "array"}, "array"),
        ({"$ref": "#/$defs/Level"}, "low or high"),
        ({}, "any"),
        ({"enum": [None, True, 1, 1.5, [], {}]}, "null or true or 1 or 1.5 or [] or {}"),
    ],
)
def test_accepted_types_are_described_for_people(part: dict[str, Any], words: str) -> None:
    """A person reads what an argument takes: its types, or the values that are named one by one."""
    assert types_in_words(part, SCHEMA) == words


@pytest.mark.parametrize(
    ("part", "types"),
    [
        ({"type": ["integer", "boolean"]}, {"integer", "boolean"}),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"string", "null"}),
        ({"enum": [1, "one", None]}, {"integer", "string", "null"}),
        ({"const": True}, {"boolean"}),
        ({"$ref": "#/$defs/Level"}, {"string"}),
    ],
)
def test_the_types_that_fit(part: dict[str, Any], types: set[str]) -> None:
    """By name, by choice, by value, or by what is referred to."""
    assert types_of(part, SCHEMA) == types


def test_a_self_referencing_schema_accepts_anything() -> None:
    """It says nothing, however long it is followed."""
    assert types_of({"$ref": "#/$defs/Loop"}, SCHEMA) == types_of({}, SCHEMA)


def test_text_is_accepted_where_a_string_is() -> None:
    """And where it is one of the named values."""
    assert takes_text({"anyOf": [{"type": "integer"}, {"type": "string"}]}, SCHEMA, "1")
    assert takes_text({"$ref": "#/$defs/Level"}, SCHEMA, "low")
    assert not takes_text({"$ref": "#/$defs/Level"}, SCHEMA, "middle")
    assert not takes_text({"type": "integer"}, SCHEMA, "1")


def test_the_items_of_an_array() -> None:
    """Also where the array is one choice of several; anything where nothing is said of them."""
    assert items_of({"anyOf": [{"type": "null"}, {"items": {"type": "integer"}}]}, SCHEMA) == {"type": "integer"}
    assert items_of({"type": "array"}, SCHEMA) == {}
