"""How large a value is once it is written out."""

from typing import Any

import pytest
from toold.shaping import weight


@pytest.mark.parametrize(
    ("value", "bytes_"),
    [("four", 4), (7, 0), (None, 0), ([], 0), ([1, 2], 16), (["ab"], 10), ({"abc": "de"}, 13), ([[1], [2]], 32)],
)
def test_texts_names_and_places_count(value: Any, bytes_: int) -> None:
    """A text and a field's name count their characters, an element and a field 8 bytes more."""
    assert weight(value, 1_000) == bytes_


def test_what_is_shared_counts_as_often_as_it_is_used() -> None:
    """A value that is there ten times weighs ten times as much, though memory holds it once."""
    once = ["x" * 100]
    assert weight([once] * 10, 10_000) == 10 * weight([once], 10_000)


def test_it_looks_no_further_than_it_is_asked() -> None:
    """A value of 10^40 parts is found too large at once."""
    value: Any = "x"
    for _ in range(40):
        value = [value] * 10
    assert weight(value, 1_000) > 1_000
