"""Decodes and encodes very long JSON strings in pieces, for use in a thread. Pure.

The decoder and the encoder hold Python's global lock until they return, up to 5 ms per MiB of escapes. Between the
pieces of a string, other threads run.
"""

import re
from collections.abc import Callable
from typing import Final

import msgspec

PIECE_BYTES: Final = 1024 * 1024

_LOW_SURROGATE: Final = re.compile(rb"\\u[dD][c-fC-F]")
_ESCAPE_BYTES: Final = 6
"""The length of the longest escape, such as ``\\u00fc``."""
_encode: Final = msgspec.json.Encoder().encode


def decode_text(text: bytes, decode: Callable[[bytes], str]) -> str:
    """Decodes a JSON string, with its quotes, using ``decode``, a decoder of JSON.

    Raises:
        Exception: as raised by ``decode``.
    """
    parts: list[str] = []
    start, last = 1, len(text) - 1
    while last - start > PIECE_BYTES:
        cut = _cut(text, start, start + PIECE_BYTES)
        parts.append(decode(b'"%b"' % text[start:cut]))
        start = cut
    parts.append(decode(b'"%b' % text[start:]))
    return "".join(parts)


def encode_text(text: str) -> msgspec.Raw:
    """Encodes a string as JSON.

    Raises:
        UnicodeEncodeError: the text has half of a surrogate pair.
    """
    if len(text) > PIECE_BYTES:
        parts = [_encode(text[start : start + PIECE_BYTES])[1:-1] for start in range(0, len(text), PIECE_BYTES)]
        return msgspec.Raw(b'"%b"' % b"".join(parts))
    return msgspec.Raw(_encode(text))


def _cut(text: bytes, start: int, end: int) -> int:
    """An index shortly before ``end`` that does not split an escape, a surrogate pair or a character of UTF-8."""
    while text[end] & 0xC0 == 0x80:
        end -= 1
    backslash = text.rfind(b"\\", end - _ESCAPE_BYTES + 1, end)
    if backslash >= 0:
        before = text[start:backslash]
        if (len(before) - len(before.rstrip(b"\\"))) % 2:  # the last character belongs to an escape
            backslash -= 1
        end = backslash
    return end - _ESCAPE_BYTES if _LOW_SURROGATE.match(text, end) else end
