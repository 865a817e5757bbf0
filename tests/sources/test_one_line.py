"""Others' words, on one line and harmless."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.sources.one_line import one_line


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
def test_words_stand_on_one_line(text: str, line: str) -> None:
    """Without what a terminal would obey; cut off where they are long."""
    assert one_line(text, 20) == line


@given(st.text(max_size=300))
def test_any_text_is_harmless(text: str) -> None:
    """Short, and printable."""
    line = one_line(text, 40)
    assert len(line) <= 40
    assert line.isprintable()
