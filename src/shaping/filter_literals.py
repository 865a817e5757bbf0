"""Values as they are written in filters, each with its type: numbers, true, false, null, ISO dates, and text."""

import datetime as dt
import math
import re
from typing import Final

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
