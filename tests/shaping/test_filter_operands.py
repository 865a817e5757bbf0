"""Operands of filters: typed literals and regular expressions."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.shaping.filter_operands import Literal, PatternError, compile_pattern, typed, written
from toold.shaping.shaping_errors import LanguageError
from toold.shaping.text_cursor import TextCursor

MOMENTS = st.datetimes(timezones=st.just(dt.UTC))


def read(text: str) -> Literal:
    return typed(text, TextCursor(text, ""), 0)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("-12", -12),
        ("+12", "+12"),
        ("1.50", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("true", True),
        ("FALSE", False),
        ("Null", None),
        ("2024-01-15", dt.datetime(2024, 1, 15, tzinfo=dt.UTC)),
        ("007", "007"),
        ("1_000", "1_000"),
        ("1.2.3", "1.2.3"),
        ("infinity", "infinity"),
        ("nan", "nan"),
        ("٣", "٣"),
        ("in progress", "in progress"),
    ],
)
def test_bare_text_gets_the_type_of_its_notation(text: str, value: Literal) -> None:
    """Numbers may also have a plus sign or no digit before the point; numerals with leading zeros are text."""
    found = read(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "reported"), [("1e999", "too large"), ("9" * 5000, "too large"), ("2024-13-01", "date does not exist")]
)
def test_an_invalid_number_or_date_is_an_error(text: str, reported: str) -> None:
    """It is not silently read as text."""
    with pytest.raises(LanguageError, match=reported):
        read(text)


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.none() | MOMENTS)
def test_a_bare_literal_reads_back_unchanged(value: Literal) -> None:
    """Numbers, true, false, null and dates keep their value and type."""
    found = read(written(value))
    assert found == value
    assert type(found) is type(value)


@given(st.text())
def test_text_reads_back_from_quotes(text: str) -> None:
    """Quoted text always stays text."""
    assert TextCursor(written(text), "").quoted() == text


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("b+", "abbb", True),
        ("^b", "abbb", False),
        ("B", "abbb", False),
        ("(?i)B", "abbb", True),
        (r"\d{2}$", "no. 42", True),
        ("é", "café", True),
        (".", "\ud800", True),
        ("", "anything", True),
    ],
)
def test_a_pattern_is_searched_case_sensitively(pattern: str, text: str, found: bool) -> None:
    """A pattern matches anywhere in the text unless it is anchored; unpaired surrogates in the text cause no error."""
    assert compile_pattern(pattern)(text) is found


@pytest.mark.parametrize("pattern", ["(", "a(?=b)", r"(a)\1", "(a{1000}){1000}", "\ud800", "a" * 1_001])
def test_an_unsupported_pattern_is_rejected(pattern: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Look-around, back-references, large patterns and invalid patterns are errors; nothing is written to stderr."""
    with pytest.raises(PatternError) as raised:
        compile_pattern(pattern)
    assert str(raised.value)
    assert capfd.readouterr().err == ""


def test_a_pattern_cannot_backtrack_exponentially() -> None:
    """``(a+)+$`` on a long text would not terminate in practice in a backtracking engine."""
    assert compile_pattern("^(a+)+$")("a" * 50_000 + "!") is False
