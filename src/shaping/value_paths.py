"""Paths to parts of a value, for shaping, filters and templates.

``a.b``, ``a[0]``, ``a[-1]`` (the last), ``a[*].b`` (of every element), ``a['x.y']`` (a name with special characters),
``a.length`` (the number of elements of a list).
"""

import re
from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final

import msgspec

from ..protocol.name_suggestions import close_names, did_you_mean
from .text_cursor import TextCursor, quote

MAX_STEPS: Final = 64
_EXAMPLE: Final = "items[0].name, items[*].name or items['a name']"
_NAME: Final = re.compile(r"""[^\s.\[\]'"()=!<>,{}|*\\]+""")
_INDEX: Final = re.compile(r"-?[0-9]{1,9}(?![0-9])")
_MAX_NAMES: Final = 10
"""The largest number of an object's fields that an error names."""
_RESERVED: Final = frozenset({"AND", "OR", "NOT"})
"""Keywords of filters. A path quotes fields with these names, so that it can be used in a filter."""


class EveryItem(Enum):
    """The step to every element of a list."""

    EVERY = "[*]"


class MissingValue(Enum):
    """Returned by ``find_value`` if there is no value; null is a value."""

    MISSING = "missing"


LENGTH: Final = "length"
"""The name that leads to the number of elements of a list."""
EVERY: Final = EveryItem.EVERY
MISSING: Final = MissingValue.MISSING
Step = str | int | EveryItem
"""One step of a path."""


class ValuePath(msgspec.Struct, frozen=True):
    """Steps into a value: the name of a field, the index of an element (negative from the end), or every element. Its
    ``str`` parses to an equal path.
    """

    steps: tuple[Step, ...]

    @property
    def many(self) -> bool:
        """Whether the path can lead to several values, which ``find_value`` returns as a list."""
        return EVERY in self.steps

    def __str__(self) -> str:
        return "".join(map(_written, self.steps)).removeprefix(".")


def parse_path(text: str) -> ValuePath:
    """Parse the text of a path.

    Raises:
        LanguageError: it is invalid.
    """
    reader = TextCursor(text, _EXAMPLE)
    path = read_path(reader)
    if reader.here:
        hint = "quote a name that contains blanks or special characters: ['a name']"
        raise reader.error(f"unexpected {reader.here!r} in a path; {hint}")
    return path


def read_path(reader: TextCursor) -> ValuePath:
    """Read a path from the reader's position up to the first character that cannot be part of one."""
    steps = [_bracket(reader) if reader.here == "[" else _name(reader)]
    while reader.here in {".", "["} and reader.here:
        if len(steps) == MAX_STEPS:
            raise reader.error(f"a path has at most {MAX_STEPS} steps")
        steps.append(_name(reader) if reader.skip(".") else _bracket(reader))
    return ValuePath(tuple(steps))


def _name(reader: TextCursor) -> str:
    if name := reader.take(_NAME):
        return name
    if reader.here == "*":
        raise reader.error("write [*] for every element of a list, without a dot")
    raise reader.error("the name of a field is missing")


def _bracket(reader: TextCursor) -> Step:
    start = reader.at
    reader.skip("[")
    step: Step
    if reader.skip("*"):
        step = EVERY
    elif reader.here in {"'", '"'}:
        step = reader.quoted()
    elif index := reader.take(_INDEX):
        step = int(index)
    else:
        raise reader.error("expected an index, * or a quoted name in brackets")
    if not reader.skip("]"):
        raise reader.error(f"the bracket at position {start + 1} is not closed")
    return step


def _written(step: Step) -> str:
    if isinstance(step, EveryItem):
        return step.value
    if isinstance(step, int):
        return f"[{step}]"
    bare = _NAME.fullmatch(step) and step.upper() not in _RESERVED
    return f".{step}" if bare else f"[{quote(step)}]"


ParsedTexts = Mapping[str, Any]
"""Texts and the JSON parsed from them: paths into such a text continue in the parsed value."""
NO_PARSED_TEXTS: Final[ParsedTexts] = MappingProxyType({})


def find_value(path: ValuePath, value: Any, parsed: ParsedTexts = NO_PARSED_TEXTS) -> Any:
    """The value at ``path`` in ``value``, or ``MISSING``; with ``[*]`` the list of all values there."""
    return _find_value(path.steps, value, parsed)


def _find_value(steps: tuple[Step, ...], value: Any, parsed: ParsedTexts = NO_PARSED_TEXTS) -> Any:
    for place, step in enumerate(steps):
        if parsed and isinstance(value, str):
            value = parsed.get(value, value)
        if isinstance(step, str):
            if isinstance(value, dict):
                value = value.get(step, MISSING)
            else:
                value = len(value) if step == LENGTH and isinstance(value, list) else MISSING
        elif not isinstance(value, list):
            return MISSING
        elif isinstance(step, int):
            value = value[step] if -len(value) <= step < len(value) else MISSING
        else:
            rest = steps[place + 1 :]
            found = [item for item in (_find_value(rest, element, parsed) for element in value) if item is not MISSING]
            return [item for items in found for item in items] if EVERY in rest else found
        if value is MISSING:
            return MISSING
    return value


def getter(path: ValuePath) -> Callable[[Any], Any]:
    """``find_value`` for one path and many values; returns None for missing values."""
    steps = path.steps

    def by_names(row: Any) -> Any:
        try:
            for name in steps:
                row = row[name]
        except (KeyError, TypeError):
            return None
        return row

    def by_steps(row: Any) -> Any:
        found = _find_value(steps, row)
        return None if found is MISSING else found

    return by_names if all(isinstance(step, str) and step != LENGTH for step in steps) else by_steps


def explain_missing(path: ValuePath, value: Any, parsed: ParsedTexts = NO_PARSED_TEXTS) -> str:
    """Explains why ``find_value`` returned ``MISSING``, and shows what the value has instead."""
    for length, step in enumerate(path.steps):
        before = ValuePath(path.steps[:length])
        found = find_value(before, value, parsed)
        if find_value(ValuePath(path.steps[: length + 1]), value, parsed) is MISSING:
            found = parsed.get(found, found) if isinstance(found, str) else found
            where = f"`{before}`" if length else "the value"
            return f"`{path}` is missing: {where} {_describe_container(found, step)}"
    return f"`{path}` is missing"


def _describe_container(value: Any, step: Step) -> str:
    if isinstance(value, dict):
        if not isinstance(step, str):
            return f"is an object, and {_written(step)} is for lists"
        names = list(value)
        if close := did_you_mean(close_names(step, names, n=1)):
            return f"has no {step!r}; {close}"
        more = ", …" if len(names) > _MAX_NAMES else ""
        return f"has the fields {', '.join(names[:_MAX_NAMES])}{more}" if names else "is an object without fields"
    if isinstance(value, list):
        if isinstance(step, str):
            return f"is a list: select one element, [0], or all, [*], before {step!r}"
        return f"is a list of {len(value)}"
    return "is null" if value is None else "is neither an object nor a list"
