"""The operands of filter conditions: typed literals and regular expressions."""

import datetime as dt
import math
import re
from collections.abc import Callable
from typing import Final

import re2  # type: ignore[import-untyped]  # it has no types of its own, nor in typeshed

from .text_cursor import TextCursor, quote
from .value_kinds import DATE, moment_of

Literal = str | int | float | bool | dt.datetime | None
"""A date has its zone; one without a time is its first moment, one without a zone is UTC."""

_WORDS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}
_NUMBER: Final = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_MAX_NUMBER_CHARS: Final = 400
"""A double has no more digits before its point; Python reads no more than some thousands."""


def typed(text: str, reader: TextCursor, at: int) -> Literal:
    """What bare ``text``, which stands at ``at``, means.

    Raises:
        LanguageError: it looks like a number or a date, and there is no such one.
    """
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _NUMBER.fullmatch(text):
        number = _number(text)
        if number is None:
            raise reader.error("the number is too large", at=at)
        return number
    if DATE.fullmatch(text):
        if (moment := moment_of(text)) is None:
            raise reader.error("there is no such date; as text it is quoted", at=at)
        return moment
    return text


def _number(text: str) -> int | float | None:
    if len(text) > _MAX_NUMBER_CHARS:
        return None
    number = int(text) if _INTEGER.fullmatch(text) else float(text)
    return number if isinstance(number, int) or math.isfinite(number) else None


def written(value: Literal) -> str:
    """The text that ``typed`` reads as ``value``."""
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
_OPTIONS.log_errors = False  # else a caller's mistake is a line on our stderr
_OPTIONS.max_mem = 1024 * 1024  # bytes, an eighth of RE2's own: what is compiled longer is compiled to be slow


class PatternError(ValueError):
    """The text is no pattern of RE2's; the message says why."""


def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Whether a text has the pattern anywhere in it, with case.

    Raises:
        PatternError: RE2 does not take it: it has no look-around and no back-references, on purpose.
    """
    if len(pattern) > MAX_PATTERN_CHARS:
        raise PatternError(f"it has more than {MAX_PATTERN_CHARS} characters")
    try:
        search = re2.compile(pattern, _OPTIONS).search
    except UnicodeEncodeError:
        raise PatternError("it holds half of a surrogate pair") from None
    except re2.error as error:
        raise PatternError(_told(error)) from None

    def matches(text: str) -> bool:
        # As bytes: of text the binding counts every offset anew.
        return search(text.encode(errors="replace")) is not None

    return matches


def _told(error: Exception) -> str:
    message = error.args[0] if error.args else ""
    return message.decode(errors="replace") if isinstance(message, bytes) else str(message)
