"""An API's answer → what the tool returns: data, text, or a file as base64. Pure."""

import base64
import codecs
import json
import math
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote

import httpx
import msgspec

from ...protocol.error_codes import ProviderError
from ...tools import Answer
from ..json_surrogates import replace_lone_surrogates

_TEXT: Final = re.compile(r"text/|[\w./+-]*(xml|yaml|javascript|graphql|x-www-form-urlencoded|ndjson|csv)\b")
_ODD_NUMBER: Final = re.compile(rb"NaN|Infinity|\d[eE]\+?\d{3}")
"""What msgspec refuses for its numbers has one of these."""
_MARKUP: Final = re.compile(r"<(script|style)\b(?:[^<]|<(?!/\1\b))*+(?:</\1[^<>]*>)?|<[^<>]*>", re.IGNORECASE)
"""Every part of a page is gone through once, also where nothing that is opened is closed."""
_NO_CHARSETS: Final = frozenset({"idna", "punycode", "undefined"})
"""Codecs of Python's that are no page's: forms of names, which take long to read, and one that reads nothing."""
_MIN_SECRET_CHARS: Final = 8
"""Shorter text may be found where it is no secret."""
_MAX_WORDS_CHARS: Final = 500
_WORDS_AT: Final = (
    "message",
    "error_description",
    "detail",
    "error",
    "title",
    "msg",
    "description",
    "errors",
    "reason",
)
"""Where APIs say what is wrong, RFC 9457 among them."""


def without(secrets: Iterable[str], content: bytes) -> bytes:
    """The same, should the API repeat a secret: as it is, or as JSON or an address has it."""
    forms = {form for secret in secrets if len(secret) >= _MIN_SECRET_CHARS for form in _forms(secret)}
    for form in sorted(forms, key=len, reverse=True):
        content = content.replace(form.encode(), "…".encode())
    return content


def _forms(secret: str) -> set[str]:
    in_json = json.dumps(secret)[1:-1]
    return {secret, in_json, in_json.replace("/", "\\/"), quote(secret, safe="")}


def read_answer(status: int, headers: httpx.Headers, content: bytes) -> Answer | str:
    """What an answer of success holds: JSON as data, text as text, of anything else its type, size and base64.

    Raises:
        ProviderError: it says that it is JSON, and is not.
    """
    said = headers.get("content-type", "")
    media_type = said.partition(";")[0].strip().lower()
    if not content.strip():
        return Answer(f"Done; HTTP {status}, without content.", None)
    if media_type.endswith(("/json", "+json")):
        return Answer(data=_json(content, said, status))
    if _TEXT.match(media_type):
        return _decoded(content, said)
    if not media_type or media_type == "application/octet-stream":
        try:  # many APIs say nothing
            return Answer(data=msgspec.json.decode(content))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
    return Answer(
        f"{media_type or 'Something'} of {len(content):,} bytes; `structured` has it as base64.",
        {"content_type": media_type or None, "bytes": len(content), "base64": base64.b64encode(content).decode()},
    )


def words(headers: httpx.Headers, content: bytes) -> tuple[str, Any]:
    """What an answer of failure says, in one line of at most 500 characters, and its JSON where it is some."""
    said = headers.get("content-type", "")
    try:
        value = msgspec.json.decode(content)  # unlike json's, it can be written again
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = _decoded(content, said)
        if "html" in said.lower() or text.lstrip()[:1] == "<":
            text = _MARKUP.sub(" ", text)
        return _line(text), None
    return _line(_said_in(value, 4) or json.dumps(value, ensure_ascii=False)), value


def _said_in(value: Any, levels: int) -> str:
    if isinstance(value, str) or levels == 0:
        return value if isinstance(value, str) else ""
    if isinstance(value, list):
        return "; ".join(filter(None, (_said_in(part, levels - 1) for part in value[:5])))
    if isinstance(value, dict):
        return next(filter(None, (_said_in(value.get(key), levels - 1) for key in _WORDS_AT)), "")
    return ""


def _json(content: bytes, content_type: str, status: int) -> Any:
    try:
        return _read_json(content, content_type)
    except (ValueError, RecursionError):
        raise ProviderError(f"The API answered HTTP {status} with what is no JSON.", executed="yes") from None


def _read_json(content: bytes, content_type: str) -> Any:
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        return msgspec.json.decode(content)
    # As many write it: in another charset, with a byte order mark, half of a character, or NaN.
    text = replace_lone_surrogates(_decoded(content, content_type).removeprefix("\ufeff").encode())
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        if not _ODD_NUMBER.search(text):
            raise  # before megabytes are read once more, ten times as slowly, and nobody else is served meanwhile
    return json.loads(text, parse_constant=_nothing, parse_float=_finite)


def _nothing(_: str) -> None:
    """Null, for NaN and infinity."""


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def _decoded(content: bytes, content_type: str) -> str:
    charset = re.search(r"charset=\"?([\w.:-]+)", content_type)
    try:
        codec = codecs.lookup(charset[1] if charset else "utf-8")
        return content.decode("utf-8" if codec.name in _NO_CHARSETS else codec.name, errors="replace")
    except LookupError:
        return content.decode("utf-8", errors="replace")


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_WORDS_CHARS else line[: _MAX_WORDS_CHARS - 1] + "…"
