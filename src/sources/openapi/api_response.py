"""Converts an API's response into the tool's answer: data, text, or a file as base64. Pure."""

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

from ...protocol.error_codes import ProviderError, ResultTooLargeError
from ...protocol.json_pieces import (
    LONG_BYTES,
    TooComplexError,
    TooManyValuesError,
    decode_in_pieces,
    finite,
    has_few_parts,
)
from ...tools import ToolOutput
from ..json_surrogates import replace_lone_surrogates

MAX_ANSWER_VALUES: Final = 1_000_000
"""The maximum number of values in one answer. Encoding them again takes at most 30 ms on an idle machine."""
_TEXT: Final = re.compile(r"text/|[\w./+-]*(xml|yaml|javascript|graphql|x-www-form-urlencoded|ndjson|csv)\b")
_ODD_NUMBER: Final = re.compile(rb"NaN|Infinity|\d[eE]\+?\d{3}")
"""Matches the numbers that msgspec rejects."""
_decode_short: Final = msgspec.json.Decoder(float_hook=finite).decode
_MARKUP: Final = re.compile(r"<(script|style)\b(?:[^<]|<(?!/\1\b))*+(?:</\1[^<>]*>)?|<[^<>]*>", re.IGNORECASE)
"""Its search takes linear time in the size of a page, even if tags are not closed."""
_NOT_CHARSETS: Final = frozenset({"idna", "punycode", "undefined"})
"""Python codecs that are not charsets: slow encodings of domain names, and a codec that always fails."""
_MIN_SECRET_CHARS: Final = 8
"""The minimum length of a redacted text. Shorter texts can match by accident."""
_ESCAPED_IN_JSON: Final = ("+<>&'\"`", "<>&='", "<>&", "+/=")
"""Characters that common JSON encoders (.NET, Gson, Go) write as ``\\uXXXX`` so that the text is safe in HTML, and
those of Base64.
"""
_PERCENT_ENCODED: Final = re.compile(r"%[0-9A-F]{2}")
_MAX_MESSAGE_CHARS: Final = 500
_MESSAGE_KEYS: Final = (
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
"""Keys of error messages in APIs' JSON, including those of RFC 9457."""


def redact_secrets(secrets: Iterable[str], content: bytes) -> bytes:
    """Returns the content without the secrets that it repeats: plain, escaped as in JSON or URLs, or in UTF-16."""
    secrets = [secret for secret in secrets if len(secret) >= _MIN_SECRET_CHARS]
    forms = sorted({form for secret in secrets for form in _forms(secret, content)}, key=len, reverse=True)
    for form in forms:
        content = content.replace(form.encode(), "…".encode())
    if b"\0" in content:
        # The bytes of a text in one byte order contain those in the other order, shifted by one.
        for form in forms:
            for charset in ("utf-16-le", "utf-16-be"):
                content = _replace_aligned(content, form.encode(charset), "…".encode(charset))
    return content


def _replace_aligned(content: bytes, text: bytes, other: bytes) -> bytes:
    """Replaces a text in UTF-16 where it begins at an even offset."""
    kept, start, place = [], 0, content.find(text)
    while place >= 0:
        if place % 2:
            place = content.find(text, place + 1)
            continue
        kept += [content[start:place], other]
        start = place + len(text)
        place = content.find(text, start)
    return b"".join([*kept, content[start:]])


def _forms(secret: str, content: bytes) -> set[str]:
    """The forms in which the content may have a secret."""
    in_json = json.dumps(secret)[1:-1]
    forms = {secret, in_json, in_json.replace("/", "\\/")}
    if b"\\" in content:
        for escaped in (*_ESCAPED_IN_JSON, secret):
            for digits in ("04x", "04X"):
                forms.add("".join(f"\\u{ord(char):{digits}}" if char in escaped else char for char in secret))
    if b"%" in content:
        in_url, all_in_url = quote(secret, safe=""), "".join(f"%{byte:02X}" for byte in secret.encode())
        forms |= {in_url, _PERCENT_ENCODED.sub(_lower, in_url), all_in_url, all_in_url.lower()}
    return forms


def _lower(found: re.Match[str]) -> str:
    return found[0].lower()


def read_answer(status: int, headers: httpx.Headers, content: bytes, *, location: str = "") -> ToolOutput | str:
    """Returns a successful response: JSON as data, text as text, anything else as type, size and base64.

    ``location`` is the URL of the created object, for a response without content.

    Raises:
        ProviderError: the response is declared as JSON but is not JSON.
    """
    content_type = headers.get("content-type", "")
    media_type = content_type.partition(";")[0].strip().lower()
    if not content.strip():
        created = f" The location is {location}" if location else ""
        return ToolOutput(f"HTTP {status}, no content.{created}", None)
    if media_type.endswith(("/json", "+json")):
        return ToolOutput(data=_json(content, content_type, status))
    if _TEXT.match(media_type):
        return _decoded(content, content_type)
    if not media_type or media_type == "application/octet-stream":
        try:  # many APIs send no content type
            return ToolOutput(data=_decode_json(content))
        except (ValueError, RecursionError):
            pass
    return ToolOutput(
        f"{media_type or 'Something'} of {len(content):,} bytes; `structured` contains it as base64.",
        {"content_type": media_type or None, "bytes": len(content), "base64": base64.b64encode(content).decode()},
    )


def error_message(headers: httpx.Headers, content: bytes) -> tuple[str, Any]:
    """Returns the message of an error response, one line of at most 500 characters, and its JSON if any."""
    content_type = headers.get("content-type", "")
    try:
        value = _decode_json(content)  # unlike json's, msgspec's values can always be encoded again
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = _decoded(content, content_type)
        if "html" in content_type.lower() or text.lstrip()[:1] == "<":
            text = _MARKUP.sub(" ", text)
        return _line(text), None
    return _line(_message_in(value, 4) or json.dumps(value, ensure_ascii=False)), value


def _message_in(value: Any, levels: int) -> str:
    if isinstance(value, str) or levels == 0:
        return value if isinstance(value, str) else ""
    if isinstance(value, list):
        return "; ".join(filter(None, (_message_in(part, levels - 1) for part in value[:5])))
    if isinstance(value, dict):
        return next(filter(None, (_message_in(value.get(key), levels - 1) for key in _MESSAGE_KEYS)), "")
    return ""


def _json(content: bytes, content_type: str, status: int) -> Any:
    try:
        return _read_json(content, content_type)
    except (ValueError, RecursionError):
        raise ProviderError(f"The API answered HTTP {status} with invalid JSON.", executed="yes") from None


def _decode_json(content: bytes) -> Any:
    """Decodes JSON, in pieces if it is long; the caller must then be a thread.

    Raises:
        ResultTooLargeError: it has more than ``MAX_ANSWER_VALUES`` values, or cannot be split into short pieces.
        ValueError: it is not JSON.
    """
    if len(content) <= LONG_BYTES:
        return _decode_short(content)
    try:
        return decode_in_pieces(content, max_values=MAX_ANSWER_VALUES)
    except TooManyValuesError:
        message = f"The API's answer has more than {MAX_ANSWER_VALUES:,} values; request less at a time."
        raise ResultTooLargeError(message) from None
    except TooComplexError as error:
        raise ResultTooLargeError(f"The API's answer would take too long to read: {error}.") from None


def _read_json(content: bytes, content_type: str) -> Any:
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        return _decode_json(content)
    # Common deviations: another charset, a byte order mark, a lone surrogate, or NaN.
    text = replace_lone_surrogates(_decoded(content, content_type).removeprefix("\ufeff").encode())
    try:
        return _decode_json(text)
    except msgspec.DecodeError:
        if not _ODD_NUMBER.search(text) or not has_few_parts(text):
            raise  # do not parse megabytes again: Python's parser is ten times as slow, and blocks the loop
    return json.loads(text, parse_constant=_null, parse_float=_finite)


def _null(_: str) -> None:
    """Returns null for NaN and infinity."""


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def _decoded(content: bytes, content_type: str) -> str:
    charset = re.search(r"charset=\"?([\w.:-]+)", content_type)
    try:
        codec = codecs.lookup(charset[1] if charset else "utf-8")
        return content.decode("utf-8" if codec.name in _NOT_CHARSETS else codec.name, errors="replace")
    except LookupError:
        return content.decode("utf-8", errors="replace")


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_MESSAGE_CHARS else line[: _MAX_MESSAGE_CHARS - 1] + "…"
