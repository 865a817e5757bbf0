"""The stub of one tool: its signature, and the conversion of its arguments."""

from typing import Any

import msgspec
import pytest
from toold.protocol.tool_call import Annotations, ToolInfo
from toold.tools.stubs.function_stub import FunctionStub, class_names, function_stub
from toold.tools.stubs.type_writer import MAX_CLASSES, MAX_DEPTH, MAX_FIELDS

HINTS = Annotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


def stub(properties: dict[str, Any], /, *, output: dict[str, Any] | None = None, **schema: Any) -> FunctionStub:
    takes = {"type": "object", "additionalProperties": False, "properties": properties, **schema}
    info = ToolInfo("find", "Find it. Or not.", takes, HINTS, msgspec.UNSET if output is None else output)
    return function_stub(info, "find", class_names("Find", ["find"]))


def line(properties: dict[str, Any], **schema: Any) -> str:
    return stub(properties, **schema).source("...").splitlines()[0]


TEXT = {"type": "string"}


def test_required_arguments_come_first() -> None:
    """Optional arguments have their default; without a known default the argument may be None, which omits it."""
    properties = {"limit": {"type": "integer", "default": 10}, "tag": TEXT, "query": TEXT, "at": {"type": "number"}}
    assert line(properties, required=["query"]) == (
        "async def find(*, query: str, limit: int = 10, tag: str | None = None, at: float | None = None) -> Any:"
    )


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({}, "Any = None"),
        (True, "Any = None"),
        ({"enum": ["a", "b"], "default": "a"}, 'Literal["a", "b"] = "a"'),
        ({"enum": ["a"], "default": "c"}, 'Literal["a"] | None = None'),
        ({"const": 5}, "Literal[5] | None = None"),
        ({"type": ["string", "null"]}, "str | None = None"),
        ({"type": "integer", "default": "five"}, "int | None = None"),
        ({"type": "boolean", "default": False}, "bool = False"),
        ({"type": "array", "items": {"type": "integer"}, "default": []}, "list[int] | None = None"),
        ({"type": "array"}, "list[Any] | None = None"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "dict[str, float] | None = None"),
        ({"type": "object"}, "dict[str, Any] | None = None"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}, "str | None = None"),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}], "default": 3}, "str | int = 3"),
        ({"type": "string", "anyOf": [{"pattern": "a"}, {"pattern": "b"}]}, "str | None = None"),
        ({"allOf": [{"type": "string"}, {"maxLength": 3}]}, "str | None = None"),
        ({"$ref": "#/$defs/Name"}, "str | None = None"),
        ({"$ref": "#/$defs/Gone"}, "Any = None"),
        ({"$ref": "elsewhere.json"}, "Any = None"),
        ({"$ref": "#/$defs/Loop"}, "Any = None"),
        ({"$ref": "#/$defs/Nested"}, "str | list[Any] | None = None"),
        ({"type": "string", "default": "x" * 60}, "str | None = None"),
    ],
)
def test_each_schema_has_a_type(schema: Any, written: str) -> None:
    """The annotation is as precise as a Python type allows."""
    parts = {
        "Name": {"type": "string"},
        "Loop": {"$ref": "#/$defs/Loop"},
        "Nested": {"anyOf": [TEXT, {"type": "array", "items": {"$ref": "#/$defs/Nested"}}]},
    }
    assert line({"a": schema}, **{"$defs": parts}) == f"async def find(*, a: {written}) -> Any:"


def test_descriptions_become_comments() -> None:
    """Each described argument has its own line, and the docstring is the first sentence of the tool's description."""
    assert stub({"query": {**TEXT, "description": "What to\nlook for."}}, required=["query"]).source("...") == (
        'async def find(\n    *,\n    query: str,  # What to look for\n) -> Any:\n    """Find it."""\n    ...'
    )


def test_objects_become_classes() -> None:
    """A class is named after the function and its use; a recursive object is one class."""
    tree = {
        "type": "object",
        "properties": {"name": {**TEXT, "description": "Its name."}, "children": {"items": {"$ref": "#/$defs/Tree"}}},
        "required": ["name"],
    }
    tree["properties"]["children"]["type"] = "array"  # type: ignore[index] # the values have several types
    stub_text = stub({"root": {"$ref": "#/$defs/Tree"}}, **{"$defs": {"Tree": tree}}, required=["root"])
    assert stub_text.classes == (
        "class Find_Tree(TypedDict):\n    name: str  # Its name\n    children: NotRequired[list[Find_Tree]]",
    )
    assert "root: Find_Tree" in stub_text.source("...")


@pytest.mark.parametrize("key", ["a-b", "class", "__x", "str", "NotRequired", "ﬁ"])
def test_invalid_field_names_use_the_functional_syntax(key: str) -> None:
    """This covers keywords, invalid identifiers and names that would shadow the type of a later field."""
    stub_text = stub({"a": {"type": "object", "properties": {key: TEXT, "b": TEXT}, "required": [key]}})
    assert stub_text.classes == (f'Find_A = TypedDict("Find_A", {{"{key}": "str", "b": "NotRequired[str]"}})',)


def test_the_result_is_typed_if_its_schema_is_known() -> None:
    """The class omits field descriptions, because a program does not read them."""
    rows = {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer", "description": "I"}}}}
    stub_text = stub({}, output=rows)
    assert stub_text.classes == ("class Find_ResultItem(TypedDict, total=False):\n    id: int",)
    assert stub_text.source("...").splitlines()[0] == "async def find() -> list[Find_ResultItem]:"


def test_combined_schemas_include_all_fields() -> None:
    """``allOf`` adds required fields, and ``oneOf`` adds optional fields."""
    forms = {
        "allOf": [{"properties": {"a": TEXT}, "required": ["a"]}],
        "oneOf": [{"properties": {"b": TEXT}, "required": ["b"]}, {"$ref": "#/$defs/C"}],
        "$defs": {"C": {"properties": {"c": {"type": "integer"}}}},
        "required": ["z"],
    }
    written = line({"p": TEXT}, **forms)
    assert written == (
        "async def find(*, a: str, z: Any, p: str | None = None, b: str | None = None, c: int | None = None) -> Any:"
    )


def test_additional_arguments_are_accepted_if_the_schema_accepts_them() -> None:
    """An argument that is named ``more`` is renamed."""
    assert line({}, additionalProperties={"type": "integer"}) == "async def find(**more: int) -> Any:"
    assert line({"more": TEXT}, additionalProperties=True) == (
        "async def find(*, more_: str | None = None, **more: Any) -> Any:"
    )
    assert line({"more": TEXT}) == "async def find(*, more: str | None = None) -> Any:"


def test_arguments_are_converted_to_their_original_names() -> None:
    """None omits an argument that is not nullable; an unknown argument is passed on, and validation rejects it."""
    nullable = {"type": ["string", "null"]}
    stub_text = stub({"user-id": TEXT, "from": TEXT, "note": nullable, "tag": TEXT, "must": TEXT}, required=["must"])
    known_values = {"user_id": "u", "from_": "f", "note": None, "tag": None, "must": None, "surplus": 1}
    assert stub_text.arguments(known_values) == {"user-id": "u", "from": "f", "note": None, "must": None, "surplus": 1}


def test_deep_and_wide_schemas_become_plain_dicts() -> None:
    """The size of a signature is bounded for any schema."""
    deep: dict[str, Any] = TEXT
    for _ in range(MAX_DEPTH + 3):
        deep = {"type": "object", "properties": {"in": deep}}
    assert len(stub({"a": deep}).classes) == MAX_DEPTH + 1
    wide = {"type": "object", "properties": {f"f{n}": TEXT for n in range(MAX_FIELDS + 1)}}
    assert line({"a": wide}) == "async def find(*, a: dict[str, Any] | None = None) -> Any:"
    many = {f"a{n}": {"type": "object", "properties": {"b": TEXT}} for n in range(MAX_CLASSES + 5)}
    assert len(stub(many).classes) == MAX_CLASSES


def test_a_schema_with_exponential_references_is_bounded() -> None:
    """Forty definitions that each refer twice to the next would expand to 2**40 types."""
    parts: dict[str, Any] = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
    assert "a: Any = None" in line({"a": {"$ref": "#/$defs/d0"}}, **{"$defs": parts | {"d40": TEXT}})
