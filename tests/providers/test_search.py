"""Web search without a model: how its answer is read."""

from typing import Any

import pytest
from toold.providers import SearchResult
from toold.providers.answer import NotUnderstoodError
from toold.providers.search import read_search

PAGE = {
    "title": "T",
    "link": "https://a.test",
    "content": "C",
    "media": "M",
    "publish_date": "2026-01-01",
    "refer": "ref_1",
}


def test_pages_are_read() -> None:
    """Title, link, content, site, date and reference; what is missing is empty, what is no page is passed over."""
    answer = read_search({"search_result": [PAGE, {"title": "Bare"}, None, "x"]})
    assert answer.results == (
        SearchResult("T", "https://a.test", "C", "M", "2026-01-01", "ref_1"),
        SearchResult("Bare", "", ""),
    )


@pytest.mark.parametrize("document", [None, [], {}, {"search_result": {}}])
def test_what_has_no_results_is_not_understood(document: Any) -> None:
    """An answer without the list is no search that found nothing."""
    with pytest.raises(NotUnderstoodError):
        read_search(document)
    assert read_search({"search_result": []}).results == ()
