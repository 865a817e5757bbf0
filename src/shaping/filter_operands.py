"""The operands of filter conditions: typed literals and regular expressions."""

import datetime as dt
import math
import re
from collections.abc import Callable
from typing import Final

import re2  # type: ignore[import-untyped]  # neither re2 nor typeshed has types

from .text_cursor import TextCursor, quote
from .value_kinds import DATE, parse_timestamp

Literal = str | int | float | bool | dt.datetime | None
"""A datetime has a time zone, UTC by default; a date without a time stands for midnight."""

_WORDS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}
_NUMBER: Final = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_MAX_NUMBER_CHARS: Final = 400
"""Longer numbers are rejected. The largest double has 309 digits before its decimal point."""


def typed(text: str, reader: TextCursor, at: int) -> Literal:
    """The value that the unquoted ``text`` at position ``at`` stands for.

    Raises:
        LanguageError: it looks like a number or a date but is not a valid one.
    """
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _NUMBER.fullmatch(text):
        number = _number(text)
        if number is None:
            raise reader.error("the number is too large", at=at)
        return number
    if DATE.fullmatch(text):
        if (timestamp := parse_timestamp(text)) is None:
            raise reader.error("the date does not exist; quote it if you mean the text", at=at)
        return timestamp
    return text


def _number(text: str) -> int | float | None:
    if len(text) > _MAX_NUMBER_CHARS:
        return None
    number = int(text) if _INTEGER.fullmatch(text) else float(text)
    return number if isinstance(number, int) or math.isfinite(number) else None


def written(value: Literal) -> str:
    """The text that ``typed`` parses to ``value``."""
    match value:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case str():
            return quote(value)
        case dt.datetime():
            return value.isoformat()
        case _:
            return repr(value)


MAX_PATTERN_CHARS: Final = 1_000

_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False  # otherwise RE2 writes a line to stderr for every invalid pattern
_OPTIONS.max_mem = 1024 * 1024  # bytes, an eighth of RE2's default: larger patterns would be slow


class PatternError(ValueError):
    """The text is not a valid RE2 pattern; the message says why."""


def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """A function that returns whether a text contains a match of the pattern, case-sensitive.

    Raises:
        PatternError: RE2 rejects it; RE2 deliberately has no look-around and no back-references.
    """
    if len(pattern) > MAX_PATTERN_CHARS:
        raise PatternError(f"it has more than {MAX_PATTERN_CHARS} characters")
    try:
        search = re2.compile(pattern, _OPTIONS).search
    except UnicodeEncodeError:
        raise PatternError("it contains half of a surrogate pair") from None
    except re2.error as error:
        raise PatternError(_message_of(error)) from None

    def matches(text: str) -> bool:
        # On bytes: for str the binding recalculates every offset.
        return search(text.encode(errors="replace")) is not None

    return matches


def _message_of(error: Exception) -> str:
    message = error.args[0] if error.args else ""
    return message.decode(errors="replace") if isinstance(message, bytes) else str(message)
