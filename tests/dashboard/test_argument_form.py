"""The form of a tool's arguments, and the arguments that it says."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.dashboard import FormField, argument_form, child_name, form_arguments

RECURSIVE: dict[str, Any] = {
    "type": "object",
    "properties": {"node": {"$ref": "#/$defs/node"}},
    "$defs": {
        "node": {"type": "object", "properties": {"left": {"$ref": "#/$defs/node"}, "right": {"$ref": "#/$defs/node"}}}
    },
}


def form_of(**properties: Any) -> FormField:
    return argument_form({"type": "object", "properties": properties, "additionalProperties": False})


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "string"}, "text"),
        ({"type": "string", "maxLength": 20_000}, "long_text"),
        ({"type": "string", "writeOnly": True}, "secret"),
        ({"type": "string", "contentEncoding": "base64"}, "content"),
        ({"type": "integer"}, "number"),
        ({"type": "boolean"}, "boolean"),
        ({"enum": ["a", 1, None]}, "choice"),
        ({"const": "a"}, "choice"),
        ({"type": "array", "items": {"type": "string"}}, "list"),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, "group"),
        ({"type": "object"}, "json"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "union"),
        ({"type": ["string", "integer"]}, "union"),
        ({"type": ["string", "null"]}, "text"),
        ({"anyOf": [{"type": "number"}, {"type": "null"}]}, "number"),
        ({"oneOf": [{"const": "a"}, {"const": "b"}]}, "choice"),
        ({"allOf": [{"type": "boolean"}]}, "boolean"),
        ({}, "json"),
        ({"$ref": "https://192.0.2.1/schema"}, "json"),
        (True, "json"),
        ({"type": 7, "enum": "x", "anyOf": {}}, "json"),
    ],
)
def test_each_kind_of_argument_has_its_field(schema: Any, kind: str) -> None:
    """The kind of a field follows from the schema; what is not understood is written as JSON."""
    (field,) = form_of(value=schema).fields
    assert field.kind == kind


def test_lists_of_paths_are_written_in_lines() -> None:
    """An argument such as ``files`` takes one path per line."""
    form = form_of(files={"type": "array", "items": {"type": "string"}})
    assert form.fields[0].kind == "paths"
    read = form_arguments(form, {"/files": "a.py\r\n\r\n src/b.py "})
    assert read.arguments == {"files": ["a.py", "src/b.py"]}


def test_recursive_schemas_end_in_json() -> None:
    """A schema that refers to itself gives a form of bounded size."""

    def count(field: FormField) -> int:
        return 1 + sum(map(count, field.fields))

    form = argument_form(RECURSIVE)
    assert count(form) < 500
    read = form_arguments(form, {"/node/left/right/left/right/left/left": "{}"})
    assert read.problems == []
    assert read.arguments == {"node": {"left": {"right": {"left": {"right": {"left": {"left": {}}}}}}}}


def test_required_arguments_come_first() -> None:
    """The order is otherwise that of the schema."""
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in "abc"}, "required": ["c"]}
    assert [field.key for field in argument_form(schema).fields] == ["c", "a", "b"]


def test_values_are_read_by_their_kind() -> None:
    """Numbers, booleans, choices, lists of objects, unions and other parts become JSON values."""
    form = argument_form(
        {
            "type": "object",
            "properties": {
                "count": {"type": "integer"},
                "share": {"type": "number"},
                "sure": {"type": "boolean"},
                "how": {"enum": ["fast", 2]},
                "text": {"type": "string"},
                "rows": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"id": {"type": "integer"}, "t/x": {"type": "string"}}},
                },
                "value": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "number"}}]},
                "absent": {"type": "string"},
            },
        }
    )
    values = {
        "/count": "12345678901234567890",
        "/share": "0.5",
        "/sure": "false",
        "/how": "1",
        "/text": "two\r\nlines",
        "/rows/0/id": "1",
        "/rows/0/t~1x": "a",
        "/rows/7/id": "2",
        "/value|": "1",
        "/value|1/0": "1.5",
        "/value|0": "not chosen",
        "/absent": "",
        "|+": '{"other": [null], "count": 0}',
    }
    read = form_arguments(form, values)
    assert read.problems == []
    assert read.arguments == {
        "other": [None],
        "count": 12345678901234567890,
        "share": 0.5,
        "sure": False,
        "how": 2,
        "text": "two\nlines",
        "rows": [{"id": 1, "t/x": "a"}, {"id": 2}],
        "value": [1.5],
    }


def test_what_cannot_be_read_is_said() -> None:
    """Each wrong value is named by its path, and the others are read."""
    form = form_of(
        count={"type": "integer"},
        how={"enum": ["a"]},
        data={},
        rows={"type": "array", "items": {"type": "number"}},
        value={"anyOf": [{"type": "string"}, {"type": "integer"}]},
        good={"type": "string"},
    )
    wrong = {"/count": "1.5", "/how": "9" * 5000, "/data": "{", "/rows/0": "nan", "/value|": "7", "/good": "x"}
    read = form_arguments(form, wrong)
    assert [problem.partition(":")[0] for problem in read.problems] == ["count", "how", "data", "rows[0]", "value"]
    assert read.arguments == {"good": "x"}


def test_json_replaces_the_form() -> None:
    """With all arguments as JSON, the fields are ignored; anything but an object is a problem."""
    form = form_of(text={"type": "string"})
    assert form_arguments(form, {"|json": '{"a": 1}', "/text": "x"}).arguments == {"a": 1}
    for wrong in ("[1]", "{", "NaN", "[" * 100_000):
        read = form_arguments(form, {"|json": wrong})
        assert read.arguments == {}
        assert len(read.problems) == 1


def test_required_and_nullable() -> None:
    """An empty field of a required text is an empty text; of a required value that may be null, null."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": ["integer", "null"]}, "c": {"type": "integer"}},
        "required": ["a", "b", "c"],
    }
    assert form_arguments(argument_form(schema), {"/a": "", "/b": "", "/c": ""}).arguments == {"a": "", "b": None}


KEYS = st.text(min_size=1, max_size=8)


@given(
    st.dictionaries(
        KEYS,
        st.text(alphabet=st.characters(exclude_characters="\r", exclude_categories=["Cs"]), min_size=1),
        max_size=6,
    )
)
def test_any_key_can_be_read_back(texts: dict[str, str]) -> None:
    """Keys with the characters of paths are escaped."""
    form = form_of(**{key: {"type": "string"} for key in texts})
    values = {child_name("", key): text for key, text in texts.items()}
    assert len(values) == len(texts)
    assert form_arguments(form, values).arguments == texts


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["type", "properties", "items", "anyOf", "enum", "$ref", "default", "required", "allOf"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(
    st.dictionaries(st.sampled_from(["type", "properties", "required", "$defs", "additionalProperties"]), JSON),
    st.dictionaries(st.text(alphabet="/|~a0", max_size=6), st.text(max_size=5)),
)
def test_no_schema_and_no_form_fails(schema: dict[str, Any], values: dict[str, str]) -> None:
    """A schema of another server and a form of any browser give arguments that JSON can hold."""
    json.dumps(form_arguments(argument_form(schema), values).arguments)
