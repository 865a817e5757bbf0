"""Arguments validated by an external JSON Schema: which match, which are rejected, and the error messages."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.error_codes import InvalidArgumentsError
from toold.protocol.tool_call import Annotations
from toold.tools import JsonSchema, Tool, ToolContext, bind
from toold.tools.json_schema import MAX_DEPTH, MAX_VALUES_AT_ONCE, takes_long

CONTACT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2},
        "age": {"type": "integer", "minimum": 0},
        "kind": {"enum": ["lead", "customer"]},
        "version": {"const": "2021-07-28"},
        "id": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "maxItems": 3},
        "code": {"type": "string", "pattern": "^[A-Z]+$"},
        "pin": {"type": "integer", "writeOnly": True},
        "address": {"$ref": "#/$defs/Address"},
        "parent": {"$ref": "#"},
        "owner": {"oneOf": [{"$ref": "#/$defs/Address"}, {"type": "null"}]},
        "extras": {"type": "object", "patternProperties": {"^x-": {"type": "integer"}}, "additionalProperties": False},
    },
    "required": ["name"],
    "dependentRequired": {"pin": ["code"]},
    "additionalProperties": False,
    "$defs": {"Address": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}},
}


ANY_CONTACT = JsonSchema(CONTACT)


def wrong(arguments: dict[str, Any], schema: dict[str, Any] = CONTACT) -> dict[str, str]:
    """Return the errors by field."""
    with pytest.raises(InvalidArgumentsError) as caught:
        JsonSchema(schema).check("contact", arguments)
    assert caught.value.message.startswith("contact: ")
    details: dict[str, dict[str, str]] = caught.value.details or {}
    return details["fields"]


def test_valid_arguments_pass() -> None:
    """Valid arguments raise no error, including in references and recursive schemas."""
    JsonSchema(CONTACT).check(
        "contact",
        {
            "name": "Ann",
            "age": 5,
            "kind": "lead",
            "id": 7,
            "tags": ["a", "b"],
            "code": "ABC",
            "pin": 1,
            "address": {"city": "Bern"},
            "parent": {"name": "Bob"},
            "owner": None,
            "extras": {"x-a": 1},
        },
    )


@pytest.mark.parametrize(
    ("arguments", "field", "message"),
    [
        ({}, "name", "is missing; it should be a string"),
        ({"name": 5}, "name", "should be a string, not 5"),
        ({"name": "A"}, "name", "should have 2 characters or more"),
        ({"name": "Ann", "age": -1}, "age", "should be 0 or more, not -1"),
        ({"name": "Ann", "age": True}, "age", "should be an integer, not true"),
        ({"name": "Ann", "kind": "lede"}, "kind", 'should be one of "lead", "customer", not "lede"'),
        ({"name": "Ann", "version": "1"}, "version", 'should be "2021-07-28", not "1"'),
        ({"name": "Ann", "id": None}, "id", "should be a string or an integer, not null"),
        ({"name": "Ann", "tags": ["a", "a"]}, "tags", "should have no two equal items"),
        ({"name": "Ann", "tags": ["a", 2]}, "tags.1", "should be a string, not 2"),
        ({"name": "Ann", "tags": list("abcd")}, "tags", "should have 3 items or fewer"),
        ({"name": "Ann", "code": "abc"}, "code", "should match the pattern ^[A-Z]+$"),
        ({"name": "Ann", "pin": "12345", "code": "A"}, "pin", "should be an integer, not a string of 5 characters"),
        ({"name": "Ann", "pin": 1}, "code", "is missing; it is required with pin"),
        ({"name": "Ann", "address": {}}, "address.city", "is missing; it should be a string"),
        ({"name": "Ann", "parent": {"name": 1}}, "parent.name", "should be a string, not 1"),
        ({"name": "Ann", "owner": {"city": 1}}, "owner.city", "should be a string, not 1"),
        ({"name": "Ann", "nmae": "x"}, "nmae", "is not an argument; did you mean 'name'?"),
        ({"name": "Ann", "extras": {"y": 1}}, "extras.y", "is not an argument; it takes none"),
        ({"name": "Ann", "extras": {"x-a": "1"}}, "extras.x-a", 'should be an integer, not "1"'),
    ],
)
def test_errors_name_the_field_and_its_expected_value(arguments: dict[str, Any], field: str, message: str) -> None:
    """Each error gives the path of the field, the expected value, and the actual value unless the field is
    write-only."""
    assert wrong(arguments) == {field: message}


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "string"}, '"type": "object"'),
        ({"type": "objekt"}, "not a JSON Schema"),
        ({"type": "object", "$schema": {}}, "at $schema"),
        ({"type": "object", "$dynamicRef": "#gone"}, "#gone"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/Gone"}}}, "#/$defs/Gone"),
        ({"type": "object", "properties": {"a": {"$ref": "https://elsewhere.example/schema"}}}, "elsewhere.example"),
    ],
)
def test_an_invalid_argument_schema_is_rejected(schema: dict[str, Any], message: str) -> None:
    """A schema is rejected if it is invalid, does not describe an object or has an unknown reference.

    References are never fetched.
    """
    with pytest.raises(ValueError, match=message.replace("$", r"\$")):
        JsonSchema(schema)


def test_a_pattern_cannot_backtrack_exponentially() -> None:
    """Patterns run in linear time; patterns that RE2 does not support are not checked."""
    schema = {
        "type": "object",
        "properties": {"a": {"pattern": "^(a+)+$"}, "b": {"pattern": r"^(?=x)\1"}},
    }
    began = time.process_time()
    assert wrong({"a": "a" * 40 + "!"}, schema) == {"a": "should match the pattern ^(a+)+$"}
    JsonSchema(schema).check("t", {"b": "whatever"})
    assert time.process_time() - began < 30


def test_references_cannot_multiply_the_work() -> None:
    """Forty definitions that each refer twice to the next would take 2⁴⁰ steps."""
    definitions = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)} | {"d40": {}}
    schema = JsonSchema({"type": "object", "$ref": "#/$defs/d0", "$defs": definitions})
    schema.check_at_once("tool", {})  # gives up, so that the check runs in a thread, with more steps
    assert schema.takes_long({})
    with pytest.raises(InvalidArgumentsError, match="refers to itself too often"):
        schema.check("tool", {})


@pytest.mark.parametrize(
    ("properties", "value"),
    [
        ({"a": {"$ref": "#/properties/a"}}, 1),
        ({"a": {"$ref": "#/properties/b/default"}, "b": {"default": {"type": "nonsense"}}}, 1),
        ({"a": {"$ref": "#/properties/b/default"}, "b": {"default": {"properties": "x"}}}, {}),
        ({"a": {"$ref": "#/properties/b/default"}, "b": {"default": 5}}, 1),
        ({"a": {"multipleOf": 0.1}}, 10**400),
    ],
)
def test_arguments_that_a_schema_cannot_check_are_rejected(properties: dict[str, Any], value: object) -> None:
    """A schema may be valid by its metaschema and have no meaning, or need a number that a double cannot hold."""
    with pytest.raises(InvalidArgumentsError, match="cannot be checked with these arguments"):
        JsonSchema({"type": "object", "properties": properties}).check("tool", {"a": value})


def test_deeply_nested_arguments_are_rejected() -> None:
    """Arguments that would exhaust Python's stack cause a validation error."""
    deep: dict[str, Any] = {"name": "Ann"}
    for _ in range(MAX_DEPTH + 5):
        deep = {"name": "Ann", "parent": deep}
    assert "nested more than" in wrong(deep)["arguments"]


def test_an_unpaired_surrogate_is_rejected() -> None:
    """Text that cannot be encoded as UTF-8 is rejected."""
    assert "surrogate" in wrong({"name": "Ann\ud800"})["arguments"]


def test_many_unknown_fields_are_bounded() -> None:
    """The error lists at most 64 fields."""
    assert len(wrong({f"f{number}": 1 for number in range(1000)})) == 64


@given(
    st.dictionaries(st.text(), st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=8), max_size=5)
)
def test_any_arguments_match_or_are_rejected(arguments: dict[str, Any]) -> None:
    """Any JSON object either passes or is rejected with an error that names fields."""
    try:
        ANY_CONTACT.check("contact", arguments)
    except InvalidArgumentsError as error:
        reported = error.details
    else:
        return
    assert reported is not None
    assert reported["fields"]


async def test_large_arguments_are_validated_when_the_call_runs(context: ToolContext) -> None:
    """``bind`` defers validation that would block the event loop.

    It runs outside the loop, before the tool's function.
    """
    entered = []

    async def function(arguments: dict[str, Any], _: ToolContext) -> str:
        entered.append(arguments)
        return "done"

    schema = {"type": "object", "properties": {"values": {"type": "array", "items": {"type": "integer"}}}}
    many = Tool("many", "Takes many.", JsonSchema(schema), function, Annotations(True, False, True, True))
    right: dict[str, Any] = {"values": [1] * (MAX_VALUES_AT_ONCE + 1)}
    assert takes_long(right)
    assert not takes_long({"values": [1] * 10})
    assert await many.run(bind(many, right), context) == "done"
    with pytest.raises(InvalidArgumentsError, match=r"values\.500 should be an integer"):
        await many.run(bind(many, {"values": [1] * MAX_VALUES_AT_ONCE + ["x"]}), context)
    assert len(entered) == 1
    with pytest.raises(InvalidArgumentsError):
        bind(many, {"values": "x"})


@pytest.mark.slow
def test_a_schema_of_thousands_of_levels_is_refused() -> None:
    """A schema nested more deeply than the compiled metaschema can check is refused; the process survives it."""
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(20_000):
        schema = {"type": "object", "properties": {"x": schema}}
    with pytest.raises(ValueError, match="nested too deeply"):
        JsonSchema(schema)


@pytest.mark.parametrize("draft", ["draft-03/schema#", "draft-04/schema#", "draft-07/schema#"])
def test_a_schema_of_an_earlier_draft_is_checked(draft: str) -> None:
    """A schema is checked by the rules of its draft, also if that has no compiled metaschema."""
    schema = {"$schema": f"http://json-schema.org/{draft}", "type": "object"}
    assert JsonSchema(schema).schema == schema
    with pytest.raises(ValueError, match="not a JSON Schema: at properties/x"):
        JsonSchema({**schema, "properties": {"x": {"minLength": "1"}}})
