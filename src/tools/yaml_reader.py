"""Parses YAML into JSON values, by YAML 1.2's core schema, as OpenAPI requires. Pure.

Values are built from the parser's events: PyYAML's constructor recurses in C, and a hundred thousand brackets would
crash the process. In YAML 1.2 ``no`` is a string, and so is ``2021-07-28``.
"""

import re
from math import isfinite
from typing import Any, Final

import yaml

try:
    from yaml import CSafeLoader as Loader
except ImportError:  # built without libyaml: ten times slower
    from yaml import SafeLoader as Loader  # type: ignore[assignment] # of the same shape

_WORDS: Final = {
    word: value
    for words, value in (
        (("true", "True", "TRUE"), True),
        (("false", "False", "FALSE"), False),
        (("null", "Null", "NULL", "~", ""), None),
    )
    for word in words
}
_INT: Final = re.compile(r"[-+]?[0-9]{1,300}")
_OTHER_INT: Final = re.compile(r"0o[0-7]{1,300}|0x[0-9a-fA-F]{1,300}")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


class YamlError(ValueError):
    """The text is not YAML or exceeds a limit; the message gives the reason and the line."""


def read_yaml(content: bytes, *, max_depth: int, max_aliased: int) -> Any:
    """Returns the first document as dict, list, str, int, float, bool or None; keys are strings.

    Raises:
        YamlError: the text is not YAML, is nested more deeply than ``max_depth``, contains itself through an alias, or
        has aliases that expand to more than ``max_aliased`` values together.
    """
    builder = _Builder(max_depth, max_aliased)
    try:
        for event in yaml.parse(content, Loader):
            if isinstance(event, yaml.DocumentEndEvent):
                break
            builder.handle(event)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        raise YamlError(f"{getattr(error, 'problem', None) or 'it is not YAML'}{where}") from None
    return builder.value


class _Builder:
    """Builds values from the parser's events."""

    def __init__(self, max_depth: int, max_aliased: int) -> None:
        self.value: Any = None
        self._max_depth = max_depth
        self._max_aliased = max_aliased
        # Open lists and mappings with their anchors, innermost last.
        self._open: list[tuple[Any, str | None]] = []
        # For each open container, the key that has no value yet.
        self._keys: list[Any] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        # For each open container, the number of values in it, with expanded aliases.
        self._sizes: list[int] = [0]
        self._aliased = 0

    def handle(self, event: yaml.Event) -> None:
        match event:
            case yaml.ScalarEvent():
                self._add(_scalar(event), event.anchor, 1)
            case yaml.AliasEvent():
                self._alias(event)
            case yaml.MappingStartEvent():
                self._begin({}, event)
            case yaml.SequenceStartEvent():
                self._begin([], event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                value, anchor = self._open.pop()
                self._keys.pop()
                self._add(value, anchor, 1 + self._sizes.pop())

    def _begin(self, value: Any, event: yaml.CollectionStartEvent) -> None:
        if len(self._open) >= self._max_depth:
            raise YamlError(f"it is nested more than {self._max_depth} levels deep")
        self._open.append((value, event.anchor))
        self._keys.append(_NO_KEY)
        self._sizes.append(0)

    def _alias(self, event: yaml.AliasEvent) -> None:
        if event.anchor not in self._anchors:
            raise YamlError(f"*{event.anchor} is undefined, or contains itself")
        value, size = self._anchors[event.anchor]
        self._aliased += size
        if self._aliased > self._max_aliased:
            raise YamlError(f"its aliases expand to more than {self._max_aliased:,} values")
        self._add(value, None, size)

    def _add(self, value: Any, anchor: str | None, size: int) -> None:
        """Adds a value to its container; ``size`` counts it and the values in it."""
        self._sizes[-1] += size
        if anchor is not None:
            self._anchors[anchor] = value, size
        if not self._open:
            self.value = value
            return
        holder = self._open[-1][0]
        if isinstance(holder, list):
            holder.append(value)
        elif self._keys[-1] is _NO_KEY:
            self._keys[-1] = value
        else:
            _put(holder, self._keys[-1], value)
            self._keys[-1] = _NO_KEY


_NO_KEY: Final = object()


def _put(mapping: dict[str, Any], key: Any, value: Any) -> None:
    if key == "<<":  # the merge key: the mapping's own keys take precedence
        for merged in value if isinstance(value, list) else [value]:
            if isinstance(merged, dict):
                mapping.update({name: part for name, part in merged.items() if name not in mapping})
    elif isinstance(key, dict | list):
        raise YamlError("a mapping has a key that is not a scalar")
    else:
        mapping[key if isinstance(key, str) else _written(key)] = value


def _written(key: object) -> str:
    """Returns a key as a JSON string: ``200:`` is ``200``."""
    return {True: "true", False: "false", None: "null"}[key] if isinstance(key, bool | None) else str(key)


def _scalar(event: yaml.ScalarEvent) -> Any:
    text: str = event.value
    if not event.implicit[0]:  # quoted, or with a tag
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text)
    if _OTHER_INT.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text) and isfinite(number := float(text)):
        return number
    return text
