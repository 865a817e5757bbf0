"""Filter matching: which rows match a filter."""

import copy
import operator as op
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.shaping.filter_conditions import And, Filter, FilterCondition, FilterOperator, Not, Or
from toold.shaping.filter_matching import compile_filter, filter_rows
from toold.shaping.filter_parser import parse_filter
from toold.shaping.value_paths import ValuePath

ROW = {
    "name": "Ann Smith",
    "age": 42,
    "score": 7.5,
    "active": True,
    "gone": None,
    "code": "007",
    "zip": "10001",
    "price": "12.50",
    "phone": "+4972112345",
    "sent": "True",
    "made": "2024-01-15T10:00:00Z",
    "day": "2024-01-15",
    "tags": ["Red", "dark blue", 5],
    "none": [],
    "holes": [None, "x"],
    "nan": float("nan"),
    "owner": {"name": "Bob", "first name": "B"},
    "items": [{"n": 1}, {"n": 20}, {}],
}
TABLE = {
    # text is case-insensitive, numbers compare as numbers
    "name = 'ann smith'": True,
    "name = ann smith": True,
    "name != ANN SMITH": False,
    "name != x": True,
    "name = ann": False,
    "age = 42": True,
    "age = 42.0": True,
    "age > 9": True,
    "age < 100": True,
    "age >= 42 AND age <= 42": True,
    "age != 42": False,
    "score > 7": True,
    "active = true": True,
    "active = false": False,
    "active = 1": False,
    "name > 'ANN'": True,
    "name >= 'ann smith'": True,
    "name < 'ann t'": True,
    # values of different types are never equal or ordered
    "age = '42'": False,
    "age != '42'": True,
    "code = 7": False,
    "code = 007": True,
    "code = '007'": True,
    "age > '4'": False,
    "name > 5": False,
    "name < 5": False,
    "active > 0": False,
    "owner = x": False,
    "owner > 1": False,
    # an unquoted number or boolean also means the text of it
    "zip = 10001": True,
    "zip != 10001": False,
    "zip IN (1, 10001)": True,
    "zip > 9999": True,
    "zip < 10001.5": True,
    "zip = '10001'": True,
    "price = 12.5": True,
    "price >= 12.50 AND price < 100": True,
    "phone = +4972112345": True,
    "sent = true": True,
    "sent != true": False,
    "sent = false": False,
    "sent = 1": False,
    "name = true": False,
    # a missing field is null; null is not ordered
    "gone = null": True,
    "gone IS_NULL": True,
    "nothing IS_NULL": True,
    "nothing = null": True,
    "name IS_NOT_NULL": True,
    "nothing IS_NOT_NULL": False,
    "nothing != x": True,
    "nothing = x": False,
    "nothing < 5": False,
    "nothing >= 5": False,
    "NOT nothing < 5": True,
    "nothing CONTAINS ''": False,
    "owner.nothing IS_NULL": True,
    "nan IS_NULL": True,
    "nan = 1": False,
    "none IS_NULL": False,
    # an unquoted date is a moment; a quoted date is text
    "made > 2024-01-15": True,
    "made = 2024-01-15": False,
    "made = 2024-01-15T11:00+01:00": True,
    "made >= 2024-01-15 AND made < 2024-01-16": True,
    "day = 2024-01-15": True,
    "day = '2024-01-15'": True,
    "day >= 2024-01-15T00:00": True,
    "made > '2024-01-15'": True,
    "name > 2024-01-15": False,
    "age < 2024-01-15": False,
    "day IN (2024-01-14, 2024-01-15)": True,
    # operators on text
    "name CONTAINS SMI": True,
    "name CONTAINS ''": True,
    "name STARTS_WITH ann": True,
    "name STARTS_WITH smith": False,
    "name MATCHES 'S.ith$'": True,
    "name MATCHES 's.ith$'": False,
    "age CONTAINS 4": True,
    "active CONTAINS tru": True,
    "owner CONTAINS Bob": False,
    # on a list, any element may match
    "tags = red": True,
    "tags = re": False,
    "tags = 5": True,
    "tags != red": False,
    "tags != green": True,
    "tags CONTAINS blue": True,
    "tags CONTAINS green": False,
    "tags STARTS_WITH DARK": True,
    "tags MATCHES '^R'": True,
    "tags > 4": True,
    "tags IN (green, red)": True,
    "none = x": False,
    "none != x": True,
    "holes = null": True,
    "holes IS_NULL": False,
    "items[*].n > 10": True,
    "items[*].n = 1": True,
    "items[*].n > 20": False,
    "items[-1].n IS_NULL": True,
    "tags[0] = red": True,
    "tags.length = 3": True,
    "none.length > 0": False,
    "name.length > 0": False,
    # one of several values
    "age IN (1, 42)": True,
    "age IN ('42', x)": False,
    "name IN (x, ann smith, 3)": True,
    "gone IN (x, null)": True,
    "active IN (true)": True,
    "active IN (1)": False,
    "age IN (1, 2)": False,
    # forms of field names
    "owner.name = bob": True,
    "owner['first name'] = b": True,
    "['owner'].name = bob": True,
    # combined conditions
    "age = 42 AND (name = x OR active = true)": True,
    "NOT age = 42 OR name = x": False,
    "NOT (age = 42 AND name = x)": True,
    "age = 42 OR name = x AND active = false": True,
    "age = 42 AND active = true AND score > 7": True,
}


@pytest.mark.parametrize(("text", "passes"), TABLE.items(), ids=TABLE)
def test_a_row_matches_a_filter(text: str, passes: bool) -> None:
    """Each entry of the table is a filter and whether the row matches it."""
    condition = parse_filter(text)
    assert compile_filter(condition)(ROW) is passes
    assert filter_rows([ROW], condition) == ([ROW] if passes else [])


@pytest.mark.parametrize("row", [None, 5, "name", ["name"], [["name", 1]], True])
@pytest.mark.parametrize(
    "text", ["name = x", "name > 1", "name IN (x, 1)", "name CONTAINS x", "name.a = x", "name[0] = 1"]
)
def test_a_row_that_is_not_an_object_has_no_fields(row: Any, text: str) -> None:
    """Every field of such a row is null, and no exception is raised."""
    condition = parse_filter(text)
    assert compile_filter(condition)(row) is False
    assert compile_filter(parse_filter("name IS_NULL"))(row) is True


scalars = st.sampled_from([None, True, False, 0, 1, -1, 1.0, 2.5, "", "a", "A", "b", "Ab", "1", "true"])
rows = st.lists(
    st.dictionaries(st.sampled_from("xyz"), scalars | st.lists(scalars, max_size=3), max_size=3), max_size=6
)
ORDER: dict[FilterOperator, Callable[[Any, Any], bool]] = {
    FilterOperator.LESS: op.lt,
    FilterOperator.AT_MOST: op.le,
    FilterOperator.GREATER: op.gt,
    FilterOperator.AT_LEAST: op.ge,
}
fields = st.sampled_from("xyz").map(lambda name: ValuePath((name,)))
conditions = st.one_of(
    st.builds(FilterCondition, fields, st.sampled_from([FilterOperator.EQUAL, FilterOperator.NOT_EQUAL]), scalars),
    st.builds(
        FilterCondition, fields, st.just(FilterOperator.IN), st.lists(scalars, min_size=1, max_size=3).map(tuple)
    ),
    st.builds(
        FilterCondition, fields, st.sampled_from(sorted(ORDER)), st.sampled_from([0, 1, 1.5, "", "a", "AB", "1"])
    ),
    st.builds(
        FilterCondition,
        fields,
        st.sampled_from([FilterOperator.CONTAINS, FilterOperator.STARTS_WITH]),
        st.sampled_from(["", "a", "B", "1", "t"]),
    ),
    st.builds(FilterCondition, fields, st.just(FilterOperator.MATCHES), st.sampled_from(["a", "^A", "b$", "[0-9]"])),
    st.builds(FilterCondition, fields, st.sampled_from([FilterOperator.IS_NULL, FilterOperator.IS_NOT_NULL])),
)
filters = st.recursive(
    conditions,
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(And, st.lists(inner, min_size=2, max_size=3).map(tuple))
        | st.builds(Or, st.lists(inner, min_size=2, max_size=3).map(tuple))
    ),
    max_leaves=6,
)


def as_typed(element: Any, wanted: Any) -> Any:
    """A text as the number or boolean that it reads as, if the wanted value is one."""
    if not isinstance(element, str) or isinstance(wanted, str) or wanted is None:
        return element
    if isinstance(wanted, bool):
        return {"true": True, "false": False}.get(element.lower(), element)
    return float(element) if re.fullmatch(r"[0-9]+", element) else element


def same(element: Any, wanted: Any) -> bool:
    """Equality as filters define it, in a simple implementation."""
    one, other = as_typed(element, wanted), wanted
    if isinstance(one, str) and isinstance(other, str):
        return one.lower() == other.lower()
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def comparable(one: Any, other: Any) -> bool:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (one, other))
    return numbers or all(isinstance(value, str) for value in (one, other))


def lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def holds(operator: FilterOperator, element: Any, wanted: Any) -> bool:
    if operator is FilterOperator.EQUAL:
        return same(element, wanted)
    if operator is FilterOperator.IN:
        return any(same(element, one) for one in wanted)
    if operator in ORDER:
        element = as_typed(element, wanted)
        return comparable(element, wanted) and ORDER[operator](lower(element), lower(wanted))
    if element is None:
        return False
    text = str(element).lower() if isinstance(element, bool) else str(element)
    if operator is FilterOperator.MATCHES:
        return re.search(wanted, text) is not None
    return (
        lower(wanted) in lower(text) if operator is FilterOperator.CONTAINS else lower(text).startswith(lower(wanted))
    )


def oracle(condition: Filter, row: dict[str, Any]) -> bool:
    match condition:
        case And(parts=parts):
            return all(oracle(part, row) for part in parts)
        case Or(parts=parts):
            return any(oracle(part, row) for part in parts)
        case Not(part=part):
            return not oracle(part, row)
        case FilterCondition(path=path, operator=operator, value=wanted):
            value = row.get(str(path))
            if operator in {FilterOperator.IS_NULL, FilterOperator.IS_NOT_NULL}:
                return (value is None) == (operator is FilterOperator.IS_NULL)
            if operator is FilterOperator.NOT_EQUAL:
                return not oracle(FilterCondition(path, FilterOperator.EQUAL, wanted), row)
            return any(holds(operator, one, wanted) for one in (value if isinstance(value, list) else [value]))


@given(rows, filters)
def test_a_filter_keeps_the_same_rows_as_plain_python(table: list[dict[str, Any]], condition: Filter) -> None:
    """The order is kept, and the rows are not modified."""
    before = copy.deepcopy(table)
    assert filter_rows(table, condition) == [row for row in table if oracle(condition, row)]
    assert list(map(compile_filter(condition), table)) == [oracle(condition, row) for row in table]
    assert repr(table) == repr(before)
