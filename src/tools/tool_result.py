"""Converts a tool's return value to a result: a text block and, for data, the value itself. Pure."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, Final

import msgspec
from pydantic_core import to_jsonable_python

from ..protocol.error_codes import ToolExecutionError
from ..protocol.json_pieces import LONG_BYTES, decode_in_pieces
from ..protocol.long_texts import AT_ONCE_BYTES
from ..protocol.tool_call import ContentBlock, Json, TextContent
from .tool import ToolOutput

MAX_TEXT_BYTES: Final = 64 * 1024
"""Longer JSON data is summarised in the text (docs/protocol.md, Calls); ``structured`` has all of it."""

_SUMMARY_KEYS: Final = 8

Content = tuple[tuple[ContentBlock, ...], Json | msgspec.UnsetType]
"""``outputs`` and ``structured`` of a result."""


_MANY_VALUES: Final = 1024
"""The values in objects and arrays."""


def is_long(returned: object) -> bool:
    """Whether validating arguments, converting a tool's return value, or encoding a result's value may take longer than
    some milliseconds: it has many values, or very long texts.
    """
    if isinstance(returned, str):  # the most common value, and the cheapest to check
        return len(returned) > AT_ONCE_BYTES // 4 and _text_bytes(returned) > AT_ONCE_BYTES
    if isinstance(returned, ToolOutput):
        blocks = returned.content or returned.blocks
        texts = [block.text for block in blocks if isinstance(block, TextContent)]
        if len(texts) < len(blocks) or sum(map(_text_bytes, texts)) + len(returned.text or "") > AT_ONCE_BYTES:
            return True
        return is_long(returned.data)
    texts_left, values_left, waiting = AT_ONCE_BYTES, _MANY_VALUES, [returned]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            texts_left -= _text_bytes(part)
        elif isinstance(part, dict | list | tuple):
            values_left -= len(part)
            if values_left >= 0:
                waiting.extend(part.values() if isinstance(part, dict) else part)
                if isinstance(part, dict):
                    waiting.extend(part)
        if texts_left < 0 or values_left < 0:
            return True
    return False


def _text_bytes(text: str) -> int:
    """At most the size of a text in UTF-8."""
    return len(text) if text.isascii() else 4 * len(text)


def _other_types(value: object) -> Any:
    """Encodes types that msgspec does not support: pydantic models, paths and others."""
    if type(value).__module__ == "builtins":  # msgspec supports the JSON types, so this value has unsupported keys
        raise TypeError(f"{type(value).__name__} is not JSON")
    return to_jsonable_python(value, by_alias=True)


_decode_short: Final = msgspec.json.Decoder(float_hook=float).decode
"""msgspec's own conversion of numbers takes up to 12 µs if the exponent is large (decision 54)."""
_encode = msgspec.json.Encoder(enc_hook=_other_types).encode


def content(returned: object, *, tool: str) -> Content:
    """The outputs and the structured value of a tool's return value.

    A string is only text; a ``ToolOutput`` is its text, its data and its further blocks; any other value is data, whose
    text is the value as JSON. Models, dataclasses, tuples and dates become JSON; NaN and infinities become
    null, as in JavaScript.

    Raises:
        ToolExecutionError: the value cannot be represented in JSON; the message names the tool, the type and the place.
    """
    if isinstance(returned, str):
        return _text(returned, tool), msgspec.UNSET
    if not isinstance(returned, ToolOutput):
        return _data(returned, None, tool)
    if returned.data is msgspec.UNSET:
        if returned.content is not None:
            return returned.content, msgspec.UNSET
        return (*_text(returned.text or "", tool), *_blocks(returned.blocks, tool)), msgspec.UNSET
    if returned.content is not None:
        return returned.content, _data(returned.data, "", tool)[1]
    outputs, structured = _data(returned.data, returned.text, tool)
    return (*outputs, *_blocks(returned.blocks, tool)), structured


def meta_of(returned: object) -> dict[str, Json] | msgspec.UnsetType:
    """The ``meta`` of a tool's return value."""
    if isinstance(returned, ToolOutput) and returned.meta is not None:
        return returned.meta
    return msgspec.UNSET


def _blocks(blocks: tuple[ContentBlock, ...], tool: str) -> tuple[ContentBlock, ...]:
    try:
        return msgspec.json.decode(_encode(blocks), type=tuple[ContentBlock, ...]) if blocks else ()
    except (TypeError, ValueError, RecursionError) as error:
        raise _not_json(blocks, tool, error) from error


def _text(text: str, tool: str) -> tuple[TextContent, ...]:
    if not text.isascii():  # a cached flag, so that this check is free for most answers
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise _not_json(text, tool, error) from error
    return (TextContent(text),)


def _data(value: object, words: str | None, tool: str) -> Content:
    try:
        encoded = _encode(value)
        plain = _decode_short(encoded) if len(encoded) <= LONG_BYTES else decode_in_pieces(encoded, max_values=None)
    except (TypeError, ValueError, RecursionError) as error:
        raise _not_json(value, tool, error) from error
    if words is not None:
        return _text(words, tool), plain
    if len(encoded) <= MAX_TEXT_BYTES:
        return (TextContent(encoded.decode()),), plain
    return (TextContent(f"{described(plain, len(encoded))}; `structured` has all of it"),), plain


def described(value: Json, size: int) -> str:
    """One line about a value of ``size`` bytes that is too long to show."""
    match value:
        case dict():
            first = ", ".join(key[:60] for key in list(value)[:_SUMMARY_KEYS])
            more = ", …" if len(value) > _SUMMARY_KEYS else ""
            what = f"an object with {len(value):,} keys ({first}{more})"
        case list():
            what = f"an array of {len(value):,} items"
        case str():
            what = f"a string of {len(value):,} characters"
        case _:
            what = "a number"
    return f"{what}, {size / 1024:,.0f} KiB as JSON"


def _not_json(value: object, tool: str, cause: Exception) -> ToolExecutionError:
    if isinstance(cause, RecursionError):
        reason = "it is nested too deeply, or contains itself"
    else:
        where, culprit = _culprit(value, "")
        reason = f"{where or 'the value'} is of type {type(culprit).__name__}"
        if isinstance(cause, UnicodeEncodeError):
            reason += " and contains half of a surrogate pair, which is not Unicode text"
        elif isinstance(culprit, dict):
            reason += " with keys that are neither strings nor numbers"
    return ToolExecutionError(f"The tool {tool!r} returned a value that is not JSON: {reason}.", executed="yes")


def _culprit(value: object, where: str) -> tuple[str, object]:
    """The innermost part that cannot be encoded, and its path, such as ``models[3].price``."""
    for step, part in _parts(value):
        try:
            _encode(part)
        except (TypeError, ValueError, RecursionError):
            return _culprit(part, where + step)
    return where.removeprefix("."), value


def _parts(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        yield from ((f".{key}", part) for key, part in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((f"[{index}]", part) for index, part in enumerate(value))
    elif is_dataclass(value):
        yield from ((f".{field.name}", getattr(value, field.name)) for field in fields(value))
