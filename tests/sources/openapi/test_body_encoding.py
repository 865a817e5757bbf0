"""Arguments become bodies: JSON, forms, parts of several kinds, texts and files."""

import base64
import json
from email.message import Message
from email.parser import BytesParser
from email.policy import HTTP
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from toold.protocol.error_codes import CallError, InvalidArgumentsError
from toold.sources.openapi import body_encoding as content_module
from toold.sources.openapi.body_encoding import MAX_FILE_BYTES, EncodedBody, encode_body
from toold.tools import FileAccess


@pytest.fixture
def files(tmp_path: Path) -> FileAccess:
    (tmp_path / "photo.png").write_bytes(b"\x89PNG\r\n--")
    return FileAccess([tmp_path])


async def written(operation: Any, arguments: dict[str, Any], files: FileAccess) -> EncodedBody:
    content = await encode_body(operation.body, arguments, files)
    assert content is not None
    return content


def parts_of(content: EncodedBody) -> list[Message]:
    """Parses the parts of a multipart body with the standard library."""
    head = f"Content-Type: {content.media_type}\r\n\r\n".encode()
    message = BytesParser(policy=HTTP).parsebytes(head + content.data)
    assert message.is_multipart()
    return list(message.iter_parts())


def form(read_one: Any, media_type: str, properties: dict[str, Any], encoding: Any = None) -> Any:
    schema = {"type": "object", "properties": properties}
    content = {media_type: {"schema": schema, "encoding": encoding or {}}}
    return read_one({"requestBody": {"content": content}})


async def test_fields_are_encoded_as_json(read_one: Any, files: FileAccess) -> None:
    """Given fields, under the API's names."""
    operation = form(read_one, "application/json", {"full name": {}, "n": {}, "other": {}})
    content = await written(operation, {"full_name": "Ann Ü", "n": 2**70}, files)
    assert json.loads(content.data) == {"full name": "Ann Ü", "n": 2**70}
    assert content.media_type == "application/json"


async def test_an_empty_optional_body_is_not_sent(read_one: Any, files: FileAccess) -> None:
    """A required one is an empty object."""
    schema = {"type": "object", "properties": {"a": {}}}
    for required, data in ((False, None), (True, b"{}")):
        said = {"requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}}
        content = await encode_body(read_one(said).body, {}, files)
        assert (content.data if content else None) == data
    assert await encode_body(None, {}, files) is None


async def test_one_argument_may_be_the_whole_body(read_one: Any, files: FileAccess) -> None:
    """Null is a value; a missing argument is not."""
    said = {"requestBody": {"content": {"application/json": {"schema": {"type": ["array", "null"]}}}}}
    operation = read_one(said)
    assert (await written(operation, {"body": None}, files)).data == b"null"
    assert await encode_body(operation.body, {}, files) is None


async def test_forms_are_encoded(read_one: Any, files: FileAccess) -> None:
    """Arrays repeat their name, objects are JSON, or use brackets if declared."""
    properties: dict[str, Any] = {"a": {}, "list": {}, "object": {}, "deep": {}, "joined": {}, "raw": {}}
    encoding = {
        "deep": {"style": "deepObject", "explode": True},
        "joined": {"explode": False},
        "raw": {"allowReserved": True},
    }
    operation = form(read_one, "application/x-www-form-urlencoded", properties, encoding)
    given = {
        "a": "x&y",
        "list": [1, True],
        "object": {"k": 1},
        "deep": {"k": {"l": 2}},
        "joined": ["a", 1],
        "raw": "a/b&c",
    }
    content = await written(operation, given, files)
    assert parse_qsl(content.data.decode()) == [
        ("a", "x&y"),
        ("list", "1"),
        ("list", "true"),
        ("object", '{"k": 1}'),
        ("deep[k][l]", "2"),
        ("joined", "a,1"),
        ("raw", "a/b&c"),
    ]
    assert content.data.endswith(b"&raw=a/b%26c")


async def test_multipart_parts_have_types_and_names(read_one: Any, files: FileAccess) -> None:
    """Files from the workspace, text and base64; fields as text, objects as JSON."""
    file = {"type": "string", "format": "binary"}
    properties = {"photo": file, "many": {"type": "array", "items": file}, "word": {}, "meta": {"type": "object"}}
    operation = form(read_one, "multipart/form-data", properties, {"photo": {"contentType": "image/png"}})
    given = {
        "photo": {"path": "photo.png"},
        "many": [{"text": "Hi", "name": 'a"b.txt'}, {"base64": base64.b64encode(b"\x00\xff").decode()}],
        "word": "so",
        "meta": {"k": 1},
    }
    operation.arguments.check("op", given)
    parts = parts_of(await written(operation, given, files))
    assert [(part.get_param("name", header="content-disposition"), part.get_filename()) for part in parts] == [
        ("photo", "photo.png"),
        ("many", "a%22b.txt"),
        ("many", "file"),
        ("word", None),
        ("meta", None),
    ]
    assert [part.get_payload(decode=True) for part in parts] == [
        b"\x89PNG\r\n--",
        b"Hi",
        b"\x00\xff",
        b"so",
        b'{"k": 1}',
    ]
    assert parts[0]["content-type"] == "image/png"
    assert parts[4]["content-type"] == "application/json"


async def test_files_must_be_in_the_workspace(read_one: Any, files: FileAccess) -> None:
    """Other paths and invalid base64 are refused."""
    operation = form(read_one, "multipart/form-data", {"photo": {"type": "string", "format": "binary"}})
    with pytest.raises(CallError, match="passwd"):
        await written(operation, {"photo": {"path": "/etc/passwd"}}, files)
    with pytest.raises(InvalidArgumentsError, match="photo: base64 is not valid Base64"):
        await written(operation, {"photo": {"base64": "!"}}, files)
    with pytest.raises(InvalidArgumentsError):
        operation.arguments.check("op", {"photo": {"text": "a", "base64": "b"}})


async def test_the_size_of_files_is_limited(
    read_one: Any, files: FileAccess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To 20 MiB each, and in total."""
    file = {"type": "string", "format": "binary"}
    operation = form(read_one, "multipart/form-data", {"many": {"type": "array", "items": file}})
    with (tmp_path / "large").open("wb") as large:
        large.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(CallError, match="large"):
        await written(operation, {"many": [{"path": "large"}]}, files)
    monkeypatch.setattr(content_module, "MAX_FILES_BYTES", 2 * 1024 * 1024)
    (tmp_path / "part").write_bytes(b"x" * 1_000_000)
    assert len((await written(operation, {"many": [{"path": "part"}] * 2}, files)).data) > 2_000_000
    with pytest.raises(InvalidArgumentsError, match="The files have more than 2 MiB together"):
        await written(operation, {"many": [{"path": "part"}] * 3}, files)


async def test_text_and_file_bodies_are_sent_unchanged(read_one: Any, files: FileAccess) -> None:
    """CSV as text, an image as bytes."""
    text = read_one({"requestBody": {"content": {"text/csv": {}}}})
    assert (await written(text, {"body": "a,b"}, files)) == EncodedBody("text/csv", b"a,b")
    image = read_one({"requestBody": {"content": {"image/png": {}}}})
    assert (await written(image, {"body": {"path": "photo.png"}}, files)).data == b"\x89PNG\r\n--"


@pytest.mark.parametrize(
    ("types", "file", "sent"),
    [
        ("image/*", {"path": "photo.png"}, "image/png"),
        ("image/*", {"base64": "", "name": "A.JPEG"}, "image/jpeg"),
        ("image/*", {"path": "photo.png", "content_type": "image/x-own"}, "image/x-own"),
        ("image/*; q=1", {"text": "<svg/>", "name": "a.svg"}, "image/svg+xml"),
        ("image/*", {"base64": "", "name": "a.txt"}, "application/octet-stream"),
        ("image/*", {"base64": "", "name": "a.svg.gz"}, "application/octet-stream"),
        ("*/*", {"base64": "", "content_type": "audio/ogg"}, "audio/ogg"),
        ("*/*", {"base64": ""}, "application/octet-stream"),
        ("image/png", {"base64": "", "name": "a.jpg"}, "image/png"),
    ],
)
async def test_the_type_of_a_file_is_determined(
    read_one: Any, files: FileAccess, types: str, file: Any, sent: str
) -> None:
    """From ``content_type``, else from the name."""
    schema = {"type": "string", "format": "binary"}
    operation = read_one({"requestBody": {"content": {types: {"schema": schema}}}})
    assert (await written(operation, {"body": file}, files)).media_type == sent


@pytest.mark.parametrize("said", ["text/plain", "image/*", "image/png\r\nX-Own: 1", "png", "", "image/png; q=1"])
async def test_a_type_that_the_document_excludes_is_refused(read_one: Any, files: FileAccess, said: str) -> None:
    """It would be sent in a header."""
    image = read_one({"requestBody": {"content": {"image/*": {}}}})
    with pytest.raises(InvalidArgumentsError, match=r"content_type must match image/\*") as caught:
        await written(image, {"body": {"base64": "", "content_type": said}}, files)
    assert caught.value.details == {"fields": {"body": "content_type must match image/*"}}


async def test_a_form_with_unknown_fields_takes_an_object(read_one: Any, files: FileAccess) -> None:
    """The object's names are the fields."""
    for media_type in ("application/x-www-form-urlencoded", "multipart/form-data"):
        operation = read_one({"requestBody": {"content": {media_type: {"schema": {"type": "object"}}}}})
        content = await written(operation, {"body": {"a": "1"}}, files)
        assert b"1" in content.data


async def test_a_file_part_has_the_type_of_its_name(read_one: Any, files: FileAccess) -> None:
    """Unless the document or the caller sets it; of several declared types, the first is the default."""
    file = {"type": "string", "format": "binary"}
    properties = {"a": file, "b": file | {"contentMediaType": "audio/x-own"}, "c": file}
    operation = form(read_one, "multipart/form-data", properties, {"c": {"contentType": "image/png, image/webp"}})
    sent = {
        "a": [{"path": "photo.png"}, {"text": "1,2", "name": "rows.csv"}, {"base64": "AA=="}],
        "b": [{"path": "photo.png"}],
        "c": [{"text": "x", "name": "x.webp"}, {"text": "x"}, {"text": "x", "content_type": "image/webp"}],
    }
    types = []
    for name, several in sent.items():
        for value in several:
            operation.arguments.check("op", {name: value})
            types += [part["content-type"] for part in parts_of(await written(operation, {name: value}, files))]
    assert types[:4] == ["image/png", "text/csv", "application/octet-stream", "audio/x-own"]
    assert types[4:] == ["image/webp", "image/png", "image/webp"]
    with pytest.raises(InvalidArgumentsError, match="c: content_type must match image/png, image/webp"):
        await written(operation, {"c": {"text": "x", "content_type": "text/html"}}, files)


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"oneOf": [{"properties": {"f": {"format": "binary"}}}]}])
async def test_multipart_without_declared_fields_takes_files(schema: Any, read_one: Any, files: FileAccess) -> None:
    """In an argument next to that of the other fields; either may be missing, but not both if a body is required."""
    content = {"multipart/form-data": {"schema": schema}}
    operation = read_one({"requestBody": {"required": True, "content": content}})
    arguments = {"body": {"n": 1}, "files": {"f": {"path": "photo.png"}, "g": [{"text": "a"}, {"text": "b"}]}}
    operation.arguments.check("op", arguments)
    parts = parts_of(await written(operation, arguments, files))
    assert [(part.get_param("name", header="content-disposition"), part.get_filename()) for part in parts] == [
        ("n", None),
        ("f", "photo.png"),
        ("g", "text.txt"),
        ("g", "text.txt"),
    ]
    assert len(parts_of(await written(operation, {"files": arguments["files"]}, files))) == 3
    with pytest.raises(InvalidArgumentsError, match="body is missing: the operation needs a body, body, files or both"):
        await encode_body(operation.body, {}, files)


async def test_a_form_takes_an_object_whatever_its_schema(read_one: Any, files: FileAccess) -> None:
    """A form of type string has no fields that could be encoded otherwise."""
    operation = read_one(
        {"requestBody": {"content": {"application/x-www-form-urlencoded": {"schema": {"type": "string"}}}}}
    )
    operation.arguments.check("op", {"body": {"a": 1}})
    assert (await written(operation, {"body": {"a": 1}}, files)).data == b"a=1"
