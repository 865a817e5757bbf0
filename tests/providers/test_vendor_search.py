"""Web search without a model."""

from typing import Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError
from toold.providers import SearchQuery, SearchResult, VendorSearch
from toold.providers.response_values import InvalidResponseError
from toold.providers.vendor_search import SearchApi, read_search
from toold.providers.vendor_transport import ApiRequest

PAGE = {
    "title": "T",
    "link": "https://a.test",
    "content": "C",
    "media": "M",
    "publish_date": "2026-01-01",
    "refer": "ref_1",
}


def test_search_results_are_read() -> None:
    """Title, link, content, site, date and reference are read. Missing fields are empty, and invalid entries are
    skipped.
    """
    answer = read_search({"search_result": [PAGE, {"title": "Bare"}, None, "x"]})
    assert answer.results == (
        SearchResult("T", "https://a.test", "C", "M", "2026-01-01", "ref_1"),
        SearchResult("Bare", "", ""),
    )


@pytest.mark.parametrize("document", [None, [], {}, {"search_result": {}}])
def test_response_without_result_list_is_refused(document: Any) -> None:
    """An answer without the list is an error, as opposed to an empty list."""
    with pytest.raises(InvalidResponseError):
        read_search(document)
    assert read_search({"search_result": []}).results == ()


class Overfull:
    """An exchange whose vendor returns more results than requested, and which records the requests."""

    def __init__(self) -> None:
        self.requests: list[ApiRequest] = []

    async def ask(self, request: ApiRequest, read: Any, *, timeout_s: float) -> Any:
        self.requests.append(request)
        return read({"search_result": [PAGE] * 5})


SEARCHING = SearchApi("/search", lambda query: {"q": query.query})


async def test_search_is_one_request_and_truncated_to_its_count() -> None:
    """Zhipu can return more results than requested, so they are truncated. Without a count, all are kept."""
    exchange: Any = Overfull()
    search = VendorSearch(exchange, SEARCHING)
    assert len((await search.search(SearchQuery(query="news", count=2), timeout_s=1)).results) == 2
    assert len((await search.search(SearchQuery(query="news"), timeout_s=1)).results) == 5
    assert exchange.requests == [ApiRequest(method="POST", path="/search", body={"q": "news"})] * 2


@pytest.mark.parametrize(
    ("query", "field"),
    [
        (SearchQuery(query=" "), "query"),
        (SearchQuery(query="news", count=0), "count"),
        (SearchQuery(query="news", count=51), "count"),
    ],
)
async def test_invalid_search_is_refused(query: SearchQuery, field: str) -> None:
    """An invalid search is refused before it is sent."""
    exchange: Any = Overfull()
    with pytest.raises(InvalidArgumentsError) as caught:
        await VendorSearch(exchange, SEARCHING).search(query, timeout_s=1)
    assert list((caught.value.details or {})["fields"]) == [field]
    assert exchange.requests == []
