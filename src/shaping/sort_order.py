"""The one order of all values: false and true, then numbers, then text, then lists, then objects.

Text stands by its letters without case, and by its characters where only case differs; lists and objects by their JSON.
Null has no place in it: rows without a value come last, up or down.
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
    """What sorts values that are not null."""
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
    """Hashable, and equal for values that are the same: text with case, ``1`` and ``1.0`` alike, ``true`` not ``1``."""
    if isinstance(value, str):
        return value
    return None if is_null(value) else order_key(value)


def sort_rows(rows: Sequence[Any], keys: Sequence[SortKey]) -> list[Any]:
    """The rows in order of the first key, where that is equal of the second, and so on; else as they were."""
    ordered = list(rows)
    for key in reversed(keys):
        get = getter(key.path)
        placed = [(value, row) for row in ordered if not is_null(value := get(row))]
        last = [row for row in ordered if is_null(get(row))]
        place = _place_of({type(value) for value, _ in placed})
        placed.sort(key=lambda pair: place(pair[0]), reverse=key.descending)
        ordered = [row for _, row in placed] + last
    return ordered


def _place_of(types: set[type]) -> Callable[[Any], Any]:
    """``order_key``, or what is quicker and gives the same order where all are numbers, or all text."""
    if types <= {int, float}:
        return lambda value: value
    if types == {str}:
        return lambda text: (text.casefold(), text)
    return order_key
