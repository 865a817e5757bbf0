"""Compiles a filter to a function that tests a row.

A field is null if it is missing, null or NaN. Values of different types are neither equal nor ordered. Numbers and
booleans in texts are an exception: many APIs write them as texts, and an unquoted ``10001`` means both (decision 68).
On a list a condition is true if it is true for an element; ``!=`` and ``NOT`` are plain negations.
"""

import datetime as dt
import operator as op
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from .filter_conditions import And, Filter, FilterCondition, FilterOperator, Not, Or
from .filter_operands import Literal, compile_pattern
from .value_kinds import decimal_in, is_null, is_number, parse_timestamp, text_of
from .value_paths import LENGTH, ValuePath, getter

Test = Callable[[Any], bool]

_COMPARE: Final[dict[FilterOperator, Callable[[Any, Any], bool]]] = {
    FilterOperator.LESS: op.lt,
    FilterOperator.AT_MOST: op.le,
    FilterOperator.GREATER: op.gt,
    FilterOperator.AT_LEAST: op.ge,
}


def filter_rows(rows: Iterable[Any], condition: Filter) -> list[Any]:
    """The rows that match. Applies the parts of an AND one after the other, which saves one call per row."""
    kept = list(rows)
    for part in condition.parts if isinstance(condition, And) else (condition,):
        passes = compile_filter(part)
        kept = [row for row in kept if passes(row)]
    return kept


def compile_filter(condition: Filter) -> Test:
    """A test for rows. It never raises an error."""
    match condition:
        case And(parts=(one, two)):
            first, second = compile_filter(one), compile_filter(two)
            return lambda row: first(row) and second(row)
        case And(parts=parts):
            tests = [compile_filter(part) for part in parts]
            return lambda row: all(test(row) for test in tests)
        case Or(parts=parts):
            tests = [compile_filter(part) for part in parts]
            return lambda row: any(test(row) for test in tests)
        case Not(part=part):
            opposite = compile_filter(part)
            return lambda row: not opposite(row)
        case FilterCondition():
            return _condition(condition)


def _condition(condition: FilterCondition) -> Test:
    path = condition.path
    values = condition.value if isinstance(condition.value, tuple) else (condition.value,)
    match condition.operator:
        case FilterOperator.IS_NULL:
            get = getter(path)
            return lambda row: is_null(get(row))
        case FilterOperator.IS_NOT_NULL:
            get = getter(path)
            return lambda row: not is_null(get(row))
        case FilterOperator.NOT_EQUAL:
            equal = _equal(path, values)
            return lambda row: not equal(row)
        case FilterOperator.EQUAL | FilterOperator.IN:
            return _equal(path, values)
        case FilterOperator.CONTAINS | FilterOperator.STARTS_WITH | FilterOperator.MATCHES:
            return _on_field(path, _text_test(condition.operator, str(values[0])))
        case operator:
            return _on_field(path, _ordering(_COMPARE[operator], values[0]))


def _on_field(path: ValuePath, test: Test) -> Test:
    """Applies the test to the row's field, or to its elements if it is a list."""
    match path.steps:
        case (str(name),) if name != LENGTH:  # the most frequent case, without the call of a getter

            def passes(row: Any) -> bool:
                try:
                    value = row[name]
                except (KeyError, TypeError):
                    value = None
                return any(map(test, value)) if isinstance(value, list) else test(value)
        case _:
            get = getter(path)

            def passes(row: Any) -> bool:
                value = get(row)
                return any(map(test, value)) if isinstance(value, list) else test(value)

    return passes


def _equal(path: ValuePath, values: Sequence[Literal]) -> Test:
    texts = frozenset(value.casefold() for value in values if isinstance(value, str))
    test = _one_of(values)
    match path.steps:
        case (str(name),) if len(texts) == len(values) and name != LENGTH:
            pass
        case _:
            return _on_field(path, test)

    # The most frequent filter, in one call per row.
    def passes(row: Any) -> bool:
        try:
            value = row[name]
        except (KeyError, TypeError):
            return False
        if isinstance(value, str):
            return value.casefold() in texts
        return isinstance(value, list) and any(map(test, value))

    return passes


def _one_of(values: Sequence[Literal]) -> Test:
    """Equality with one of these values: text case-insensitively, numbers as numbers, dates as instants."""
    texts, numbers, rest = set[str](), set[float](), list[Literal]()
    for value in values:
        match value:
            case str():
                texts.add(value.casefold())
            case int() | float() if not isinstance(value, bool):
                numbers.add(value)
            case _:
                rest.append(value)
    tests: list[Test] = [_flag_or_timestamp(value) for value in rest]
    if texts:
        tests.append(lambda value: isinstance(value, str) and value.casefold() in texts)
    if numbers:
        tests.append(_on_number(lambda number: number in numbers))
    return tests[0] if len(tests) == 1 else lambda value: any(test(value) for test in tests)


def _flag_or_timestamp(wanted: Literal) -> Test:
    if wanted is None:
        return is_null
    if isinstance(wanted, bool):
        text = "true" if wanted else "false"
        return lambda value: value is wanted or (isinstance(value, str) and value.casefold() == text)
    return lambda value: parse_timestamp(value) == wanted


def _on_number(test: Callable[[int | float], bool]) -> Test:
    """Applies the test to a number, or to the number in a text."""

    def passes(value: Any) -> bool:
        if isinstance(value, str):
            return (number := decimal_in(value)) is not None and test(number)
        return is_number(value) and test(value)

    return passes


def _ordering(compare: Callable[[Any, Any], bool], bound: Literal) -> Test:
    """Less-than and greater-than comparisons of numbers, of text case-insensitively, and of instants."""
    match bound:
        case str():
            folded = bound.casefold()
            return lambda value: isinstance(value, str) and compare(value.casefold(), folded)
        case dt.datetime():

            def passes(value: Any) -> bool:
                timestamp = parse_timestamp(value)
                return timestamp is not None and compare(timestamp, bound)

            return passes
        case _:
            return _on_number(lambda number: compare(number, bound))


def _text_test(operator: FilterOperator, wanted: str) -> Test:
    """Searches in the text of a value; false if it has no text."""
    found = _search(operator, wanted)

    def passes(value: Any) -> bool:
        text = text_of(value)
        return text is not None and found(text)

    return passes


def _search(operator: FilterOperator, wanted: str) -> Callable[[str], bool]:
    if operator is FilterOperator.MATCHES:
        return compile_pattern(wanted)
    folded = wanted.casefold()
    if operator is FilterOperator.CONTAINS:
        return lambda text: folded in text.casefold()
    return lambda text: text.casefold().startswith(folded)
