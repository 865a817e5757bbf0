"""The shape of arguments: their fields, types and lengths, without values."""

import functools
import itertools
import re
from typing import Final

from ..protocol.tool_call import Json
from .redaction import redact_text

MAX_DEPTH: Final = 6
MAX_NODES: Final = 64
"""The maximum number of fields and items in a shape. Together with the limit on names, it bounds a shape to 4 KiB of
JSON."""
MAX_KEYS: Final = 24
"""The maximum number of fields of one object."""

MAX_INDEX_DIGITS: Final = 4
"""The maximum digits of a number that a path shows: a longer number may be a name that the caller chose."""

_LONGEST_NAME: Final = 32
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_SCALARS: Final = {int: "int", float: "float", bool: "bool", type(None): "null"}


def shape(arguments: Json) -> Json:
    """Returns the structure of JSON arguments without their values::

        {"text": "Hello, world", "value": {"a": 1}, "files": ["a.txt", "b.txt", "c.txt"]}
        {"text": "str[12]", "value": {"a": "int"}, "files": ["str[5]", "…2"]}

    Lengths are in characters, fields and items. Only the first item of a list is described. Field names also come from
    the caller. A name that is not a plain word, is too long, or looks like a secret is replaced with its length.
    """
    return _shape(arguments, MAX_DEPTH, itertools.count())


def _shape(value: Json, depth: int, nodes: "itertools.count[int]") -> Json:
    if isinstance(value, str):
        return f"str[{len(value)}]"
    if isinstance(value, dict):
        return _object(value, depth, nodes)
    if isinstance(value, list | tuple):
        if not value:
            return []
        if depth <= 0 or next(nodes) >= MAX_NODES:
            return f"list[{len(value)}]"
        first = _shape(value[0], depth - 1, nodes)
        return [first, f"…{len(value) - 1}"] if len(value) > 1 else [first]
    return _SCALARS.get(type(value), "other")


def _object(value: dict[str, Json], depth: int, nodes: "itertools.count[int]") -> Json:
    if depth <= 0:
        return f"object[{len(value)}]"
    described: dict[str, Json] = {}
    for key, item in itertools.islice(value.items(), MAX_KEYS):
        if next(nodes) >= MAX_NODES:
            break
        described[_name(key)] = _shape(item, depth - 1, nodes)
    if len(described) < len(value):
        described["…"] = f"…{len(value) - len(described)}"
    return described


def safe_path(path: str) -> str:
    """Returns the dotted path of a field, with at most ``MAX_DEPTH`` names, which are replaced as in a shape."""
    names = path.split(".")
    shown = (name if name.isdecimal() and len(name) <= MAX_INDEX_DIGITS else _name(name) for name in names[:MAX_DEPTH])
    return ".".join([*shown, *(["…"] if len(names) > MAX_DEPTH else [])])


def _name(key: object) -> str:
    return _safe_name(key) if isinstance(key, str) and len(key) <= _LONGEST_NAME else f"name[{len(str(key))}]"


@functools.lru_cache(maxsize=1024)  # callers send the same few names repeatedly
def _safe_name(key: str) -> str:
    return key if _NAME.fullmatch(key) and redact_text(key) == key else f"name[{len(key)}]"
