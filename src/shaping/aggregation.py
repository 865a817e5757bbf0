"""Aggregates of rows, over all rows or per group."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from .sort_order import identity, order_key
from .value_kinds import is_null, is_number
from .value_paths import ValuePath, getter


class Aggregation(msgspec.Struct, frozen=True):
    """The requested aggregates: ``figures`` maps names in ``FIGURES`` to fields."""

    group_by: tuple[ValuePath, ...]
    count: bool
    figures: Mapping[str, tuple[ValuePath, ...]]

    @property
    def paths(self) -> tuple[ValuePath, ...]:
        """All fields that the aggregates use."""
        return (*self.group_by, *(path for paths in self.figures.values() for path in paths))

    def with_paths(self, path_for: Callable[[ValuePath], ValuePath]) -> "Aggregation":
        """The same aggregates with other fields."""
        figures = {name: tuple(map(path_for, paths)) for name, paths in self.figures.items()}
        return Aggregation(tuple(map(path_for, self.group_by)), self.count, figures)


def aggregate(rows: Sequence[Any], wanted: Aggregation) -> Any:
    """The aggregates::

        {"count": 3, "sum": {"amount": 60}, "unique": {"status": ["open", "done"]}}

    If ``group_by`` is set, returns a list of such objects, one per group, in the order in which the groups first occur;
    each also has ``"group": {"status": "open"}``. Null and missing values are ignored; ``sum`` and ``avg`` also
    ignore values that are not numbers (``not_numbers`` counts them). Without values, ``sum`` is 0 and ``avg``,
    ``min`` and ``max`` are null.
    """
    if not wanted.group_by:
        return _figures(rows, wanted)
    getters = [getter(path) for path in wanted.group_by]
    groups: dict[tuple[Any, ...], tuple[dict[str, Any], list[Any]]] = {}
    for row in rows:
        values = [get(row) for get in getters]
        key = tuple(map(identity, values))
        if key not in groups:
            groups[key] = (dict(zip(map(str, wanted.group_by), values, strict=True)), [])
        groups[key][1].append(row)
    return [{"group": group, **_figures(members, wanted)} for group, members in groups.values()]


def not_numbers(rows: Sequence[Any], wanted: Aggregation) -> dict[str, int]:
    """The number of values that are not numbers, by summed or averaged field; fields without any are omitted."""
    paths = dict.fromkeys([*wanted.figures.get("sum", ()), *wanted.figures.get("avg", ())])
    counts = {str(path): sum(not is_number(value) for value in _values(rows, path)) for path in paths}
    return {path: count for path, count in counts.items() if count}


def _figures(rows: Sequence[Any], wanted: Aggregation) -> dict[str, Any]:
    figures: dict[str, Any] = {"count": len(rows)} if wanted.count else {}
    for name, paths in wanted.figures.items():
        figures[name] = {str(path): FIGURES[name](_values(rows, path)) for path in paths}
    return figures


def _values(rows: Iterable[Any], path: ValuePath) -> list[Any]:
    """The values at the path in all rows; with ``[*]`` every element is a separate value."""
    get = getter(path)
    values = [value for row in rows if not is_null(value := get(row))]
    return [item for items in values for item in items if not is_null(item)] if path.many else values


def _sum(values: Sequence[Any]) -> int | float | None:
    """Exact for integers, rounded once for others; null if the sum exceeds the range of a double."""
    numbers = [value for value in values if is_number(value)]
    if all(isinstance(number, int) for number in numbers):
        return sum(numbers)
    try:
        total = math.fsum(numbers)
    except (OverflowError, ValueError):
        return None
    return total if math.isfinite(total) else None


def _avg(values: Sequence[Any]) -> float | None:
    numbers = [value for value in values if is_number(value)]
    total = _sum(numbers)
    if total is None or not numbers:
        return None
    try:
        return total / len(numbers)
    except OverflowError:
        return None


def _min(values: Sequence[Any]) -> Any:
    return min(values, key=order_key, default=None)


def _max(values: Sequence[Any]) -> Any:
    return max(values, key=order_key, default=None)


def _unique(values: Sequence[Any]) -> list[Any]:
    """The distinct values, in the order in which they first occur."""
    different: dict[tuple[Any, ...], Any] = {}
    for value in values:
        different.setdefault(identity(value), value)
    return list(different.values())


FIGURES: Final[Mapping[str, Callable[[Sequence[Any]], Any]]] = {
    "sum": _sum,
    "avg": _avg,
    "min": _min,
    "max": _max,
    "unique": _unique,
}
"""The aggregates of fields, in addition to ``count``."""
