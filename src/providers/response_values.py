"""Reads values of a vendor's decoded response, which may have any type. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any


class InvalidResponseError(ValueError):
    """The response does not have the documented format; the message names the problem."""


def as_mapping(value: Any, what: str) -> Mapping[str, Any]:
    """Raises ``InvalidResponseError`` if the value is not an object."""
    if not isinstance(value, Mapping):
        raise InvalidResponseError(f"{what} is not an object")
    return value


def as_list(value: Any) -> list[Any]:
    """Returns the list, or an empty one for any other value."""
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str | Mapping) else []


def as_text(value: Any) -> str:
    """Returns the text, or an empty one for any other value."""
    return value if isinstance(value, str) else ""


def as_count(value: Any) -> int:
    """Returns the positive number, or 0 for any other value."""
    return value if isinstance(value, int) and value > 0 else 0
