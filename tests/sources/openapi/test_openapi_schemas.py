"""Schemas: OpenAPI's become JSON Schema's, whatever is wrong with them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from toold.sources.openapi.json_references import JsonReferences, ReferencePlace
from toold.sources.openapi.openapi_schemas import MAX_PARTS, SchemaReader
from toold.sources.source import SourceNotes

URI = "file:///crm.json"


def read(schema: Any, **schemas: Any) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """The schema rewritten, its definitions, and the notes."""
    document = {"components": {"schemas": schemas}}
    notes = SourceNotes("here")
    reader = SchemaReader(JsonReferences({URI: document}, {}), notes)
    made = reader.read(ReferencePlace(schema, URI))
    return made, reader.definitions, [note.what for note in notes.collected()]


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "enum": ["a"], "nullable": True}, {"type": ["string", "null"], "enum": ["a", None]}),
        (
            {"allOf": [{"type": "string"}], "nullable": True},
            {"anyOf": [{"allOf": [{"type": "string"}]}, {"type": "null"}]},
        ),
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"minimum": 1, "exclusiveMinimum": False}, {"minimum": 1}),
        ({"exclusiveMinimum": 1}, {"exclusiveMinimum": 1}),
        ({"type": ["string", "null"], "const": "x"}, {"type": ["string", "null"], "const": "x"}),
        ({"type": "string", "example": "x", "xml": {}, "x-mine": 1, "title": "T"}, {"type": "string"}),
        ({"properties": {"a": True}}, {"type": "object", "properties": {"a": True}}),
        (
            {"type": "object", "properties": {"id": {"readOnly": True}, "a": {}}, "required": ["id", "a"]},
            {"type": "object", "properties": {"a": {}}, "required": ["a"]},
        ),
        ({"description": " two\n words "}, {"description": "two words"}),
        (False, {"not": {}}),
        (True, {}),
    ],
)
def test_what_is_right_means_the_same(schema: Any, made: dict[str, Any]) -> None:
    """3.0's own words become JSON Schema's, 3.1's stay, answers' own properties go; and nothing is noted."""
    assert read(schema) == (made, {}, [])


@pytest.mark.parametrize(
    ("schema", "made", "noted"),
    [
        ({"type": "int"}, {"type": "integer"}, "the type 'int' is none of JSON's; taken as integer"),
        ({"type": "String"}, {"type": "string"}, "taken as string"),
        ({"type": "any"}, {}, "taken as any value"),
        ({"type": "Widget"}, {}, "the type 'Widget' is none of JSON's; taken as any value"),
        ({"type": 7}, {}, "taken as any value"),
        ({"type": "file"}, {"type": "string", "format": "binary"}, "taken as string"),
        ({"type": "string", "enum": [1, 2]}, {"enum": [1, 2]}, "no value of enum has the schema's type"),
        ({"enum": "a"}, {}, "enum is no list"),
        ({"type": "array", "items": [{"type": "string"}]}, {"type": "array"}, "items is a list"),
        ({"properties": ["a"]}, {}, "properties is no object"),
        ({"properties": {"a": "string"}}, {"type": "object", "properties": {"a": {}}}, "the property a has no schema"),
        ({"anyOf": "x"}, {}, "anyOf is no list of schemas"),
        ({"not": 5}, {}, "not is no schema"),
        ("string", {}, "a schema is no object"),
        (ref("Gone"), {}, "#/components/schemas/Gone leads nowhere"),
        (
            {"properties": {"a": {"type": "string", "required": True}}},
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            "required stands within a",
        ),
    ],
)
def test_what_is_wrong_is_mended_and_noted(schema: Any, made: dict[str, Any], noted: str) -> None:
    """Odd types, enums of another type, parts that are no schemas, broken references: something comes of each."""
    got, _, notes = read(schema)
    assert got == made
    assert len(notes) == 1
    assert noted in notes[0]


def test_what_a_keyword_cannot_be_is_left_out() -> None:
    """Bounds that are no numbers, and the like, bound nothing."""
    wrong = {"minimum": "1", "maxLength": -1, "pattern": 5, "uniqueItems": "yes", "multipleOf": 0, "required": "all"}
    assert read(wrong)[0] == {}


def test_what_is_recursive_stays_so() -> None:
    """A structure that is referred to has one definition, which refers to itself."""
    node = {"type": "object", "properties": {"next": ref("Node"), "all": {"type": "array", "items": ref("Node")}}}
    made, definitions, notes = read(ref("Node"), Node=node)
    assert made == {"$ref": "#/$defs/Node"}
    assert definitions["Node"]["properties"]["next"] == {"$ref": "#/$defs/Node"}
    assert notes == []
    Draft202012Validator({**made, "$defs": definitions}).validate({"next": {"all": [{}]}})


def test_small_schemas_stand_where_they_are_referred_to() -> None:
    """A model reads a type more easily than a reference to one; a description beside a reference is kept."""
    made, definitions, _ = read({**ref("Id"), "description": "Whose"}, Id={"type": "string", "description": "An id"})
    assert made == {"type": "string", "description": "Whose"}
    assert definitions == {}


def test_a_nullable_reference_takes_null() -> None:
    """Strictly 3.0 ignores what stands beside a reference; people mean it."""
    made, _, _ = read({**ref("Thing"), "nullable": True}, Thing={"properties": {}})
    assert made == {"anyOf": [{"$ref": "#/$defs/Thing"}, {"type": "null"}]}


def test_references_that_go_round_end() -> None:
    """Two names that stand for each other stand for any value."""
    made, _, notes = read(ref("A"), A=ref("B"), B=ref("A"))
    assert made == {}
    assert "goes round in a circle" in notes[0]


def test_a_schema_has_a_bound() -> None:
    """What is referred to past it is any value: a model has to read it all."""
    schemas = {f"S{n}": {"properties": {f"p{m}": ref(f"S{n + 1}") for m in range(3)}} for n in range(MAX_PARTS)}
    made, definitions, notes = read(ref("S0"), **schemas)
    assert made == {"$ref": "#/$defs/S0"}
    assert 10 < len(definitions) <= MAX_PARTS
    assert any("more than" in note for note in notes)


def test_what_is_shared_many_times_does_not_grow_without_end() -> None:
    """A small text whose aliases stand for each other's doubles makes no schema of a million parts."""
    part: Any = {"type": "string"}
    for _ in range(40):
        part = {"allOf": [part, part]}
    _, _, notes = read(part)
    assert notes


KEYWORDS = (
    "type properties items required enum allOf $ref nullable minimum description exclusiveMinimum additionalProperties "
    "pattern const default not format minLength"
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["string", "object", "#/x", "array"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYWORDS.split()), inner, max_size=4),
    max_leaves=15,
)


@given(JSON)
def test_whatever_stands_there_becomes_a_schema(schema: Any) -> None:
    """No value at all in a schema's place does more harm than a note."""
    made, definitions, _ = read(schema)
    Draft202012Validator.check_schema({**made, "$defs": definitions})
