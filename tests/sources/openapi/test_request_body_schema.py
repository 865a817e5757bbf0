"""Bodies: which kind is sent, and of which arguments it is made."""

from typing import Any

import pytest


def body(schema: Any, media_type: str = "application/json", **fields: Any) -> dict[str, Any]:
    return {"requestBody": {"content": {media_type: {"schema": schema}}} | fields}


CONTACT = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
}


def test_the_fields_of_an_object_become_arguments(read_one: Any) -> None:
    """Required as in the schema."""
    operation = read_one(body(CONTACT, required=True))
    assert operation.arguments.schema["properties"] == CONTACT["properties"]
    assert operation.arguments.schema["required"] == ["name"]
    assert operation.body.kind == "json"


@pytest.mark.parametrize(
    ("declared", "required"), [({}, ["name"]), ({"required": True}, ["name"]), ({"required": False}, None)]
)
def test_an_optional_body_requires_no_field(declared: Any, required: Any, read_one: Any) -> None:
    """Only if declared optional: most documents omit ``required``."""
    assert read_one(body(CONTACT, **declared)).arguments.schema.get("required") == required


def test_required_may_be_set_within_a_field(read_one: Any) -> None:
    """As in old documents."""
    schema = {"type": "object", "properties": {"a": {"type": "string", "required": True}, "b": {}}}
    assert read_one(body(schema)).arguments.schema["required"] == ["a"]


def test_all_of_is_merged(read_one: Any) -> None:
    """Fields and required names, also if in different subschemas."""
    schema = {
        "allOf": [{"$ref": "#/components/schemas/Base"}, {"properties": {"b": {"type": "integer"}}}],
        "required": ["a"],
        "properties": {"c": {"type": "boolean"}, "id": {"type": "string", "readOnly": True}},
    }
    base = {"type": "object", "properties": {"a": {"type": "string"}}}
    operation = read_one(body(schema, required=True), components={"schemas": {"Base": base}})
    assert list(operation.arguments.schema["properties"]) == ["a", "b", "c"]
    assert operation.arguments.schema["required"] == ["a"]


@pytest.mark.parametrize("levels", [7, 60, 100])
def test_heavily_shared_schemas_are_visited_once(levels: int, read_one: Any) -> None:
    """Twenty references per level would give 20**60 parts; too many schemas become one argument."""
    schemas: dict[str, Any] = {
        f"S{n}": {"allOf": [{"$ref": f"#/components/schemas/S{n + 1}"}] * 20} for n in range(levels)
    }
    schemas[f"S{levels}"] = {"properties": {"a": {"type": "string"}}}
    operation = read_one(body({"$ref": "#/components/schemas/S0"}), components={"schemas": schemas})
    assert list(operation.arguments.schema["properties"]) == (["a"] if levels < 64 else ["body"])


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "string"}},
        {"type": "string"},
        {"type": "object"},
        {"oneOf": [CONTACT, {"type": "object"}]},
        {"type": "object", "additionalProperties": {"type": "string"}, "properties": {"a": {}}},
        {"allOf": [CONTACT, {"anyOf": [{"required": ["age"]}, {"required": ["name"]}]}]},
        {},
    ],
)
def test_other_schemas_become_one_argument(schema: Any, read_one: Any) -> None:
    """Arrays, alternatives and maps become the argument ``body``."""
    operation = read_one(body(schema, required=True))
    assert list(operation.arguments.schema["properties"]) == ["body"]
    assert operation.arguments.schema["required"] == ["body"]
    assert operation.body.argument == "body"


def test_a_recursive_body_is_validated_at_all_levels(read_one: Any) -> None:
    """Its fields refer to a recursive definition."""
    node = {
        "type": "object",
        "properties": {"value": {"type": "integer"}, "next": {"$ref": "#/components/schemas/Node"}},
    }
    operation = read_one(body({"$ref": "#/components/schemas/Node"}), components={"schemas": {"Node": node}})
    operation.arguments.check("op", {"value": 1, "next": {"value": 2, "next": {}}})
    with pytest.raises(Exception, match=r"next\.next\.value should be an integer"):
        operation.arguments.check("op", {"next": {"next": {"value": "x"}}})


@pytest.mark.parametrize(
    ("offered", "kind", "sent"),
    [
        (["application/xml", "application/json"], "json", "application/json"),
        (["multipart/form-data", "application/x-www-form-urlencoded"], "form", "application/x-www-form-urlencoded"),
        (["application/vnd.crm.v2+json; charset=utf-8"], "json", "application/vnd.crm.v2+json; charset=utf-8"),
        (["*/*"], "json", "application/json"),
        (["multipart/form-data"], "multipart", "multipart/form-data"),
        (["text/csv"], "text", "text/csv"),
        (["application/xml"], "text", "application/xml"),
        (["image/png"], "binary", "image/png"),
        (["application/json\r\nX-Evil: 1"], "json", "application/json"),
        ([], "json", "application/json"),
    ],
)
def test_json_is_preferred(offered: list[str], kind: str, sent: str, read_one: Any) -> None:
    """Invalid media types are ignored."""
    operation = read_one({"requestBody": {"content": {media: {"schema": CONTACT} for media in offered}}})
    assert (operation.body.kind, operation.body.media_type) == (kind, sent)


def test_files_are_recognized_in_multipart_bodies(read_one: Any) -> None:
    """In 3.0 and 3.1 syntax, also arrays; a field's type and style are preserved."""
    schema = {
        "type": "object",
        "properties": {
            "old": {"type": "string", "format": "binary"},
            "new": {"contentMediaType": "image/png"},
            "many": {"type": "array", "items": {"type": "string", "format": "binary"}},
            "meta": {"type": "object"},
            "word": {"type": "string"},
        },
    }
    encoding = {"meta": {"contentType": "application/json"}, "new": {"contentType": "image/*, image/png"}}
    declared = {"requestBody": {"content": {"multipart/form-data": {"schema": schema, "encoding": encoding}}}}
    fields = {field.name: field for field in read_one(declared).body.fields}
    assert [name for name, field in fields.items() if field.file] == ["old", "new", "many"]
    assert fields["meta"].content_type == "application/json"
    assert fields["new"].content_type is None


def test_a_form_with_unknown_fields_takes_an_object(read_one: Any) -> None:
    """As one argument."""
    operation = read_one(body({"oneOf": [CONTACT]}, "multipart/form-data"))
    assert operation.arguments.schema["properties"]["body"]["type"] == "object"


@pytest.mark.parametrize(
    ("offered", "schema", "kind", "sent"),
    [
        ("*/*", {"type": "string", "format": "binary"}, "binary", "application/octet-stream"),
        ("*/*", {"type": "object", "additionalProperties": True}, "json", "application/json"),
        ("image/*", {}, "binary", "application/octet-stream"),
        ("text/*", {}, "text", "text/plain"),
    ],
)
def test_a_wildcard_type_is_resolved(offered: str, schema: Any, kind: str, sent: str, read_one: Any) -> None:
    """``image/*`` is never sent."""
    body = read_one({"requestBody": {"content": {offered: {"schema": schema}}}}).body
    assert body is not None
    assert (body.kind, body.media_type) == (kind, sent)


def test_the_caller_chooses_an_open_file_type(read_one: Any) -> None:
    """If the schema declares none."""
    operation = read_one({"requestBody": {"content": {"image/*": {}}}})
    assert operation.body.types == "image/*"
    assert "content_type" in operation.arguments.schema["properties"]["body"]["properties"]
    for media_type, schema in (("image/*", {"contentMediaType": "image/webp"}), ("image/webp", {})):
        operation = read_one({"requestBody": {"content": {media_type: {"schema": schema}}}})
        assert (operation.body.media_type, operation.body.types) == ("image/webp", None)
        assert "content_type" not in operation.arguments.schema["properties"]["body"]["properties"]
