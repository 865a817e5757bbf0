"""Patterns that callers write."""

import pytest
from toold.shaping.re2_patterns import PatternError, compile_pattern


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
def test_a_pattern_is_searched_with_case(pattern: str, text: str, found: bool) -> None:
    """Anywhere in the text, unless it is anchored; half of a surrogate pair in the data is no error."""
    assert compile_pattern(pattern)(text) is found


@pytest.mark.parametrize("pattern", ["(", "a(?=b)", r"(a)\1", "(a{1000}){1000}", "\ud800", "a" * 1_001])
def test_what_takes_too_long_is_refused(pattern: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Look-around, back-references and large patterns, like those that are none; nothing is written to stderr."""
    with pytest.raises(PatternError) as raised:
        compile_pattern(pattern)
    assert str(raised.value)
    assert capfd.readouterr().err == ""


def test_a_pattern_that_backtracking_never_ends_on_is_answered() -> None:
    """``(a+)+$`` on a long run takes a backtracking engine longer than the universe is old."""
    assert compile_pattern("^(a+)+$")("a" * 50_000 + "!") is False
