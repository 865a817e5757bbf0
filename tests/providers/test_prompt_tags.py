"""Text between tags: the text cannot close its own tag."""

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
def test_text_that_contains_the_closing_tag_gets_another_tag(text: str, fence: str) -> None:
    """A text that contains the closing tag gets a different tag and is not changed."""
    assert tagged("file", text, name='a "b"') == f'<{fence} name="a &quot;b&quot;">\n{text}\n</{fence}>'


@given(st.lists(st.sampled_from(["<", "/", "file", "-", "2", "3", ">", " ", "\n", "x"])).map("".join))
def test_closing_tag_occurs_once_and_at_the_end(text: Any) -> None:
    """For any text, the closing tag occurs exactly once, at the end."""
    written = tagged("file", text)
    closing = f"</{written[1 : written.index('>')]}>"
    assert written.count(closing) == 1
    assert written.endswith(closing)
