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


def test_fields_of_an_object_are_arguments(read_one: Any) -> None:
    """Each by itself, needed as the schema says."""
    operation = read_one(body(CONTACT, required=True))
    assert operation.arguments.schema["properties"] == CONTACT["properties"]
    assert operation.arguments.schema["required"] == ["name"]
    assert operation.body.kind == "json"


@pytest.mark.parametrize(
    ("said", "required"), [({}, ["name"]), ({"required": True}, ["name"]), ({"required": False}, None)]
)
def test_a_body_that_need_not_be_needs_no_field(said: Any, required: Any, read_one: Any) -> None:
    """Only where the document says so itself: most forget to say that theirs is needed."""
    assert read_one(body(CONTACT, **said)).arguments.schema.get("required") == required


def test_what_is_needed_may_be_said_within_a_field(read_one: Any) -> None:
    """As old documents do."""
    schema = {"type": "object", "properties": {"a": {"type": "string", "required": True}, "b": {}}}
    assert read_one(body(schema)).arguments.schema["required"] == ["a"]


def test_all_of_several_objects_is_one(read_one: Any) -> None:
    """Their fields and what they need, also where that is said apart from the fields."""
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
def test_schemas_that_are_made_of_one_another_very_often_are_gone_through_once_each(levels: int, read_one: Any) -> None:
    """Each of a few is twenty times the next: 20**60 parts; of more schemas the fields stay within one argument."""
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
def test_what_is_no_plain_object_is_one_argument(schema: Any, read_one: Any) -> None:
    """Arrays, choices of forms and maps are the argument ``body``."""
    operation = read_one(body(schema, required=True))
    assert list(operation.arguments.schema["properties"]) == ["body"]
    assert operation.arguments.schema["required"] == ["body"]
    assert operation.body.argument == "body"


def test_a_recursive_body_is_checked_all_the_way(read_one: Any) -> None:
    """Its fields refer to a definition, which refers to itself."""
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
def test_json_goes_before_all_other_kinds(offered: list[str], kind: str, sent: str, read_one: Any) -> None:
    """Of several media types the one that is sent best; what cannot be a media type is none."""
    operation = read_one({"requestBody": {"content": {media: {"schema": CONTACT} for media in offered}}})
    assert (operation.body.kind, operation.body.media_type) == (kind, sent)


def test_files_are_found_in_forms_of_several_parts(read_one: Any) -> None:
    """By either version's words, several of them too; a field's own type and style are kept."""
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
    said = {"requestBody": {"content": {"multipart/form-data": {"schema": schema, "encoding": encoding}}}}
    fields = {field.name: field for field in read_one(said).body.fields}
    assert [name for name, field in fields.items() if field.file] == ["old", "new", "many"]
    assert fields["meta"].content_type == "application/json"
    assert fields["new"].content_type is None


def test_a_form_whose_fields_are_not_known_takes_an_object(read_one: Any) -> None:
    """And nothing else."""
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
def test_a_type_that_is_left_open_is_chosen(offered: str, schema: Any, kind: str, sent: str, read_one: Any) -> None:
    """No request says that its body is of the type ``image/*``."""
    body = read_one({"requestBody": {"content": {offered: {"schema": schema}}}}).body
    assert body is not None
    assert (body.kind, body.media_type) == (kind, sent)


def test_a_type_that_is_left_open_is_the_callers_to_name(read_one: Any) -> None:
    """Where it is a file, and its schema names no type either."""
    operation = read_one({"requestBody": {"content": {"image/*": {}}}})
    assert operation.body.types == "image/*"
    assert "content_type" in operation.arguments.schema["properties"]["body"]["properties"]
    for media_type, schema in (("image/*", {"contentMediaType": "image/webp"}), ("image/webp", {})):
        operation = read_one({"requestBody": {"content": {media_type: {"schema": schema}}}})
        assert (operation.body.media_type, operation.body.types) == ("image/webp", None)
        assert "content_type" not in operation.arguments.schema["properties"]["body"]["properties"]
