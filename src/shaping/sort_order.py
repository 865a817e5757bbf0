"""The total order of values: false, true, numbers, texts, lists, objects.

Texts are compared case-insensitively, then by their characters; lists and objects by their JSON. Rows without a value
are last in both directions.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from .value_kinds import is_null
from .value_paths import ValuePath, getter


class SortKey(msgspec.Struct, frozen=True):
    """A field to sort by."""

    path: ValuePath
    descending: bool = False


def order_key(value: Any) -> tuple[Any, ...]:
    """The sort key of a value that is not null."""
    match value:
        case str():
            return (2, value.casefold(), value)
        case bool():
            return (0, value)
        case int() | float():
            return (1, value)
        case _:
            return (3 if isinstance(value, list) else 4, msgspec.json.encode(value, order="sorted"))


def identity(value: Any) -> Any:
    """A hashable key that is equal for equal values: text with case; ``1`` equals ``1.0``, but not ``true``."""
    if isinstance(value, str):
        return value
    return None if is_null(value) else order_key(value)


def sort_rows(rows: Sequence[Any], keys: Sequence[SortKey]) -> list[Any]:
    """The rows sorted by the first key, then by the second, and so on. Stable."""
    ordered = list(rows)
    for key in reversed(keys):
        get = getter(key.path)
        placed = [(value, row) for row in ordered if not is_null(value := get(row))]
        last = [row for row in ordered if is_null(get(row))]
        place = _sort_key_of({type(value) for value, _ in placed})
        placed.sort(key=lambda pair: place(pair[0]), reverse=key.descending)
        ordered = [row for _, row in placed] + last
    return ordered


def _sort_key_of(types: set[type]) -> Callable[[Any], Any]:
    """``order_key``, or a faster key with the same order if all values are numbers or all are texts."""
    if types <= {int, float}:
        return lambda value: value
    if types == {str}:
        return lambda text: (text.casefold(), text)
    return order_key
