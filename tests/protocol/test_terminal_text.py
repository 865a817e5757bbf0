"""Text from elsewhere, made safe for a terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.terminal_text import one_line, terminal_safe


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("as it is", "as it is"),
        (" two\nlines \t and\r\nmore ", "two lines and more"),
        ("\x1b]0;title\x07\x1b[31mred\u202e", "]0;title [31mred"),
        ("x" * 20, "x" * 20),
        ("x" * 21, "x" * 19 + "…"),
    ],
)
def test_text_is_put_on_one_line(text: str, line: str) -> None:
    """Control characters are removed, and long text is truncated."""
    assert one_line(text, 20) == line


@given(st.text(max_size=300))
def test_any_text_becomes_a_short_printable_line(text: str) -> None:
    """For any text."""
    line = one_line(text, 40)
    assert len(line) <= 40
    assert line.isprintable()


def test_line_ends_can_be_kept() -> None:
    """Each other control character becomes one space."""
    assert terminal_safe("a\x1b[1m\nb\tc", keep="\n") == "a [1m\nb c"
