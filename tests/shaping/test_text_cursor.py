"""The text cursor reads a text from left to right."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.shaping.shaping_errors import LanguageError
from toold.shaping.text_cursor import TextCursor, quote


@given(st.text())
def test_quoted_text_reads_back_unchanged(text: str) -> None:
    """Any text can be quoted; the cursor stops after the closing quote."""
    reader = TextCursor(f"{quote(text)} rest", "")
    assert reader.quoted() == text
    assert reader.text[reader.at :] == " rest"


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("'it\\'s'", "it's"),
        ('"say \\"hi\\""', 'say "hi"'),
        ('"it\'s"', "it's"),
        ("'a\\\\b'", "a\\b"),
        ("'\\d+\\n'", "\\d+\\n"),
        ("''", ""),
    ],
)
def test_a_backslash_escapes_only_quotes_and_backslashes(written: str, means: str) -> None:
    """Before any other character a backslash is literal, so patterns need no additional escapes."""
    assert TextCursor(written, "").quoted() == means


def test_an_unclosed_quote_is_an_error_at_its_start() -> None:
    """The position is that of the opening quote, not the end of the text."""
    with pytest.raises(LanguageError, match="not closed") as raised:
        TextCursor("ab 'open", "'closed'", at=3).quoted()
    assert raised.value.position == 4


def test_take_and_skip_advance_only_on_a_match() -> None:
    """Without a match the position does not change."""
    reader = TextCursor("  abc=", "")
    reader.blanks()
    assert (reader.take(re.compile("[0-9]+")), reader.skip("x"), reader.here) == ("", False, "a")
    assert (reader.take(re.compile("[a-z]+")), reader.skip("="), reader.here) == ("abc", True, "")
