"""Keeps the selected fields of rows: rows stay rows, and nested fields stay nested."""

from collections.abc import Iterable, Sequence
from typing import Any

from .value_paths import EVERY, LENGTH, MISSING, Step, ValuePath

_Steps = tuple[Step, ...]


class Projection:
    """The fields to keep. Null fields are kept and missing ones are dropped; a row that is neither an object nor a list
    is returned unchanged. The result shares its values with the input.
    """

    def __init__(self, paths: Sequence[ValuePath]) -> None:
        self.paths = tuple(paths)
        self._tree = _Tree(path.steps for path in paths)
        names = [path.steps[0] for path in paths if len(path.steps) == 1 and isinstance(path.steps[0], str)]
        self._flat = tuple(dict.fromkeys(names)) if len(names) == len(paths) else None

    def rows(self, rows: Iterable[Any]) -> list[Any]:
        """The rows with only these fields."""
        if (names := self._flat) is None:
            return [self.one(row) for row in rows]
        return [
            {name: row[name] for name in names if name in row} if isinstance(row, dict) else self.one(row)
            for row in rows
        ]

    def one(self, row: Any) -> Any:
        """One row or object with only these fields."""
        return _row(row, self._tree)


class _Tree:
    """The paths as a tree by their steps: the parts to keep of each field and of each element."""

    __slots__ = ("every", "every_element_paths", "names", "places", "whole")

    def __init__(self, paths: Iterable[_Steps]) -> None:
        below: dict[Step, list[_Steps]] = {}
        self.whole = False
        for steps in paths:
            if steps:
                below.setdefault(steps[0], []).append(steps[1:])
            else:
                self.whole = True
        self.names = {step: _Tree(remaining_paths) for step, remaining_paths in below.items() if isinstance(step, str)}
        self.places = {step: remaining_paths for step, remaining_paths in below.items() if isinstance(step, int)}
        self.every_element_paths = below.get(EVERY, [])
        self.every = _Tree(self.every_element_paths) if self.every_element_paths else None


def _row(row: Any, tree: _Tree) -> Any:
    kept = _kept(row, tree)
    if kept is not MISSING:
        return kept
    return type(row)() if isinstance(row, dict | list) else row


def _kept(value: Any, tree: _Tree) -> Any:
    """The parts of the value that the paths reach; ``MISSING`` if there are none."""
    if tree.whole:
        return value
    if isinstance(value, dict):
        kept = {}
        for name, below in tree.names.items():
            if name in value and (part := _kept(value[name], below)) is not MISSING:
                kept[name] = part
        return kept or MISSING
    if isinstance(value, list):
        if tree.places or tree.every or LENGTH not in tree.names or not tree.names[LENGTH].whole:
            return _elements(value, tree)
        return {LENGTH: len(value)}
    return MISSING


def _elements(value: list[Any], tree: _Tree) -> Any:
    picked: dict[int, list[_Steps]] = {}
    for place, remaining_paths in tree.places.items():
        index = place if place >= 0 else place + len(value)
        if 0 <= index < len(value):
            picked.setdefault(index, []).extend(remaining_paths)
    # Paths of every element also apply to elements that are selected by index.
    below = {index: _Tree([*remaining_paths, *tree.every_element_paths]) for index, remaining_paths in picked.items()}
    if tree.every is None:
        return [_row(value[index], below[index]) for index in sorted(below)] or MISSING
    return [_row(element, below.get(index, tree.every)) for index, element in enumerate(value)]
