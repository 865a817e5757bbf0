"""Where the rows are: the value itself, what ``at`` names, or the one list inside an object."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from .shaping_errors import NoListError
from .value_kinds import kind_of
from .value_paths import MISSING, ValuePath, explain_missing, find

_MAX_CANDIDATES: Final = 10
"""So many lists are named where there are several."""
_MAX_NAMES: Final = 10
"""Of an object without a list so many fields are."""
_MAX_DEPTH: Final = 16
"""Of objects within one another that are looked through for a list."""


class LocatedRows(msgspec.Struct, frozen=True):
    """``value`` is what ``at`` names, ``inside`` leads from there to its list; the fields around that are kept.

    Where there is not the one list, ``inside`` is None, and ``others`` has every list, if there are any.
    """

    value: Any
    at: ValuePath | None
    inside: ValuePath | None
    others: tuple[ValuePath, ...] = ()

    @property
    def rows(self) -> list[Any]:
        """The list; there has to be one."""
        if self.inside is None:
            raise self.error()
        rows: list[Any] = find(self.inside, self.value)
        return rows

    @property
    def path(self) -> ValuePath | None:
        """The list's path in the whole value; without steps where it is the value itself, None where there is none."""
        return None if self.inside is None else _joined(self.at, self.inside)

    @property
    def around(self) -> dict[str, Any]:
        """The value without the list: nothing where it is the list itself, or there is none."""
        return _around(self.value, self.inside.steps) if self.inside else {}

    def error(self) -> NoListError:
        """Why there are no rows, and what to do."""
        candidates = tuple(str(_joined(self.at, path)) for path in self.others[:_MAX_CANDIDATES])
        if candidates:
            more = " and more" if len(self.others) > _MAX_CANDIDATES else ""
            lists = ", ".join(candidates)
            return NoListError(f"there are several lists: {lists}{more}; name one of them by at", candidates)
        where = f"at `{self.at}`" if self.at else "in the value"
        needed = "filter, sort, limit and aggregate need one; drop them, or name a list by at"
        return NoListError(f"there is no list {where} ({_described(self.value)}): {needed}")

    def replaced(self, rows: Any) -> Any:
        """The value with other rows; nothing of it is changed in place."""
        return rows if self.inside is None else _replaced(self.value, self.inside.steps, rows)


def locate(value: Any, at: ValuePath | None) -> LocatedRows:
    """Where the rows of ``value`` are; not having any is no error yet.

    Raises:
        NoListError: nothing is at ``at``.
    """
    if at is not None and (value := find(at, whole := value)) is MISSING:
        raise NoListError(f"at: {explain_missing(at, whole)}")
    if isinstance(value, list):
        return LocatedRows(value, at, ValuePath(()))
    lists = tuple(_lists(value, ()))
    return LocatedRows(value, at, lists[0]) if len(lists) == 1 else LocatedRows(value, at, None, lists)


def _lists(value: Any, steps: tuple[str, ...]) -> Iterator[ValuePath]:
    """The lists that objects within objects hold, an empty one too; lists within lists are none of them."""
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


def _around(value: Any, steps: Sequence[Any]) -> dict[str, Any]:
    """The objects that these steps lead through, without what they lead to; none that is left empty."""
    if not steps:
        return {}
    first, rest = steps[0], _around(value[steps[0]], steps[1:])
    return {name: rest if name == first else item for name, item in value.items() if name != first or rest}


def _described(value: Any) -> str:
    if not isinstance(value, dict):
        return kind_of(value)
    fields = ", ".join(list(value)[:_MAX_NAMES])
    return f"an object with the fields {fields}" if fields else "an object without fields"
