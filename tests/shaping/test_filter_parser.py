"""The filter parser."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.shaping.filter_conditions import And, Filter, FilterCondition, FilterOperator, Not, Or
from toold.shaping.filter_parser import MAX_DEPTH, MAX_FILTER_CHARS, MAX_PATTERNS, parse_filter
from toold.shaping.shaping_errors import LanguageError
from toold.shaping.value_paths import ValuePath

A, B, C = (FilterCondition(ValuePath((name,)), FilterOperator.EQUAL, number) for number, name in enumerate("abc", 1))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a = 1", A),
        ("a=1", A),
        ("  a =\t1  ", A),
        ("a = 1 AND b = 2", And((A, B))),
        ("a = 1 and b = 2 aNd c = 3", And((A, B, C))),
        ("a = 1 OR b = 2 AND c = 3", Or((A, And((B, C))))),
        ("(a = 1 OR b = 2) AND c = 3", And((Or((A, B)), C))),
        ("(a=1)AND(b=2)", And((A, B))),
        ("NOT a = 1 AND b = 2", And((Not(A), B))),
        ("NOT (a = 1 AND b = 2)", Not(And((A, B)))),
        ("not not a = 1", Not(Not(A))),
        ("((a = 1))", A),
    ],
)
def test_operator_precedence(text: str, found: Filter) -> None:
    """NOT binds tightest, then AND, then OR; parentheses override this, and keywords are case-insensitive."""
    assert parse_filter(text) == found


@pytest.mark.parametrize(
    ("text", "operator", "value"),
    [
        ("a != 1", FilterOperator.NOT_EQUAL, 1),
        ("a>=1.5", FilterOperator.AT_LEAST, 1.5),
        ("a <= -1", FilterOperator.AT_MOST, -1),
        ("a < x", FilterOperator.LESS, "x"),
        ("a > 2024-01-15", FilterOperator.GREATER, dt.datetime(2024, 1, 15, tzinfo=dt.UTC)),
        ("a = '2024-01-15'", FilterOperator.EQUAL, "2024-01-15"),
        ("a = '1'", FilterOperator.EQUAL, "1"),
        ("a = null", FilterOperator.EQUAL, None),
        ("a = in progress", FilterOperator.EQUAL, "in progress"),
        ("a = Contains nothing like that", FilterOperator.EQUAL, "Contains nothing like that"),
        ("a = Anderson", FilterOperator.EQUAL, "Anderson"),
        ("a = x@y.org/z?q:1-2", FilterOperator.EQUAL, "x@y.org/z?q:1-2"),
        ('a = "it\'s AND (that)"', FilterOperator.EQUAL, "it's AND (that)"),
        ("a = ''", FilterOperator.EQUAL, ""),
        ("a contains 12", FilterOperator.CONTAINS, "12"),
        ("a STARTS_WITH true", FilterOperator.STARTS_WITH, "true"),
        (r"a matches '^\d+ \'x\'$'", FilterOperator.MATCHES, r"^\d+ 'x'$"),
        ("a IN (1, 'x, y', in progress, null)", FilterOperator.IN, (1, "x, y", "in progress", None)),
        ("a in(1)", FilterOperator.IN, (1,)),
        ("a is_null", FilterOperator.IS_NULL, None),
        ("a IS_NOT_NULL", FilterOperator.IS_NOT_NULL, None),
    ],
)
def test_each_operator_reads_its_value(text: str, operator: FilterOperator, value: object) -> None:
    """Operators inside a value are text; bare values have types, and quoted values are text."""
    assert parse_filter(text) == FilterCondition(ValuePath(("a",)), operator, value)  # type: ignore[arg-type]


def test_a_field_can_have_any_name() -> None:
    """Keywords must be quoted in brackets; names of operators need no quotes at the position of a field."""
    assert parse_filter("['first name'] = 1") == FilterCondition(ValuePath(("first name",)), FilterOperator.EQUAL, 1)
    assert parse_filter("contains CONTAINS x") == FilterCondition(
        ValuePath(("contains",)), FilterOperator.CONTAINS, "x"
    )
    assert parse_filter("['not'] = 1") == FilterCondition(ValuePath(("not",)), FilterOperator.EQUAL, 1)
    assert parse_filter("notes = 1") == FilterCondition(ValuePath(("notes",)), FilterOperator.EQUAL, 1)


@pytest.mark.parametrize(
    ("text", "position", "reported"),
    [
        ("", 1, "empty"),
        ("  ", 3, "empty"),
        ("a", 2, "operator is missing after `a`"),
        ("a == 1", 3, "use ="),
        ("a <> 1", 3, "!="),
        ("a =~ x", 3, "MATCHES"),
        ("a LIKE 'x%'", 3, "CONTAINS, STARTS_WITH or MATCHES"),
        ("a CONTAIN x", 3, "did you mean 'CONTAINS'"),
        ("a IS NULL", 3, "IS_NULL"),
        ("a NOT IN (1)", 3, "NOT a IN (1, 2)"),
        ("a BETWEEN 1 AND 2", 3, "a >= 1 AND a <= 9"),
        ("first name = x", 7, "['a name']"),
        ("a =", 4, "value is missing"),
        ("a = AND b = 1", 5, "value is missing"),
        ("a = 1 AND", 10, "condition is missing"),
        ("a = 1 AND OR b = 1", 11, "before OR"),
        ("not = 1", 5, "name of a field is missing"),
        ("and = 1", 1, "['and']"),
        ("'a' = 1", 1, "['a name']"),
        ("a = O'Brien", 6, "quote "),
        ("a = f(x)", 6, "quote "),
        ("a = x, y", 6, "quote "),
        ("a = x > y", 7, "quote "),
        ("a = 'x' b = 1", 9, "expected AND, OR"),
        ("a = 'x", 5, "not closed"),
        ("a IS_NULL 1", 11, "expected AND, OR"),
        ("(a = 1", 7, "position 1 is not closed"),
        ("a = 1)", 6, "there is no open parenthesis"),
        ("a = 1 && b = 2", 7, "AND and OR"),
        ("a IN 1", 6, "in parentheses"),
        ("a IN ()", 7, "value is missing"),
        ("a IN (1, )", 10, "value is missing"),
        ("a IN (1 2, 3", 13, "commas"),
        ("a > null", 5, "= or !="),
        ("a <= true", 6, "= or !="),
        ("a MATCHES '(x'", 11, "pattern"),
        (" OR ".join(["a MATCHES x"] * (MAX_PATTERNS + 1)), MAX_PATTERNS * 15 + 11, f"at most {MAX_PATTERNS} patterns"),
        ("a = 2024-02-30", 5, "date does not exist"),
        ("a = 1e400", 5, "too large"),
        ("NOT " * (MAX_DEPTH + 1) + "a = 1", (MAX_DEPTH + 1) * 4 + 1, f"at most {MAX_DEPTH} deep"),
        ("(" * 100_000, MAX_FILTER_CHARS + 1, f"at most {MAX_FILTER_CHARS}"),
        ("(" * 1_000, MAX_DEPTH + 2, f"at most {MAX_DEPTH} deep"),
        ("a.b. = 1", 5, "name of a field"),
        ("{{a}} = 1", 1, "name of a field"),
    ],
)
def test_an_invalid_filter_is_an_error_with_its_position(text: str, position: int, reported: str) -> None:
    """The message contains a correction and an example."""
    with pytest.raises(LanguageError) as raised:
        parse_filter(text)
    assert raised.value.position == position
    assert reported in raised.value.what
    assert "for example: " in str(raised.value)


PIECES = [
    "a",
    "AND",
    "or",
    "NOT",
    "(",
    ")",
    "=",
    "!=",
    "<",
    "IN",
    "MATCHES",
    "IS_NULL",
    "'",
    '"',
    "\\",
    ",",
    "1",
    ".",
    "[",
    "]",
    "*",
]


@given(
    st.text()
    | st.lists(st.sampled_from([*PIECES, " ", " "])).map("".join)
    | st.lists(st.sampled_from(PIECES)).map(" ".join)
)
def test_any_text_is_a_filter_or_a_language_error(text: str) -> None:
    """The parser raises only LanguageError; a parsed filter prints to an equivalent text."""
    try:
        found = parse_filter(text)
    except LanguageError:
        return
    assert parse_filter(str(found)) == found
