"""Locates the rows of a value: the value itself, the list at ``at``, or the only list of an envelope."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from .list_envelope import content_around
from .shaping_errors import NoListError
from .value_kinds import kind_of
from .value_paths import MISSING, ValuePath, explain_missing, find_value

_MAX_CANDIDATES: Final = 10
"""The largest number of lists that an error names."""
_MAX_NAMES: Final = 10
"""The largest number of fields that an error names for an object without a list."""
_MAX_DEPTH: Final = 16
"""The deepest nesting of objects that is searched for a list."""

_NEEDED: Final = "filter, sort, limit and aggregate need a list of rows; omit them, or select a list with at"


class LocatedRows(msgspec.Struct, frozen=True):
    """``value`` is the value at ``at``; ``inside`` is the path from there to its list. The fields around it are kept.

    If there is not exactly one list, or if it belongs to a record, ``inside`` is None, and ``others`` has the paths of
    all lists. ``content`` is a field of that record.
    """

    value: Any
    at: ValuePath | None
    inside: ValuePath | None
    others: tuple[ValuePath, ...] = ()
    content: ValuePath | None = None

    @property
    def rows(self) -> list[Any]:
        """The list; raises an error if there is none to shape."""
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
        lists = self._candidates
        if self.content is not None:
            field = _joined(self.at, self.content)
            return NoListError(
                f"the list {lists[0]} is part of a record, which also has {field}: {_NEEDED}, such as {lists[0]!r}",
                lists,
            )
        if lists:
            more = " and more" if len(self.others) > _MAX_CANDIDATES else ""
            return NoListError(f"there are several lists: {', '.join(lists)}{more}; select one with at", lists)
        where = f"at `{self.at}`" if self.at else "in the value"
        return NoListError(f"there is no list {where} ({_described(self.value)}): {_NEEDED}")

    def no_field_error(self, fields: Sequence[str]) -> NoListError:
        """Explains that a value with lists that are not its rows has none of the ``fields`` to select."""
        if self.content is None:
            return self.error()
        (only,) = self._candidates
        return NoListError(
            f"select_fields: there is no {', '.join(fields[:_MAX_NAMES])} in {_described(self.value)}; write paths "
            f"such as {self.content}, or set at to {only!r} to select fields of its elements",
            (only,),
        )

    @property
    def _candidates(self) -> tuple[str, ...]:
        return tuple(str(_joined(self.at, path)) for path in self.others[:_MAX_CANDIDATES])

    def replaced(self, rows: Any) -> Any:
        """The value with other rows. Nothing is changed in place."""
        return rows if self.inside is None else _replaced(self.value, self.inside.steps, rows)


def locate(value: Any, at: ValuePath | None) -> LocatedRows:
    """Locate the rows of ``value``. A value without rows is not an error here.

    The only list inside objects counts as part of a record (a contact's tags), unless all other fields of these objects
    describe the list (decision 67).

    Raises:
        NoListError: there is no value at ``at``.
    """
    if at is not None and (value := find_value(at, whole := value)) is MISSING:
        raise NoListError(f"at: {explain_missing(at, whole)}")
    if isinstance(value, list):
        return LocatedRows(value, at, ValuePath(()))
    lists = tuple(_lists(value, ()))
    if len(lists) != 1:
        return LocatedRows(value, at, None, tuple(map(ValuePath, lists)))
    only = ValuePath(lists[0])
    content = content_around(value, lists[0])
    return (
        LocatedRows(value, at, only) if content is None else LocatedRows(value, at, None, (only,), ValuePath(content))
    )


def _lists(value: Any, steps: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The lists in nested objects, including empty lists, but not lists within lists."""
    if not isinstance(value, dict) or len(steps) == _MAX_DEPTH:
        return
    for name, item in value.items():
        if isinstance(item, list):
            yield (*steps, name)
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
