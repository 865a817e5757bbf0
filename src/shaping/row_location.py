"""Locates the rows of a value: the value itself, the list at ``at``, or the only list inside an object."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from .shaping_errors import NoListError
from .value_kinds import kind_of
from .value_paths import MISSING, ValuePath, explain_missing, find_value

_MAX_CANDIDATES: Final = 10
"""The largest number of lists that an error names."""
_MAX_NAMES: Final = 10
"""The largest number of fields that an error names of an object without a list."""
_MAX_DEPTH: Final = 16
"""The deepest nesting of objects that is searched for a list."""


class LocatedRows(msgspec.Struct, frozen=True):
    """``value`` is the value at ``at``; ``inside`` is the path from there to its list. The fields around it are kept.

    If there is not exactly one list, ``inside`` is None, and ``others`` has the paths of all lists.
    """

    value: Any
    at: ValuePath | None
    inside: ValuePath | None
    others: tuple[ValuePath, ...] = ()

    @property
    def rows(self) -> list[Any]:
        """The list; raises an error if there is not exactly one."""
        if self.inside is None:
            raise self.error()
        rows: list[Any] = find_value(self.inside, self.value)
        return rows

    @property
    def path(self) -> ValuePath | None:
        """The list's path in the whole value; without steps if it is the value itself, None if there is no list."""
        return None if self.inside is None else _joined(self.at, self.inside)

    @property
    def siblings(self) -> dict[str, Any]:
        """The value without the list; empty if the value is the list itself or has none."""
        return _siblings(self.value, self.inside.steps) if self.inside else {}

    def error(self) -> NoListError:
        """Explains why there are no rows, and what to do."""
        candidates = tuple(str(_joined(self.at, path)) for path in self.others[:_MAX_CANDIDATES])
        if candidates:
            more = " and more" if len(self.others) > _MAX_CANDIDATES else ""
            lists = ", ".join(candidates)
            return NoListError(f"there are several lists: {lists}{more}; select one with at", candidates)
        where = f"at `{self.at}`" if self.at else "in the value"
        needed = "filter, sort, limit and aggregate need one; omit them, or select a list with at"
        return NoListError(f"there is no list {where} ({_described(self.value)}): {needed}")

    def replaced(self, rows: Any) -> Any:
        """The value with other rows. Nothing is changed in place."""
        return rows if self.inside is None else _replaced(self.value, self.inside.steps, rows)


def locate(value: Any, at: ValuePath | None) -> LocatedRows:
    """Locate the rows of ``value``. A value without rows is not an error here.

    Raises:
        NoListError: there is no value at ``at``.
    """
    if at is not None and (value := find_value(at, whole := value)) is MISSING:
        raise NoListError(f"at: {explain_missing(at, whole)}")
    if isinstance(value, list):
        return LocatedRows(value, at, ValuePath(()))
    lists = tuple(_lists(value, ()))
    return LocatedRows(value, at, lists[0]) if len(lists) == 1 else LocatedRows(value, at, None, lists)


def _lists(value: Any, steps: tuple[str, ...]) -> Iterator[ValuePath]:
    """The lists in nested objects, including empty lists, but not lists within lists."""
    if not isinstance(value, dict) or len(steps) == _MAX_DEPTH:
        return
    for name, item in value.items():
        if isinstance(item, list):
            yield ValuePath((*steps, name))
        else:
            yield from _lists(item, (*steps, name))


def _joined(at: ValuePath | None, inside: ValuePath) -> ValuePath:
    return ValuePath((*at.steps, *inside.steps)) if at else inside


def _replaced(value: Any, steps: Sequence[Any], rows: Any) -> Any:
    return {**value, steps[0]: _replaced(value[steps[0]], steps[1:], rows)} if steps else rows


def _siblings(value: Any, steps: Sequence[Any]) -> dict[str, Any]:
    """The objects on this path without the value at its end; objects that become empty are omitted."""
    if not steps:
        return {}
    first, rest = steps[0], _siblings(value[steps[0]], steps[1:])
    return {name: rest if name == first else item for name, item in value.items() if name != first or rest}


def _described(value: Any) -> str:
    if not isinstance(value, dict):
        return kind_of(value)
    fields = ", ".join(list(value)[:_MAX_NAMES])
    return f"an object with the fields {fields}" if fields else "an object without fields"
