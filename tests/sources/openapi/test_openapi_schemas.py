"""OpenAPI schemas become JSON Schema, whatever is wrong with them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from toold.sources.openapi.json_references import DocumentNode, JsonReferences
from toold.sources.openapi.openapi_schemas import MAX_SUBSCHEMAS, SchemaReader
from toold.sources.source import SourceNotes

URI = "file:///crm.json"


def read(schema: Any, **schemas: Any) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Returns the converted schema, its definitions and the notes."""
    document = {"components": {"schemas": schemas}}
    notes = SourceNotes("here")
    reader = SchemaReader(JsonReferences({URI: document}, {}), notes)
    expected = reader.read(DocumentNode(schema, URI))
    return expected, reader.definitions, [note.what for note in notes.collected()]


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


@pytest.mark.parametrize(
    ("schema", "expected"),
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
def test_a_valid_schema_is_converted(schema: Any, expected: dict[str, Any]) -> None:
    """OpenAPI 3.0 keywords are translated, 3.1 ones stay, read-only properties are omitted; there are no notes."""
    assert read(schema) == (expected, {}, [])


@pytest.mark.parametrize(
    ("schema", "expected", "note"),
    [
        ({"type": "int"}, {"type": "integer"}, "the type 'int' is not a JSON type; treated as integer"),
        ({"type": "String"}, {"type": "string"}, "treated as string"),
        ({"type": "any"}, {}, "treated as any value"),
        ({"type": "Widget"}, {}, "the type 'Widget' is not a JSON type; treated as any value"),
        ({"type": 7}, {}, "treated as any value"),
        ({"type": "file"}, {"type": "string", "format": "binary"}, "treated as string"),
        ({"type": "string", "enum": [1, 2]}, {"enum": [1, 2]}, "no value of enum has the schema's type"),
        ({"enum": "a"}, {}, "enum is not a list"),
        ({"type": "array", "items": [{"type": "string"}]}, {"type": "array"}, "items is a list"),
        ({"properties": ["a"]}, {}, "properties is not an object"),
        ({"properties": {"a": "string"}}, {"type": "object", "properties": {"a": {}}}, "the property a has no schema"),
        ({"anyOf": "x"}, {}, "anyOf is not a list of schemas"),
        ({"not": 5}, {}, "not is not a schema"),
        ("string", {}, "a schema is not an object"),
        (ref("Gone"), {}, "#/components/schemas/Gone leads nowhere"),
        (
            {"properties": {"a": {"type": "string", "required": True}}},
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            "required is set within a",
        ),
    ],
)
def test_an_invalid_schema_is_repaired_with_a_note(schema: Any, expected: dict[str, Any], note: str) -> None:
    """Unknown types, enums of another type, invalid subschemas, broken references."""
    got, _, notes = read(schema)
    assert got == expected
    assert len(notes) == 1
    assert note in notes[0]


def test_invalid_keyword_values_are_omitted() -> None:
    """Such as bounds that are not numbers."""
    wrong = {"minimum": "1", "maxLength": -1, "pattern": 5, "uniqueItems": "yes", "multipleOf": 0, "required": "all"}
    assert read(wrong)[0] == {}


def test_a_recursive_schema_stays_recursive() -> None:
    """A referenced structure has one definition, which refers to itself."""
    node = {"type": "object", "properties": {"next": ref("Node"), "all": {"type": "array", "items": ref("Node")}}}
    expected, definitions, notes = read(ref("Node"), Node=node)
    assert expected == {"$ref": "#/$defs/Node"}
    assert definitions["Node"]["properties"]["next"] == {"$ref": "#/$defs/Node"}
    assert notes == []
    Draft202012Validator({**expected, "$defs": definitions}).validate({"next": {"all": [{}]}})


def test_small_schemas_are_inlined() -> None:
    """Models read types more easily than references; a description next to one stays."""
    expected, definitions, _ = read(
        {**ref("Id"), "description": "Whose"}, Id={"type": "string", "description": "An id"}
    )
    assert expected == {"type": "string", "description": "Whose"}
    assert definitions == {}


def test_a_nullable_reference_takes_null() -> None:
    """OpenAPI 3.0 ignores keywords next to a reference, but authors mean them."""
    expected, _, _ = read({**ref("Thing"), "nullable": True}, Thing={"properties": {}})
    assert expected == {"anyOf": [{"$ref": "#/$defs/Thing"}, {"type": "null"}]}


def test_circular_references_accept_any_value() -> None:
    """Two names that refer to each other."""
    expected, _, notes = read(ref("A"), A=ref("B"), B=ref("A"))
    assert expected == {}
    assert "is circular" in notes[0]


def test_the_size_of_a_schema_is_limited() -> None:
    """References past the limit accept any value."""
    schemas = {f"S{n}": {"properties": {f"p{m}": ref(f"S{n + 1}") for m in range(3)}} for n in range(MAX_SUBSCHEMAS)}
    expected, definitions, notes = read(ref("S0"), **schemas)
    assert expected == {"$ref": "#/$defs/S0"}
    assert 10 < len(definitions) <= MAX_SUBSCHEMAS
    assert any("the rest is treated as any value" in note for note in notes)


def test_shared_subschemas_do_not_explode() -> None:
    """A small text with nested aliases must not become a schema with a million parts."""
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
def test_any_value_becomes_a_valid_schema(schema: Any) -> None:
    """Invalid values only cause notes."""
    expected, definitions, _ = read(schema)
    Draft202012Validator.check_schema({**expected, "$defs": definitions})
