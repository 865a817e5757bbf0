"""A vendor's web search by itself, without a model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from .completion import Recency, SearchResult
from .completion_parsing import SIMULATED, NotUnderstoodError, read_search_results
from .request_body import Body
from .request_check import check_result_count, refused
from .vendor_exchange import VendorExchange
from .vendor_transport import ApiRequest

ContentSize = Literal["medium", "high"]
"""How much of each page is told: a summary, or as much as there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """What to search for. What is None is left to the vendor.

    Zhipu recommends at most 70 characters for ``query``; longer ones have been taken too, so they are not refused here.
    """

    query: str
    count: int | None = None
    """Results, 1 to 50."""
    recency: Recency | None = None
    domain: str | None = None
    """Pages of this domain alone."""
    content_size: ContentSize | None = None


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """What a search found: at most as many results as were asked for."""

    results: tuple[SearchResult, ...]
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class Searching:
    """Where a vendor searches, and its form of a query."""

    path: str
    make_body: Callable[[SearchQuery], Body]


class VendorSearch:
    """``POST …/web_search`` (docs.bigmodel.cn/api-reference, 网络搜索)."""

    def __init__(self, exchange: VendorExchange, searching: Searching) -> None:
        self._exchange = exchange
        self._searching = searching

    async def search(self, query: SearchQuery, *, timeout_s: float) -> SearchAnswer:
        """Search once; a vendor that finds more than it was asked for is cut to that.

        Raises:
            InvalidArgumentsError: the query is empty, or its count out of bounds.
            CallError: a subclass by what the vendor said.
        """
        if not query.query.strip():
            raise refused("query", "There is nothing to search for: the query is empty.")
        check_result_count(query.count)
        request = ApiRequest(method="POST", path=self._searching.path, body=self._searching.make_body(query))
        answer = await self._exchange.ask(request, read_search, timeout_s=timeout_s)
        return SearchAnswer(answer.results[: query.count], answer.simulated)


def read_search(document: Any) -> SearchAnswer:
    """Raises ``NotUnderstoodError`` where there are no results in it."""
    if not isinstance(document, dict) or not isinstance(document.get("search_result"), list):
        raise NotUnderstoodError("there is no search_result in it")
    return SearchAnswer(read_search_results(document["search_result"]), document.get(SIMULATED) is True)
