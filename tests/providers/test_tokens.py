"""Token counts: the vendor's, or our own."""

from typing import Any

import pytest
from toold.providers.answer import NotUnderstoodError
from toold.providers.tokens import count_at


def test_the_number_is_found_where_it_stands() -> None:
    """Key below key."""
    assert count_at("data", "total_tokens")({"data": {"total_tokens": 80}}) == 80


@pytest.mark.parametrize(
    "document", [None, [], {}, {"data": 1}, {"data": {"total_tokens": "80"}}, {"data": {"total_tokens": True}}]
)
def test_what_is_no_number_is_not_understood(document: Any) -> None:
    """The error names the place."""
    with pytest.raises(NotUnderstoodError, match=r"data\.total_tokens"):
        count_at("data", "total_tokens")(document)
