"""Files in messages of A2A: images that models see, text files, and links. Pure."""

import base64
import binascii
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from ..image_types import image_type
from .a2a_error import CONTENT_TYPE, A2AError, invalid_field

MAX_FILES: Final = 16
"""The maximum number of files in a message, including images. A request to a model contains all of them."""
MAX_KEPT_FILE_CHARS: Final = 16 * 1024
"""The maximum length of a file, in base64, in the history of a task, which each answer repeats. For a longer file, the
history has only its name and size.
"""
MAX_FILE_URL_CHARS: Final = 2000
_MAX_NAME_CHARS: Final = 200
_GENERIC: Final = frozenset({"", "application/octet-stream"})
_TEXT_TYPES: Final = frozenset(
    {
        *("application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml"),
        *("application/javascript", "application/x-ndjson", "application/jsonl", "application/sql"),
        *("application/x-sh", "application/x-python", "application/csv"),
    }
)
_IMAGE_SUFFIXES: Final = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})


class ReadFile(NamedTuple):
    """A file part, converted for an agent."""

    prompt: str
    """A description of the file, and the content of a text file."""
    image: str | None
    """The URL of an image that a model can see."""
    kept: dict[str, Any]
    """The part for the task's history."""


def read_file(part: Mapping[str, Any], kind: str, media_type: str, filename: str, path: str) -> ReadFile:
    """Reads a part with ``raw`` or ``url``; ``kind`` says which. ``path``: the part's place, for errors.

    Raises:
        A2AError: the part is invalid, or neither text nor an image that models accept.
    """
    content = part[kind]
    if not isinstance(content, str) or not content:
        raise invalid_field(f"{path}.{kind}", "must be text" if kind == "url" else "must be base64")
    name = " ".join(filename.split())[:_MAX_NAME_CHARS]
    return _linked(content, media_type, name, path) if kind == "url" else _raw(content, media_type, name, path)


def _linked(url: str, media_type: str, name: str, path: str) -> ReadFile:
    try:
        scheme, suffix = urlsplit(url).scheme, PurePosixPath(urlsplit(url).path).suffix.lower()
    except ValueError:
        scheme = suffix = ""
    if scheme not in {"http", "https"} or len(url) > MAX_FILE_URL_CHARS or not url.isprintable() or " " in url:
        problem = f"must be a URL of up to {MAX_FILE_URL_CHARS} characters that begins with https:// or http://"
        raise invalid_field(f"{path}.url", problem)
    is_image = media_type.startswith("image/") or (not media_type and suffix in _IMAGE_SUFFIXES)
    shown = " ".join(filter(None, ("image" if is_image else "file", name, media_type and f"({media_type})")))
    kept = {"url": url, **_named(media_type, name)}
    return ReadFile(f"[{shown}: {url}]", url if is_image and scheme == "https" else None, kept)


def _raw(content: str, media_type: str, name: str, path: str) -> ReadFile:
    try:
        data = base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        raise invalid_field(f"{path}.raw", "must be base64") from None
    kept: dict[str, Any] = {"raw": content, **_named(media_type, name)}
    if len(content) > MAX_KEPT_FILE_CHARS:
        shown = " ".join(filter(None, (name, media_type and f"({media_type})")))
        kept = {"text": f"[file {shown}: {len(data):,} bytes]"}
    named = media_type.partition(";")[0].strip().lower()
    image = image_type(data) if named in _GENERIC or named.startswith("image/") else None
    if image is not None:
        encoded = base64.b64encode(data).decode()
        return ReadFile(f"[image {name}]" if name else "[image]", f"data:{image};base64,{encoded}", kept)
    text = _text(data) if named in _GENERIC or _is_text(named) else None
    if text is None:
        kind = f"of type {media_type[:100]}" if media_type else "without a media type"
        message = (
            f"{path}, {kind}, is neither text in UTF-8 nor an image (PNG, JPEG, GIF, WebP); "
            "agents read no other files; send its text, or a url"
        )
        raise A2AError(CONTENT_TYPE, message, metadata={"mediaType": media_type[:100]})
    return ReadFile(f"[file {name or 'without a name'}]\n{text}\n[end of the file]", None, kept)


def _is_text(media_type: str) -> bool:
    return (
        media_type.startswith("text/") or media_type in _TEXT_TYPES or media_type.endswith(("+json", "+xml", "+yaml"))
    )


def _text(data: bytes) -> str | None:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _named(media_type: str, name: str) -> dict[str, str]:
    return {key: value for key, value in (("mediaType", media_type), ("filename", name)) if value}
