"""A vendor's web search API, without a model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from .completion import Recency, SearchResult
from .completion_parsing import SIMULATED, read_search_results
from .request_body import Body
from .request_check import check_result_count, refused
from .response_values import InvalidResponseError
from .vendor_exchange import VendorExchange
from .vendor_transport import ApiRequest

ContentSize = Literal["medium", "high"]
"""The content per page: a summary, or as much as is available."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """A search query. None in a field selects the vendor's default.

    Zhipu recommends at most 70 characters for ``query`` but accepts more, so longer queries are not rejected here.
    """

    query: str
    count: int | None = None
    """The number of results, 1 to 50."""
    recency: Recency | None = None
    domain: str | None = None
    """Only pages of this domain."""
    content_size: ContentSize | None = None
    engine: str | None = None
    """The vendor's name of the search engine."""
    request_id: str | None = None
    """The caller's id of the request, which the vendor records."""
    user_id: str | None = None
    """The caller's id of its end user, which the vendor records."""


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The results of a search, at most the requested number."""

    results: tuple[SearchResult, ...]
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class SearchApi:
    """The path of a vendor's search API, and its request format."""

    path: str
    make_body: Callable[[SearchQuery], Body]


class VendorSearch:
    """``POST …/web_search`` (docs.bigmodel.cn/api-reference, 网络搜索)."""

    def __init__(self, exchange: VendorExchange, api: SearchApi) -> None:
        self._exchange = exchange
        self._api = api

    async def search(self, query: SearchQuery, *, timeout_s: float) -> SearchAnswer:
        """Searches once. Surplus results are dropped.

        Raises:
            InvalidArgumentsError: the query is empty, or its count is out of range.
            CallError: the vendor failed.
        """
        if not query.query.strip():
            raise refused("query", "The query is empty.")
        check_result_count(query.count)
        request = ApiRequest(method="POST", path=self._api.path, body=self._api.make_body(query))
        answer = await self._exchange.ask(request, read_search, timeout_s=timeout_s)
        return SearchAnswer(answer.results[: query.count], answer.simulated)


def read_search(document: Any) -> SearchAnswer:
    """Raises ``InvalidResponseError`` if the document has no results."""
    if not isinstance(document, dict) or not isinstance(document.get("search_result"), list):
        raise InvalidResponseError("search_result is missing")
    return SearchAnswer(read_search_results(document["search_result"]), document.get(SIMULATED) is True)
