"""The schema of arguments, without some of them. Pure."""

from collections.abc import Iterable
from typing import Any, Final

_BY_NAME: Final = ("properties", "dependentRequired", "dependentSchemas", "dependencies")
_PARTS: Final = ("allOf", "anyOf", "oneOf")
_PART: Final = ("if", "then", "else")
_SHOWN: Final = ("examples", "example", "default")
"""Of the whole object: they may show the arguments."""


def without_arguments(schema: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The schema of an object, as if it had none of these fields; also where it says so in several parts."""
    gone = frozenset(names)
    return _without(schema, gone) if gone else schema


def _without(schema: Any, gone: frozenset[str]) -> Any:
    if not isinstance(schema, dict):
        return schema
    left = {key: _left_of(key, value, gone) for key, value in schema.items() if key not in _SHOWN}
    if left.get("required") == []:
        del left["required"]
    return left


def _left_of(key: str, value: Any, gone: frozenset[str]) -> Any:
    if key in _BY_NAME and isinstance(value, dict):
        return {name: _names_left(part, gone) for name, part in value.items() if name not in gone}
    if key in _PARTS and isinstance(value, list):
        return [_without(part, gone) for part in value]
    if key in _PART:
        return _without(value, gone)
    return _names_left(value, gone) if key == "required" else value


def _names_left(value: Any, gone: frozenset[str]) -> Any:
    """A list of names without those; anything else as it is."""
    return [name for name in value if name not in gone] if isinstance(value, list) else value
