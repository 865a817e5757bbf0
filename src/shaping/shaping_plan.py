"""The shaping of a value, in a fixed order: filter, sort, limit, project, aggregate, return mode."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import msgspec

from .aggregation import Aggregation, aggregate, not_numbers
from .filter_conditions import Filter, paths_of, with_paths
from .filter_matching import filter_rows
from .projection import Projection
from .row_location import LocatedRows, locate
from .shaping_errors import ShapingError
from .sort_order import SortKey, sort_rows
from .value_paths import EVERY, MISSING, Step, ValuePath, find_value
from .value_summary import summarize

ReturnMode = Literal["inline", "summary", "file"]


class ShapingReport(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The effects of shaping. Counts are numbers of rows, or None if no list was shaped."""

    list_at: str | None = None
    """The path of the list; empty if it is the value itself, None if no list was shaped."""
    rows_in: int | None = None
    rows_matched: int | None = None
    """Rows that match the filter."""
    rows_out: int | None = None
    """Rows after the limit."""
    truncated: bool = False
    """Whether the limit removed rows."""
    unmatched: tuple[str, ...] = ()
    """Paths in the options that exist in no row."""
    not_numbers: dict[str, int] = {}
    """Numbers of values that ``sum`` and ``avg`` ignored, by path."""

    @property
    def sentence(self) -> str:
        """The report for a model: ``Shaped the list items: 12 rows, 4 match the filter, limited to 2.``"""
        said = []
        if self.list_at is not None:
            counts = ["1 row" if self.rows_in == 1 else f"{self.rows_in} rows"]
            if self.rows_matched != self.rows_in:
                counts.append(f"{self.rows_matched} match the filter")
            if self.truncated:
                counts.append(f"limited to {self.rows_out}")
            place = f" {self.list_at}" if self.list_at else ""
            said.append(f"Shaped the list{place}: {', '.join(counts)}.")
        if self.unmatched:
            said.append(f"No value has {', '.join(self.unmatched)}.")
        if self.not_numbers:
            counted = ", ".join(f"{path} ({count})" for path, count in self.not_numbers.items())
            said.append(f"Not numbers, and ignored by sum and avg: {counted}.")
        return " ".join(said)


class ShapedValue(msgspec.Struct, frozen=True):
    """``value`` is the answer. ``rows`` is the content of a file, None if the answer is one value. ``siblings`` has the
    fields of the answer that the file does not contain.
    """

    value: Any
    rows: list[Any] | None
    report: ShapingReport
    siblings: dict[str, Any] = {}


class ShapingPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Validated options, created by ``plan``. ``file`` shapes like ``inline``; the caller writes the file."""

    at: ValuePath | None = None
    filter: Filter | None = None
    sort: tuple[SortKey, ...] = ()
    limit: int | None = None
    select_fields: tuple[ValuePath, ...] = ()
    aggregate: Aggregation | None = None
    return_mode: ReturnMode = "inline"

    def apply(self, value: Any) -> ShapedValue:
        """Shape a decoded JSON value. It is not changed, and the result may share parts with it.

        Raises:
            NoListError: the options need a list, and there is none, there are several, or it is part of a record.
            ShapingError: the value is nested too deeply.
        """
        try:
            located = locate(value, self.at)
            if self._is_for_the_object(located):
                return self._shape_one(located)
            return self._with_paths_in_rows(located)._shape_rows(located)
        except RecursionError:
            raise ShapingError("the value is nested too deeply to be shaped") from None

    @property
    def _needs_rows(self) -> bool:
        return bool(self.filter or self.sort or self.aggregate) or self.limit is not None

    def _is_for_the_object(self, located: LocatedRows) -> bool:
        """Whether the options apply to the whole object and not to the rows of a list in it.

        This is also true if there is no list and the options need none. If only ``select_fields`` is set, it applies to
        the object if the object has more of the fields than the rows, and otherwise to the rows.
        """
        if self._needs_rows or isinstance(located.value, list):
            return False
        if located.inside is None:
            return True
        missing_in_rows = len(_unmatched(self.select_fields, located.rows or [None]))
        return len(_unmatched(self.select_fields, [located.value])) < missing_in_rows

    def _shape_one(self, located: LocatedRows) -> ShapedValue:
        value = located.value
        unmatched = _unmatched(self.select_fields, [value])
        if unmatched and len(unmatched) == len(self.select_fields) and located.others:
            raise located.no_field_error(unmatched)
        if self.select_fields:
            value = Projection(self.select_fields).one(value)
        if self.return_mode == "summary":
            value = msgspec.to_builtins(summarize([value]))
        return ShapedValue(value, None, ShapingReport(unmatched=unmatched))

    def _with_paths_in_rows(self, located: LocatedRows) -> "ShapingPlan":
        """The plan with paths that begin at a row: ``[*].id`` and ``items[*].id`` become ``id`` of each row of
        ``items``, unless a row has a field with the longer path.
        """
        prefixes = _row_prefixes(located)
        paths = [path for path in self._paths if any(path.steps[: len(prefix)] == prefix for prefix in prefixes)]
        inside: dict[ValuePath, ValuePath] = {}
        for path in dict.fromkeys(paths):
            if not any(_reaches(path, row) for row in located.rows):
                length = next(len(prefix) for prefix in prefixes if path.steps[: len(prefix)] == prefix)
                inside[path] = ValuePath(path.steps[length:])
        return self._with_paths(lambda path: inside.get(path, path)) if inside else self

    @property
    def _paths(self) -> tuple[ValuePath, ...]:
        """The paths of all options in rows."""
        filtered = paths_of(self.filter) if self.filter else ()
        aggregated = self.aggregate.paths if self.aggregate else ()
        return (*filtered, *(key.path for key in self.sort), *self.select_fields, *aggregated)

    def _with_paths(self, path_for: Callable[[ValuePath], ValuePath]) -> "ShapingPlan":
        aggregation = self.aggregate
        return msgspec.structs.replace(
            self,
            filter=self.filter and with_paths(self.filter, path_for),
            sort=tuple(msgspec.structs.replace(key, path=path_for(key.path)) for key in self.sort),
            select_fields=tuple(map(path_for, self.select_fields)),
            aggregate=aggregation and aggregation.with_paths(path_for),
        )

    def _shape_rows(self, located: LocatedRows) -> ShapedValue:
        rows = found = located.rows
        unmatched: list[str] = []
        if self.filter:
            unmatched += _unmatched(paths_of(self.filter), rows)
            rows = filter_rows(rows, self.filter)
        matched = len(rows)
        if self.sort:
            unmatched += _unmatched((key.path for key in self.sort), rows)
            rows = sort_rows(rows, self.sort)
        if self.limit is not None:
            rows = rows[: self.limit]
        limited = len(rows)
        if self.select_fields:
            unmatched += _unmatched(self.select_fields, rows)
            rows = Projection(self.select_fields).rows(rows)
        skipped: dict[str, int] = {}
        if self.aggregate:
            unmatched += _unmatched(self.aggregate.paths, rows)
            skipped = not_numbers(rows, self.aggregate)
        report = ShapingReport(
            list_at=str(located.path),
            rows_in=len(found),
            rows_matched=matched,
            rows_out=limited,
            truncated=limited < matched,
            unmatched=tuple(dict.fromkeys(unmatched)),
            not_numbers=skipped,
        )
        return self._answer(located, rows, report)

    def _answer(self, located: LocatedRows, rows: list[Any], report: ShapingReport) -> ShapedValue:
        value: Any = located.replaced(rows)
        if self.aggregate:
            value = aggregate(rows, self.aggregate)
            rows = value if isinstance(value, list) else [value]
        if self.return_mode == "summary":
            value = msgspec.to_builtins(summarize(rows))
        return ShapedValue(value, rows, report, {} if self.aggregate else located.siblings)


def _row_prefixes(located: LocatedRows) -> tuple[tuple[Step, ...], ...]:
    """The steps to a row, from the list, from the value at ``at`` and from the whole value."""
    lists = (ValuePath(()), located.inside, located.path)
    return tuple(dict.fromkeys((*path.steps, EVERY) for path in lists if path is not None))


def _unmatched(paths: Iterable[ValuePath], rows: Sequence[Any]) -> tuple[str, ...]:
    """The paths that exist in no row; none if there are no rows."""
    if not rows:
        return ()
    return tuple(str(path) for path in dict.fromkeys(paths) if not any(_reaches(path, row) for row in rows))


def _reaches(path: ValuePath, row: Any) -> bool:
    found = find_value(path, row)
    return found is not MISSING and not (path.many and found == [])
