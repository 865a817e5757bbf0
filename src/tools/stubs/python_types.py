"""The Python types of JSON Schemas, for type checkers and readers. Pure.

Types do not express lengths, ranges and patterns, which are validated with every call. Schemas that no type can
express, and references to missing definitions, become ``Any``.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

MAX_CHOICES: Final = 100
"""The largest number of values in a ``Literal``; with more values, their types are used."""
_MAX_LITERAL_CHARS: Final = 100
_OF_VALUES: Final[Mapping[type, str]] = {
    type(None): "None",
    bool: "bool",
    int: "int",
    float: "float",
    str: "str",
    list: "list[Any]",
    dict: "dict[str, Any]",
}


@dataclass(frozen=True, slots=True)
class PythonType:
    """A type, or a union of several."""

    members: tuple[str, ...] = ()
    literals: tuple[str, ...] = ()
    """Values as Python code."""

    def __str__(self) -> str:
        if "Any" in self.members or not (self.members or self.literals):
            return "Any"
        named = [f"Literal[{', '.join(self.literals)}]"] if self.literals else []
        return " | ".join([*named, *sorted(self.members, key="None".__eq__)])

    def takes(self, value: object) -> bool:
        """Whether a plain value (not a list or dict) is of this type."""
        name = "None" if value is None else type(value).__name__
        return (
            str(self) == "Any"
            or name in self.members
            or (name == "int" and "float" in self.members)
            or literal(value) in self.literals
        )


ANY: Final = PythonType(("Any",))


def any_of(types: Iterable[PythonType]) -> PythonType:
    """The union of these types, without duplicates."""
    listed = list(types)
    return PythonType(
        tuple(dict.fromkeys(member for python_type in listed for member in python_type.members)),
        tuple(dict.fromkeys(value for python_type in listed for value in python_type.literals)),
    )


def choice_of(values: list[Any]) -> PythonType:
    """A ``Literal`` of these values; the union of their types if there are many or one cannot be a literal."""
    named = [_nameable(value) for value in values]
    if len(values) <= MAX_CHOICES and None not in named:
        return PythonType(literals=tuple(dict.fromkeys(filter(None, named))))
    return any_of(_type_of(value) for value in values)


def literal(value: object) -> str | None:
    """A plain value as Python code; None if it is long or has no literal."""
    match value:
        case None | bool():
            return repr(value)
        case int():
            return repr(value) if abs(value) < 2**63 else None
        case float():
            return repr(value) if math.isfinite(value) else None
        case str() if len(value) <= _MAX_LITERAL_CHARS:
            return json.dumps(value, ensure_ascii=False) if value.isprintable() else repr(value)
    return None


def _nameable(value: object) -> str | None:
    """The value in a ``Literal``; None for floats, lists and objects, which are not allowed there."""
    return None if isinstance(value, float) else literal(value)


def _type_of(value: object) -> PythonType:
    return PythonType((_OF_VALUES.get(type(value), "Any"),))
