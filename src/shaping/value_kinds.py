"""The kinds and sizes of JSON values."""

import datetime as dt
import math
import re
from typing import Any, Final, TypeGuard

DATE: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:[Zz]|[+-][0-9]{2}:?[0-9]{2})?)?"
)
"""An ISO 8601 date: a day, or a day and a time, with or without a time zone."""


def is_null(value: Any) -> bool:
    """Whether a value is null or NaN, which JSON does not have and which equals nothing."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def is_number(value: Any) -> TypeGuard[int | float]:
    """Whether a value is a number; booleans, which Python counts as integers, are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


_DECIMAL: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_MAX_DECIMAL_CHARS: Final = 400
"""Longer texts are not read as numbers. The largest double has 309 digits before its decimal point."""


def decimal_in(text: str) -> int | float | None:
    """The number that a text of decimal digits denotes; None for other texts, including ``007`` and ``1e3``, which are
    codes and ids more often than numbers.
    """
    if len(text) > _MAX_DECIMAL_CHARS or not _DECIMAL.fullmatch(text):
        return None
    return float(text) if "." in text else int(text)


def parse_timestamp(value: Any) -> dt.datetime | None:
    """The instant that a field's text denotes in ISO 8601; None if it does not denote one."""
    if not (isinstance(value, str) and DATE.fullmatch(value)):
        return None
    try:
        timestamp = dt.datetime.fromisoformat(value.upper())
    except ValueError:
        return None
    return timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=dt.UTC)


def text_of(value: Any) -> str | None:
    """The text that CONTAINS, STARTS_WITH and MATCHES search; numbers and booleans as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        try:
            return repr(value)
        except ValueError:  # an integer with more digits than Python converts
            return None
    return None


def kind_of(value: Any) -> str:
    """The name of the value's JSON type."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case int() | float():
            return "number"
        case list():
            return "array"
        case _:
            return "object"


_PLACE_BYTES: Final = 8
"""The size of an element or a field without its value: a reference in CPython."""


def weight(value: Any, limit: int) -> int:
    """The approximate size in bytes, counting shared parts every time; stops counting beyond ``limit``."""
    waiting, seen = [value], 0
    while waiting and seen <= limit:
        part = waiting.pop()
        if isinstance(part, str):
            seen += len(part)
        elif isinstance(part, list | dict):
            seen += _PLACE_BYTES * len(part)
            if seen > limit:
                break
            if isinstance(part, dict):
                seen += sum(map(len, part))
            waiting.extend(part.values() if isinstance(part, dict) else part)
    return seen
