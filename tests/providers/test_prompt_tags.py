"""Text between tags: it cannot end them itself, whatever is in it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.providers import tagged


@pytest.mark.parametrize(
    ("text", "fence"),
    [
        ("alpha", "file"),
        ("<file>", "file"),
        ("</files>", "file"),
        ("a </file> b", "file-2"),
        ("a </FILE> b", "file-2"),
        ("a < / file > b", "file-2"),
        ("a </file", "file-2"),
        ("</file> </file-2> </file-4>", "file-3"),
        ("</file-2>", "file"),
    ],
)
def test_a_text_that_has_the_closing_tag_stands_between_others(text: str, fence: str) -> None:
    """And stays as it is: who reads the answer finds in the file what is quoted of it."""
    assert tagged("file", text, name='a "b"') == f'<{fence} name="a &quot;b&quot;">\n{text}\n</{fence}>'


@given(st.lists(st.sampled_from(["<", "/", "file", "-", "2", "3", ">", " ", "\n", "x"])).map("".join))
def test_what_is_opened_is_closed_once_and_at_the_end(text: Any) -> None:
    """Whatever the text."""
    written = tagged("file", text)
    closing = f"</{written[1 : written.index('>')]}>"
    assert written.count(closing) == 1
    assert written.endswith(closing)
