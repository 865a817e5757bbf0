"""Reading a text from left to right."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.shaping.shaping_errors import LanguageError
from toold.shaping.text_cursor import TextCursor, quote


@given(st.text())
def test_what_is_quoted_reads_as_it_was(text: str) -> None:
    """Any text can be put in quotes, and comes out of them unchanged; what follows is left."""
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
def test_a_backslash_stands_for_quotes_and_backslashes_alone(written: str, means: str) -> None:
    """Before any other character it is itself, so that patterns are written as they are."""
    assert TextCursor(written, "").quoted() == means


def test_an_open_quote_is_an_error_at_its_beginning() -> None:
    """The position is that of the quote, not the end of the text."""
    with pytest.raises(LanguageError, match="not closed") as raised:
        TextCursor("ab 'open", "'closed'", at=3).quoted()
    assert raised.value.position == 4


def test_taking_and_skipping_move_on_only_over_what_is_there() -> None:
    """What is not there is not read, and the next character stays the same."""
    reader = TextCursor("  abc=", "")
    reader.blanks()
    assert (reader.take(re.compile("[0-9]+")), reader.skip("x"), reader.here) == ("", False, "a")
    assert (reader.take(re.compile("[a-z]+")), reader.skip("="), reader.here) == ("abc", True, "")
