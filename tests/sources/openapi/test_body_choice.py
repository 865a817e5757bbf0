"""Operations that accept several media types: the caller chooses one, and its arguments are checked."""

import json
from typing import Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError
from toold.sources.openapi.body_encoding import EncodedBody, encode_body
from toold.tools import FileAccess

NAMED = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
PATCH = {"description": "A patch", "type": "object"}
KUBERNETES = {
    "application/apply-patch+yaml": PATCH,
    "application/json-patch+json": PATCH,
    "application/merge-patch+json": PATCH,
    "application/strategic-merge-patch+json": PATCH,
}


def offering(schemas: dict[str, Any]) -> dict[str, Any]:
    return {
        "requestBody": {"required": True, "content": {name: {"schema": schema} for name, schema in schemas.items()}}
    }


@pytest.fixture
def send(read_one: Any, tmp_path: Any) -> Any:
    """A function that checks the arguments of an operation with these media types, and encodes them."""

    async def send(schemas: dict[str, Any], arguments: dict[str, Any]) -> EncodedBody | None:
        operation = read_one(offering(schemas), method="patch")
        operation.arguments.check("op", arguments)
        return await encode_body(operation.body, arguments, FileAccess([tmp_path]))

    return send


@pytest.mark.parametrize(
    ("chosen", "sent"),
    [(None, "application/merge-patch+json"), *((media_type, media_type) for media_type in KUBERNETES)],
)
async def test_a_caller_chooses_the_kind_of_patch(chosen: str | None, sent: str, send: Any) -> None:
    """As for Kubernetes: also a list of operations, and YAML, of which JSON is a part."""
    value: Any = (
        [{"op": "remove", "path": "/a"}] if sent == "application/json-patch+json" else {"spec": {"replicas": 2}}
    )
    content = await send(KUBERNETES, {"body": value} | ({"content_type": chosen} if chosen else {}))
    assert (content.media_type, json.loads(content.data)) == (sent, value)


async def test_one_media_type_needs_no_choice(read_one: Any) -> None:
    """Nor do several names of JSON, nor XML with the same fields."""
    same = ["text/json", "application/*+json", "application/json; charset=utf-8", "application/xml", "application/json"]
    operation = read_one(offering(dict.fromkeys(same, NAMED)))
    assert operation.arguments.schema["properties"] == NAMED["properties"]
    assert operation.body.choice is None


async def test_the_given_arguments_choose_the_media_type(send: Any) -> None:
    """The first media type that has them all is sent; an argument is required if all media types require it."""
    upload = {"type": "object", "properties": {"name": {"type": "string"}, "photo": {"format": "binary"}}}
    schemas = {"application/json": NAMED, "multipart/form-data": upload, "text/csv": {"type": "string"}}
    sent = [
        (await send(schemas, arguments)).media_type.partition(";")[0]
        for arguments in ({"name": "Ann"}, {"name": "Ann", "photo": {"text": "x"}}, {"body": "a,b"})
    ]
    assert sent == ["application/json", "multipart/form-data", "text/csv"]


async def test_arguments_with_different_schemas_accept_both(send: Any) -> None:
    """The same field is a link in one media type and a file in the other."""
    by_type = {"application/json": {"type": "string"}, "multipart/form-data": {"type": "string", "format": "binary"}}
    schemas = {name: {"type": "object", "properties": {"photo": part}} for name, part in by_type.items()}
    assert json.loads((await send(schemas, {"photo": "https://crm.example/a.png"})).data)["photo"]
    content = await send(schemas, {"photo": {"text": "x"}, "content_type": "multipart/form-data"})
    assert b'filename="text.txt"' in content.data


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"content_type": "text/csv", "name": "Ann"}, "name is not part of a body of type text/csv, which has body"),
        ({"content_type": "text/csv", "name": "Ann"}, "body is missing: a body of type text/csv requires it"),
        ({}, "name is missing: a body of type application/json requires it"),
        ({"content_type": "text/html"}, "content_type should be"),
    ],
)
async def test_arguments_have_to_fit_the_media_type(arguments: Any, message: str, send: Any) -> None:
    """Before anything is sent, an error names each wrong argument."""
    with pytest.raises(InvalidArgumentsError, match=message):
        await send({"application/json": NAMED, "text/csv": {"type": "string"}}, arguments)


async def test_a_field_of_the_api_keeps_the_name(read_one: Any) -> None:
    """The choice is then ``body_content_type``."""
    schema = {"type": "object", "properties": {"content_type": {"type": "string"}}}
    operation = read_one(offering({"application/json": schema, "application/x-www-form-urlencoded": schema}))
    assert operation.arguments.schema["properties"]["content_type"] == {"type": "string"}
    assert operation.body.choice == "body_content_type"


def test_the_number_of_media_types_is_bounded(read_paths: Any) -> None:
    """The others are omitted, with a note."""
    content = {f"application/v{number}+json": {"schema": NAMED} for number in range(20)}
    api = read_paths({"/x": {"post": {"operationId": "op", "requestBody": {"content": content}}}})
    schema = api.operations[0].arguments.schema["properties"]["content_type"]
    assert len(schema["enum"]) == 8
    assert "the body has more than 8 media types; the others are omitted" in str(api.notes[0])
