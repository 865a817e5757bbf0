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
        ({"anyOf": [{"type": "boolean"}, {"$ref": "#/$defs/Level"}]}, "true or false or low or high"),
        ({}, "any"),
        ({"enum": [None, True, 1, 1.5, [], {}]}, "null or true or 1 or 1.5 or [] or {}"),
    ],
)
def test_accepted_types_are_described_for_people(part: dict[str, Any], words: str) -> None:
    """The description of an argument names its types, or its values if the schema lists them."""
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
    """A schema's types follow from ``type``, from its alternatives, from its values, or from a reference."""
    assert types_of(part, SCHEMA) == types


def test_a_self_referencing_schema_accepts_anything() -> None:
    """References that lead back to the schema itself restrict nothing."""
    assert types_of({"$ref": "#/$defs/Loop"}, SCHEMA) == types_of({}, SCHEMA)


def test_text_is_accepted_where_a_string_is() -> None:
    """Text is accepted for a string, and as one of the listed values."""
    assert takes_text({"anyOf": [{"type": "integer"}, {"type": "string"}]}, SCHEMA, "1")
    assert takes_text({"$ref": "#/$defs/Level"}, SCHEMA, "low")
    assert not takes_text({"$ref": "#/$defs/Level"}, SCHEMA, "middle")
    assert not takes_text({"type": "integer"}, SCHEMA, "1")


def test_the_items_of_an_array() -> None:
    """The element schema is found in alternatives, too; without one, elements can be anything."""
    assert items_of({"anyOf": [{"type": "null"}, {"items": {"type": "integer"}}]}, SCHEMA) == {"type": "integer"}
    assert items_of({"type": "array"}, SCHEMA) == {}
