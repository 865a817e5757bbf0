"""Converts the sandbox's values to plain JSON, or reports the part that is not JSON. Pure."""

import datetime as dt
import json
import math
import re
from typing import Any, Final

MAX_DEPTH: Final = 100
MAX_VALUES: Final = 1_000_000
"""A value that is referenced twice counts twice: a few nested lists that repeat the same object can expand to any
number of values.
"""
MAX_CHARS: Final = 32 * 1024 * 1024
"""The length of all texts together; a frame has at most 20 MiB."""
_LARGEST: Final = 2**64
_NOT_AWAITED: Final = re.compile(r"<(?:coroutine (?:object \w+|external_future\(\d+\))|gather\(\d+\))>")
_VIEW: Final = re.compile(r"(dict_(?:keys|values|items))\(\[.*\]\)", re.DOTALL)
"""Matches the text forms of values that the engine cannot transfer, to recognise common mistakes."""


class NotJsonError(ValueError):
    """A value is not JSON; the message names the part and the fix."""


def plain(value: Any, what: str = "the value") -> Any:
    """The value as JSON: tuples and sets become arrays, dates and times ISO 8601 texts, NaN and infinities null.

    Raises:
        NotJsonError: part of it is not JSON, or it is too large.
    """
    return _Plain(what).of(value, what, MAX_DEPTH)


class _Plain:
    """Converts one value, and counts its parts."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._values = MAX_VALUES
        self._chars = MAX_CHARS

    def of(self, value: Any, where: str, depth: int) -> Any:
        self._count(value)
        match value:
            case None | bool():
                return value
            case str():
                return _text(value, where)
            case int():
                if not -_LARGEST // 2 <= value < _LARGEST:
                    raise NotJsonError(f"{where} is an integer of more than 64 bits; convert it with str()")
                return value
            case float():
                return value if math.isfinite(value) else None
            case dt.date() | dt.time():
                return value.isoformat()
        if depth == 0:
            raise NotJsonError(f"{where} is nested more than {MAX_DEPTH} deep, or contains itself")
        if isinstance(value, dict):
            return {
                self._key(key, where): self.of(part, f"{where}[{key!r:.40}]", depth - 1) for key, part in value.items()
            }
        if isinstance(value, list | tuple | set | frozenset):
            return [self.of(part, f"{where}[{index}]", depth - 1) for index, part in enumerate(value)]
        raise NotJsonError(f"{where} is {_kind(value)}, which is not JSON; convert it to plain data")

    def _key(self, key: Any, where: str) -> str:
        if isinstance(key, str):
            self._chars -= len(key)
            return key
        if isinstance(key, bool | int | float) or key is None:
            return json.dumps(key)
        raise NotJsonError(f"{where} has a key that is {_kind(key)}; keys are strings")

    def _count(self, value: Any) -> None:
        self._values -= 1
        self._chars -= len(value) if isinstance(value, str) else 0
        if self._values < 0:
            raise NotJsonError(f"{self._what} contains more than {MAX_VALUES:,} values; reduce it")
        if self._chars < 0:
            raise NotJsonError(f"{self._what} contains more than {MAX_CHARS:,} characters of text; reduce it")


def _text(value: str, where: str) -> str:
    if _NOT_AWAITED.fullmatch(value):
        raise NotJsonError(f"{where} is a call that was not awaited; write `await` in front of it")
    if view := _VIEW.fullmatch(value):
        raise NotJsonError(f"{where} is a {view[1]}, which is not JSON; convert it with list()")
    return value


def _kind(value: Any) -> str:
    """A value's type, as the program's author knows it."""
    name = getattr(value, "name", None)
    if type(value).__module__.startswith("pydantic_monty") and isinstance(name, str):
        return f"an object of class {name}"
    return f"a {type(value).__name__}"
