"""Messages that are long only because of their texts, such as a file or a document. Pure.

Decoding them takes about as long as copying them a few times, so they are handled in one piece on the event loop, like
short messages: a thread would cost more. Messages with many values are decoded in a thread (``json_pieces``).
"""

import re
from collections.abc import Callable
from itertools import chain
from typing import Any, Final

import msgspec
from pydantic_core import SchemaValidator, core_schema, from_json

from .json_pieces import LONG_BYTES, finite
from .text_pieces import encode_text
from .tool_call import ContentBlock, TextContent, ToolResult

AT_ONCE_BYTES: Final = 2 * 1024**2
"""Texts of this size are decoded and encoded on the event loop. That takes up to 5 ms: 1 ms in ASCII, most with escapes
or outside of ASCII."""
_MAX_STRUCTURE_BYTES: Final = 16 * 1024
"""The largest size of everything except the texts, which is at most some 8,000 values."""
_MAX_QUOTES: Final = 2_000
"""The maximum number of quotes, including escaped ones; each takes 0.2 µs."""
_MAX_BACKSLASHES: Final = 16
"""The maximum number of consecutive backslashes before a quote."""

_SAMPLE_BYTES: Final = 64 * 1024
_BACKSLASH: Final = ord("\\")
_EXPONENT: Final = re.compile(rb"[0-9][eE]")
_QUOTE: Final = b'"'
_MARK_END: Final = b"\0"
"""The byte around marks. JSON does not contain it."""
_MARK: Final = b"\0%d\0"
"""A mark that stands for the text with this index."""
_no_values: Final = SchemaValidator(core_schema.typed_dict_schema({}, extra_behavior="ignore"))
_decode: Final[Callable[[bytes], Any]] = msgspec.json.Decoder(Any, float_hook=finite).decode


def is_quick(data: bytes) -> bool:
    """Whether a JSON text is short, or long only because of some texts, so that handling it takes milliseconds."""
    return len(data) <= LONG_BYTES or (len(data) <= AT_ONCE_BYTES and _structure_of(data) is not None)


def decode_long_texts(data: bytes) -> Any:
    """Decodes a long JSON text that ``is_quick``.

    Raises:
        msgspec.DecodeError: ``data`` is not JSON.
        UnicodeDecodeError: it is not UTF-8.
        RecursionError: it is nested too deeply.
    """
    # pydantic's parser takes a quarter of the time of msgspec's for ASCII without escapes, and more for other texts.
    # A sample decides which parser is used. pydantic reads numbers beyond a double as infinite.
    if b"\\" not in data and data[:_SAMPLE_BYTES].isascii() and not _EXPONENT.search(_structure_of(data) or data):
        try:
            return from_json(data, allow_inf_nan=False, cache_strings="none")
        except ValueError:
            pass  # msgspec says what is wrong, or accepts deeper nesting
    return _decode(data)


def encode_answer(result: ToolResult, encode: Callable[[ToolResult], bytes]) -> bytes:
    """Encodes a result by ``encode``, and its long texts separately, so that most of these are copied only once.

    Raises:
        UnicodeEncodeError: a text has half of a surrogate pair.
    """
    texts: dict[int, str] = {}
    for index, block in enumerate(result.outputs):
        if isinstance(block, TextContent) and len(block.text) > LONG_BYTES:
            texts[index] = block.text
    if not texts:
        return encode(result)
    outputs: list[ContentBlock] = list(result.outputs)
    for index in texts:
        outputs[index] = msgspec.structs.replace(outputs[index], text=msgspec.Raw(_MARK % index))
    rest = encode(msgspec.structs.replace(result, outputs=tuple(outputs))).split(_MARK_END)
    if sum(map(len, rest)) <= LONG_BYTES and all(map(_may_be_plain, texts.values())):
        plain = _joined(rest, {index: (_QUOTE, msgspec.Raw(text), _QUOTE) for index, text in texts.items()})
        if _is_json(plain):
            return plain
    return _joined(rest, {index: (encode_text(text),) for index, text in texts.items()})


def _joined(rest: list[bytes], texts: dict[int, tuple[bytes | msgspec.Raw, ...]]) -> bytes:
    """The JSON with the texts in place of their marks. Split at the marks' byte, every second part is the index of a
    text.
    """
    parts = [texts[int(part)] if place % 2 else (part,) for place, part in enumerate(rest)]
    return b"".join(chain.from_iterable(parts))


def _may_be_plain(text: str) -> bool:
    """Whether the text in quotes is valid JSON, unless the text has control characters."""
    return text.isascii() and "\n" not in text and '"' not in text and "\\" not in text


def _is_json(data: bytes) -> bool:
    """Whether this is JSON. pydantic's parser takes a quarter of an encoder's time, and copies no values here."""
    try:
        _no_values.validate_json(data)
    except ValueError:  # it may also be nested too deeply for this parser
        return False
    return True


def _structure_of(data: bytes) -> bytes | None:
    """The JSON outside of texts; None if it is long, or if there are many texts or quotes in texts."""
    parts: list[bytes] = []
    start = length = 0
    in_text = False
    for _ in range(_MAX_QUOTES):
        quote = data.find(b'"', start)
        if not in_text:
            length += (quote if quote >= 0 else len(data)) - start
            if length > _MAX_STRUCTURE_BYTES:
                return None
            parts.append(data[start : quote if quote >= 0 else len(data)])
        if quote < 0:
            return b" ".join(parts)
        start, in_text = quote + 1, not in_text
        if not in_text and data[quote - 1] == _BACKSLASH:
            before = data[max(0, quote - _MAX_BACKSLASHES) : quote]
            backslashes = len(before) - len(before.rstrip(b"\\"))
            if backslashes == _MAX_BACKSLASHES:
                return None
            in_text = backslashes % 2 == 1
    return None
