"""A summary of rows: their number, a sample, and their fields."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import msgspec

from .value_kinds import kind_of
from .value_paths import EVERY, ValuePath

SAMPLE_ROWS: Final = 3
SAMPLE_CHARS: Final = 200
"""The length of a text in the sample."""
SAMPLE_ITEMS: Final = 5
"""The number of elements of a list within a row."""
SAMPLE_FIELDS: Final = 30
"""The number of fields of an object in the sample."""
SAMPLE_DEPTH: Final = 4
FIELD_ROWS: Final = 1_000
"""The number of rows that are searched for fields."""
FIELD_ITEMS: Final = 10
"""The number of elements per list that are searched for fields."""
MAX_FIELDS: Final = 100
FIELD_DEPTH: Final = 3


class ValueSummary(msgspec.Struct, frozen=True, omit_defaults=True):
    """A summary in place of a large value.

    ``fields`` are paths as in the other options, with the JSON types that occur in the first thousand rows; ``types``
    are the types of the rows, absent if all are objects. ``truncated`` is whether the sample is incomplete.
    """

    count: int
    sample: list[Any]
    fields: dict[str, list[str]]
    truncated: bool
    types: list[str] = []


def summarize(rows: list[Any]) -> ValueSummary:
    """The summary of these rows; a value that is not a list is one row."""
    sample, cut = [], len(rows) > SAMPLE_ROWS
    for row in rows[:SAMPLE_ROWS]:
        shown, shortened = _clipped(row, SAMPLE_DEPTH)
        sample.append(shown)
        cut = cut or shortened
    fields: dict[str, list[str]] = {}
    types = list(dict.fromkeys(kind_of(row) for row in islice(rows, FIELD_ROWS)))
    for row in islice(rows, FIELD_ROWS):
        for path, kind in _fields(row, ()):
            name = str(ValuePath(path))
            if name not in fields and len(fields) == MAX_FIELDS:
                continue
            if kind not in (kinds := fields.setdefault(name, [])):
                kinds.append(kind)
    return ValueSummary(len(rows), sample, fields, truncated=cut, types=[] if types == ["object"] else types)


def _fields(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], str]]:
    if path and path[-1] is not EVERY:
        yield path, kind_of(value)
    if len(path) >= FIELD_DEPTH:
        return
    if isinstance(value, dict):
        for name, item in islice(value.items(), MAX_FIELDS):
            yield from _fields(item, (*path, name))
    elif isinstance(value, list) and path:
        for item in islice(value, FIELD_ITEMS):
            yield from _fields(item, (*path, EVERY))


def _clipped(value: Any, depth: int) -> tuple[Any, bool]:
    """The value with long texts, long lists, large objects and deep nesting truncated; and whether anything was."""

    if isinstance(value, str) and len(value) > SAMPLE_CHARS:
        return f"{value[:SAMPLE_CHARS]}…", True
    if not isinstance(value, dict | list):
        return value, False
    if depth == 0 and value:
        return "…", True
    if isinstance(value, list):
        items = [_clipped(item, depth - 1) for item in value[:SAMPLE_ITEMS]]
        return [item for item, _ in items], len(value) > SAMPLE_ITEMS or any(cut for _, cut in items)
    fields = {name: _clipped(item, depth - 1) for name, item in islice(value.items(), SAMPLE_FIELDS)}
    shown = {name: item for name, (item, _) in fields.items()}
    return shown, len(value) > SAMPLE_FIELDS or any(cut for _, cut in fields.values())
