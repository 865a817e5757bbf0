"""The parsed form of a filter: conditions joined by AND, OR and NOT. Its ``str`` parses to an equal filter."""

from collections.abc import Callable, Iterator
from enum import StrEnum

import msgspec

from .filter_operands import Literal, written
from .value_paths import ValuePath


class FilterOperator(StrEnum):
    """How a condition compares a field with a value."""

    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="
    CONTAINS = "CONTAINS"
    STARTS_WITH = "STARTS_WITH"
    MATCHES = "MATCHES"
    IN = "IN"
    IS_NULL = "IS_NULL"
    IS_NOT_NULL = "IS_NOT_NULL"


ORDERING = frozenset({FilterOperator.LESS, FilterOperator.AT_MOST, FilterOperator.GREATER, FilterOperator.AT_LEAST})
ON_TEXT = frozenset({FilterOperator.CONTAINS, FilterOperator.STARTS_WITH, FilterOperator.MATCHES})
WITHOUT_VALUE = frozenset({FilterOperator.IS_NULL, FilterOperator.IS_NOT_NULL})


class FilterCondition(msgspec.Struct, frozen=True):
    """``path operator value``; with IN the value is a tuple, with IS_NULL and IS_NOT_NULL it is None."""

    path: ValuePath
    operator: FilterOperator
    value: Literal | tuple[Literal, ...] = None

    def __str__(self) -> str:
        if self.operator in WITHOUT_VALUE:
            return f"{self.path} {self.operator}"
        value = f"({', '.join(map(written, self.value))})" if isinstance(self.value, tuple) else written(self.value)
        return f"{self.path} {self.operator} {value}"


class And(msgspec.Struct, frozen=True):
    """All of two or more parts."""

    parts: tuple["Filter", ...]

    def __str__(self) -> str:
        return " AND ".join(_grouped(part, And | Or) for part in self.parts)


class Or(msgspec.Struct, frozen=True):
    """Any of two or more parts."""

    parts: tuple["Filter", ...]

    def __str__(self) -> str:
        return " OR ".join(_grouped(part, Or) for part in self.parts)


class Not(msgspec.Struct, frozen=True):
    """The negation of a part."""

    part: "Filter"

    def __str__(self) -> str:
        return f"NOT {_grouped(self.part, And | Or)}"


Filter = FilterCondition | And | Or | Not


def _grouped(part: Filter, looser: object) -> str:
    return f"({part})" if isinstance(part, looser) else str(part)  # type: ignore[arg-type]


def paths_of(condition: Filter) -> Iterator[ValuePath]:
    """The path of every condition, from left to right."""
    return (one.path for one in conditions_of(condition))


def with_paths(condition: Filter, path_for: Callable[[ValuePath], ValuePath]) -> Filter:
    """The filter with another path in each condition."""
    match condition:
        case FilterCondition():
            return msgspec.structs.replace(condition, path=path_for(condition.path))
        case Not(part=part):
            return Not(with_paths(part, path_for))
        case And(parts=parts):
            return And(tuple(with_paths(part, path_for) for part in parts))
        case Or(parts=parts):
            return Or(tuple(with_paths(part, path_for) for part in parts))


def conditions_of(condition: Filter) -> Iterator[FilterCondition]:
    """Every single condition, from left to right."""
    match condition:
        case FilterCondition():
            yield condition
        case Not(part=part):
            yield from conditions_of(part)
        case And(parts=parts) | Or(parts=parts):
            for part in parts:
                yield from conditions_of(part)
