"""Finds the line of each value in a file, for error messages. Pure."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import yaml

Place = tuple[str | int, ...]
"""Keys and indexes from the root to a value."""

_HEADER: Final = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY: Final = re.compile(r"\s*(\"[^\"]*\"|'[^']*'|[A-Za-z0-9_-]+)\s*=")


def line_of(place: Sequence[str | int], lines: Mapping[Place, int]) -> int | None:
    """The line of a value, or of the innermost value around it that has one."""
    for length in range(len(place), 0, -1):
        line = lines.get(tuple(place[:length]))
        if line is not None:
            return line
    return None


def yaml_lines(text: str) -> dict[Place, int]:
    """The first line of each value of the first document. The text has been read without errors."""
    lines: dict[Place, int] = {}
    # For each open collection: its place, and its next index or pending key (None: a key follows).
    stack: list[list[Any]] = []
    for event in yaml.parse(text, yaml.SafeLoader):
        if isinstance(event, yaml.DocumentEndEvent):
            break
        if isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            stack.pop()
            _advance(stack)
            continue
        if not isinstance(event, yaml.ScalarEvent | yaml.AliasEvent | yaml.CollectionStartEvent):
            continue
        is_key = bool(stack) and stack[-1][1] is None
        if is_key and isinstance(event, yaml.ScalarEvent):
            stack[-1][1] = event.value
            lines[(*stack[-1][0], event.value)] = _line(event)
            continue
        place = (*stack[-1][0], stack[-1][1]) if stack else ()
        lines.setdefault(place, _line(event))
        if isinstance(event, yaml.MappingStartEvent):
            stack.append([place, None])
        elif isinstance(event, yaml.SequenceStartEvent):
            stack.append([place, 0])
        else:
            _advance(stack)
    return lines


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _advance(stack: list[list[Any]]) -> None:
    """Moves past a value: in a list, to the next index; in a mapping, to the next key."""
    if stack:
        stack[-1][1] = stack[-1][1] + 1 if isinstance(stack[-1][1], int) else None


def toml_lines(text: str) -> dict[Place, int]:
    """The lines of the tables and keys of a TOML file. A value in an inline table or list has the line of its key."""
    lines: dict[Place, int] = {}
    counts: defaultdict[Place, int] = defaultdict(int)
    table: Place = ()
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.match(line)
        if header:
            table = _table_place(header[2].split("."), counts, is_list=header[1] == "[[")
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            lines.setdefault((*table, key[1].strip("\"'")), number)
    return lines


def _table_place(names: Sequence[str], counts: defaultdict[Place, int], *, is_list: bool) -> Place:
    """The place of a header's table. If the path leads through a list of tables, it refers to the last table."""
    place: Place = ()
    for position, name in enumerate(names):
        place = (*place, name.strip().strip("\"'"))
        if is_list and position == len(names) - 1:
            counts[place] += 1
        if counts[place]:
            place = (*place, counts[place] - 1)
    return place
