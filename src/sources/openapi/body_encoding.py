"""Encodes arguments as an HTTP request body: JSON, form, multipart, text or file."""

import base64
import binascii
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from mimetypes import MimeTypes
from pathlib import PurePosixPath
from typing import Any, Final, Protocol

from ...protocol.error_codes import InvalidArgumentsError
from ...tools import BinaryFile
from .api_operation import ApiBody, BodyField
from .body_choice import choose_body
from .parameter_encoding import deep_pairs, encoded_pairs, plain

MAX_FILE_BYTES: Final = 20 * 1024 * 1024
MAX_FILES_BYTES: Final = 64 * 1024 * 1024
"""The maximum total size of the workspace files in one body, which are in memory until the body is sent."""

_TYPE: Final = re.compile(r"[\w.+-]{1,100}/[\w.+-]{1,100}", re.ASCII)
_ANY_TYPE: Final = "*/*"
_UNKNOWN_TYPE: Final = "application/octet-stream"
_TYPES_BY_NAME: Final = MimeTypes()
"""Python's built-in table of types, without the system's tables."""


class FileParts(Protocol):
    """Reads files of the workspace."""

    async def read_bytes(self, path: str, max_bytes: int) -> BinaryFile: ...


class _SizeLimitedFiles:
    """Limits the total size of the files in one body. Implements ``FileParts``."""

    def __init__(self, files: FileParts) -> None:
        self._files = files
        self._left = MAX_FILES_BYTES

    async def read_bytes(self, path: str, max_bytes: int) -> BinaryFile:
        file = await self._files.read_bytes(path, max_bytes)
        self._left -= len(file.content)
        if self._left < 0:
            raise InvalidArgumentsError(f"The files have more than {MAX_FILES_BYTES // 1024**2} MiB together.")
        return file


@dataclass(frozen=True, slots=True)
class EncodedBody:
    """A complete body."""

    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class _Part:
    name: str
    data: bytes
    content_type: str | None = None
    file_name: str | None = None


async def encode_body(body: ApiBody | None, arguments: Mapping[str, Any], files: FileParts) -> EncodedBody | None:
    """Encodes the body; None if the operation has no body, or the body is optional and none of its arguments is given.

    Raises:
        InvalidArgumentsError: a file argument is invalid, or the arguments do not fit the chosen media type.
        CallError: a workspace file cannot be read.
    """
    if body is None:
        return None
    body = choose_body(body, arguments)
    files = _SizeLimitedFiles(files)
    if body.files_argument is not None:
        return await _undeclared_multipart(body, arguments, files)
    present = {field: arguments[field.argument] for field in body.fields if field.argument in arguments}
    if _is_absent(body, arguments):
        return None
    whole = arguments[body.argument] if body.argument is not None else None
    match body.kind:
        case "json":
            value = whole if body.argument is not None else {field.name: part for field, part in present.items()}
            return EncodedBody(body.media_type, json.dumps(value, ensure_ascii=False).encode())
        case "text":
            return EncodedBody(body.media_type, plain(whole).encode())
        case "binary":
            file = await _file(body.argument or "", whole, files)
            media_type = body.media_type
            if body.types is not None:
                media_type = _type_of(body.argument or "", whole, file.file_name or "", body.types)
            return EncodedBody(media_type, file.data)
        case "form":
            return EncodedBody(body.media_type, "&".join(_form_pairs(whole, present)).encode())
        case "multipart":
            parts = [part for field, value in present.items() for part in await _parts(field, value, files)]
            return _multipart(body.media_type, parts)


def _is_absent(body: ApiBody, arguments: Mapping[str, Any]) -> bool:
    if body.argument is not None:
        return body.argument not in arguments
    return not body.required and not any(field.argument in arguments for field in body.fields)


async def _undeclared_multipart(body: ApiBody, arguments: Mapping[str, Any], files: FileParts) -> EncodedBody | None:
    """Encodes a multipart body without declared fields, from the arguments with its fields and its files."""
    fields, named_files = arguments.get(body.argument or ""), arguments.get(body.files_argument or "")
    if fields is None and named_files is None:
        if not body.required:
            return None
        wrong = f"is missing: the operation needs a body, {body.argument}, {body.files_argument} or both"
        raise InvalidArgumentsError(f"{body.argument} {wrong}.", details={"fields": {str(body.argument): wrong}})
    parts = [_Part(name, *_typed(value)) for name, value in (fields or {}).items()]
    for name, value in (named_files or {}).items():
        field = BodyField(name, f"{body.files_argument}.{name}", file=True, types=_ANY_TYPE)
        parts += await _parts(field, value, files)
    return _multipart(body.media_type, parts)


def _form_pairs(whole: Any, present: Mapping[BodyField, Any]) -> list[str]:
    """Returns the ``name=value`` texts of a form."""
    encoded = encoded_pairs([(name, _field_text(value)) for name, value in (whole or {}).items()])
    for field, value in present.items():
        if field.deep:
            pairs = deep_pairs(field.name, value)
        elif field.joined and isinstance(value, list):
            pairs = [(field.name, ",".join(map(_field_text, value)))]
        elif isinstance(value, list):
            pairs = [(field.name, _field_text(part)) for part in value]
        else:
            pairs = [(field.name, _field_text(value))]
        encoded += encoded_pairs(pairs, allow_reserved=field.allow_reserved)
    return encoded


def _field_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else plain(value)


def _typed(value: Any) -> tuple[bytes, str | None]:
    """Returns a part's content, and its type if it is not plain text."""
    return _field_text(value).encode(), "application/json" if isinstance(value, dict | list) else None


async def _parts(field: BodyField, value: Any, files: FileParts) -> list[_Part]:
    several = value if isinstance(value, list) and field.content_type != "application/json" else [value]
    if not field.file:
        typed = [_typed(part) for part in several]
        return [_Part(field.name, data, field.content_type or kind) for data, kind in typed]
    parts = []
    for item in several:
        file = await _file(field.argument, item, files)
        media_type = field.content_type or _type_of(
            field.argument, item, file.file_name or "", field.types or _ANY_TYPE
        )
        parts.append(_Part(field.name, file.data, media_type, file.file_name))
    return parts


async def _file(argument: str, value: Any, files: FileParts) -> _Part:
    """Returns the file of an argument (``api_operation.FILE_SCHEMA``)."""
    name = value.get("name") if isinstance(value.get("name"), str) else None
    if "path" in value:
        file = await files.read_bytes(value["path"], MAX_FILE_BYTES)
        return _Part(argument, file.content, file_name=name or PurePosixPath(file.name).name)
    if "text" in value:
        return _Part(argument, value["text"].encode(), file_name=name or "text.txt")
    try:
        return _Part(argument, base64.b64decode(value["base64"], validate=True), file_name=name or "file")
    except (binascii.Error, ValueError):
        wrong = "base64 is not valid Base64 (RFC 4648)"
        raise InvalidArgumentsError(f"{argument}: {wrong}.", details={"fields": {argument: wrong}}) from None


def _type_of(argument: str, value: Any, name: str, types: str) -> str:
    """Returns the type of a file: the caller's ``content_type``, else by its name. ``types`` are the allowed ones."""
    declared = value.get("content_type")
    media_type = _type_by_name(name) if declared is None else declared
    if media_type is not None and _TYPE.fullmatch(media_type) and _matches(media_type, types):
        return str(media_type)
    if declared is None:
        return _UNKNOWN_TYPE if "*" in types else types.partition(",")[0].strip()
    wrong = f"content_type must match {types}"
    raise InvalidArgumentsError(f"{argument}: {wrong}.", details={"fields": {argument: wrong}})


def _type_by_name(name: str) -> str | None:
    media_type, encoding = _TYPES_BY_NAME.guess_type(name, strict=False)
    return media_type if encoding is None else None


def _matches(media_type: str, types: str) -> bool:
    patterns = (declared.partition(";")[0].strip().lower() for declared in types.split(","))
    return any(fnmatchcase(media_type.lower(), pattern) for pattern in patterns)


def _multipart(media_type: str, parts: list[_Part]) -> EncodedBody:
    boundary = secrets.token_hex(16)
    lines: list[bytes] = []
    for part in parts:
        disposition = f'form-data; name="{_in_quotes(part.name)}"'
        if part.file_name is not None:
            disposition += f'; filename="{_in_quotes(part.file_name)}"'
        lines += [f"--{boundary}".encode(), f"Content-Disposition: {disposition}".encode()]
        if part.content_type is not None:
            lines.append(f"Content-Type: {part.content_type}".encode())
        lines += [b"", part.data]
    lines += [f"--{boundary}--".encode(), b""]
    return EncodedBody(f"{media_type.partition(';')[0]}; boundary={boundary}", b"\r\n".join(lines))


def _in_quotes(text: str) -> str:
    """Escapes a name as browsers do (WHATWG, multipart/form-data)."""
    return text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
