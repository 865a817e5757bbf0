"""Of every row the fields that are asked for: rows stay rows, and what was nested stays nested."""

from collections.abc import Iterable, Sequence
from typing import Any

from .value_paths import EVERY, MISSING, Step, ValuePath

_Steps = tuple[Step, ...]


class Projection:
    """Fields to keep. A field that is null is kept, one that is missing is dropped; a row that is neither object nor
    list has no fields and stays as it is. What comes out shares its values with what went in.
    """

    def __init__(self, paths: Sequence[ValuePath]) -> None:
        self.paths = tuple(paths)
        self._tree = _Tree(path.steps for path in paths)
        names = [path.steps[0] for path in paths if len(path.steps) == 1 and isinstance(path.steps[0], str)]
        self._flat = tuple(dict.fromkeys(names)) if len(names) == len(paths) else None

    def rows(self, rows: Iterable[Any]) -> list[Any]:
        """The rows with these fields alone."""
        if (names := self._flat) is None:
            return [self.one(row) for row in rows]
        return [
            {name: row[name] for name in names if name in row} if isinstance(row, dict) else self.one(row)
            for row in rows
        ]

    def one(self, row: Any) -> Any:
        """One row, or one object, with these fields alone."""
        return _row(row, self._tree)


class _Tree:
    """Paths, by their first steps: what is kept of each field, and of which elements."""

    __slots__ = ("every", "names", "places", "rest_of_every", "whole")

    def __init__(self, paths: Iterable[_Steps]) -> None:
        below: dict[Step, list[_Steps]] = {}
        self.whole = False
        for steps in paths:
            if steps:
                below.setdefault(steps[0], []).append(steps[1:])
            else:
                self.whole = True
        self.names = {step: _Tree(rests) for step, rests in below.items() if isinstance(step, str)}
        self.places = {step: rests for step, rests in below.items() if isinstance(step, int)}
        self.rest_of_every = below.get(EVERY, [])
        self.every = _Tree(self.rest_of_every) if self.rest_of_every else None


def _row(row: Any, tree: _Tree) -> Any:
    kept = _kept(row, tree)
    if kept is not MISSING:
        return kept
    return type(row)() if isinstance(row, dict | list) else row


def _kept(value: Any, tree: _Tree) -> Any:
    """What the paths reach in the value; ``MISSING`` where that is nothing."""
    if tree.whole:
        return value
    if isinstance(value, dict):
        kept = {}
        for name, below in tree.names.items():
            if name in value and (part := _kept(value[name], below)) is not MISSING:
                kept[name] = part
        return kept or MISSING
    if isinstance(value, list):
        return _elements(value, tree)
    return MISSING


def _elements(value: list[Any], tree: _Tree) -> Any:
    picked: dict[int, list[_Steps]] = {}
    for place, rests in tree.places.items():
        index = place if place >= 0 else place + len(value)
        if 0 <= index < len(value):
            picked.setdefault(index, []).extend(rests)
    # What is asked of every element is asked of those that are named, too.
    below = {index: _Tree([*rests, *tree.rest_of_every]) for index, rests in picked.items()}
    if tree.every is None:
        return [_row(value[index], below[index]) for index in sorted(below)] or MISSING
    return [_row(element, below.get(index, tree.every)) for index, element in enumerate(value)]
