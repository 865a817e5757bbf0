"""The kinds and sizes of JSON values."""

import datetime as dt
import math
import re
from typing import Any, Final, TypeGuard

DATE: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:[Zz]|[+-][0-9]{2}:?[0-9]{2})?)?"
)
"""ISO's way of writing a date: a day, or a day and a time, with or without a zone."""


def is_null(value: Any) -> bool:
    """Null or NaN, which JSON does not have and nothing is equal to."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def is_number(value: Any) -> TypeGuard[int | float]:
    """A number; true and false, which Python counts among them, are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def moment_of(value: Any) -> dt.datetime | None:
    """The date that a field's value writes in ISO's way; None where it does not."""
    if not (isinstance(value, str) and DATE.fullmatch(value)):
        return None
    try:
        moment = dt.datetime.fromisoformat(value.upper())
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)


def text_of(value: Any) -> str | None:
    """The text that CONTAINS, STARTS_WITH and MATCHES look at: of numbers, true and false as JSON writes them."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        try:
            return repr(value)
        except ValueError:  # an integer of more digits than Python writes
            return None
    return None


def kind_of(value: Any) -> str:
    """The value's type in JSON's words."""
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
"""Of an element or a field, whatever stands there: a reference, as CPython has it."""


def weight(value: Any, most: int) -> int:
    """About so many bytes, every part counted as often as it is used; looks no further once it is past ``most``."""
    waiting, seen = [value], 0
    while waiting and seen <= most:
        part = waiting.pop()
        if isinstance(part, str):
            seen += len(part)
        elif isinstance(part, list | dict):
            seen += _PLACE_BYTES * len(part)
            if seen > most:
                break
            if isinstance(part, dict):
                seen += sum(map(len, part))
            waiting.extend(part.values() if isinstance(part, dict) else part)
    return seen
