"""``glm_web_search``: GLM's web search API, without a model."""

from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field

from ....protocol.error_codes import ServiceUnavailableError
from ....providers import ContentSize, Recency, SearchQuery, SearchResult
from ...former_arguments import FormerNames
from ...tool import Arguments, ToolOutput, tool
from ...tool_context import ToolContext


class GlmWebSearchArguments(Arguments):
    """A query and its filters."""

    search_query: str = Field(min_length=1, description="Search query; short queries work best.")
    count: Annotated[int, FormerNames("count", clamped=True)] = Field(
        default=10, ge=1, le=50, description="Number of results."
    )
    search_recency_filter: Recency | Literal["all"] = Field(default="all", description="Maximum age of a page.")
    search_domain_filter: str | None = Field(
        default=None, min_length=1, description="Only pages of this domain, such as docs.python.org."
    )
    content_size: ContentSize | None = Field(default=None, description="Amount of content per page.")
    search_engine: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9_-]{1,40}$",
        description="Zhipu's name of the engine: search-prime (z.ai), search_std or search_pro (bigmodel.cn). "
        "Default: the platform's best.",
    )
    request_id: str | None = Field(
        default=None, min_length=1, max_length=128, description="Your id for the request, for Zhipu's support."
    )
    user_id: str | None = Field(
        default=None, min_length=1, max_length=128, description="Your id for the end user, for Zhipu's abuse control."
    )


@tool("glm_web_search", read_only=True, open_world=True, timeout_s=60.0)
async def glm_web_search(arguments: GlmWebSearchArguments, context: ToolContext) -> ToolOutput:
    """Search the web with GLM's search engine, without a model. Returns title, link, date and content of each page.

    Makes one request. To get an answer based on search results, use chat with web_search.
    """
    search = context.capabilities("glm").search
    if search is None:
        raise ServiceUnavailableError("The provider glm has no web search.", transient=False)
    recency = arguments.search_recency_filter
    query = SearchQuery(
        query=arguments.search_query,
        count=arguments.count,
        recency=None if recency == "all" else recency,
        domain=arguments.search_domain_filter,
        content_size=arguments.content_size,
        engine=arguments.search_engine,
        request_id=arguments.request_id,
        user_id=arguments.user_id,
    )
    found = await context.vendor("glm", partial(search.search, query))
    pages = [_row(page) for page in found.results]
    text = "\n\n".join(f"{number}. {_page_text(page)}" for number, page in enumerate(found.results, 1))
    data: dict[str, Any] = {"query": query.query, "results": pages}
    return ToolOutput(text or "No results.", data | {"simulated": True} if found.simulated else data)


def _row(page: SearchResult) -> dict[str, str]:
    fields = {
        "title": page.title,
        "link": page.link,
        "content": page.content,
        "site": page.media,
        "published": page.published,
    }
    return {key: value for key, value in fields.items() if value}


def _page_text(page: SearchResult) -> str:
    origin = ", ".join(filter(None, (page.media, page.published)))
    return "\n".join(filter(None, (f"{page.title} ({origin})" if origin else page.title, page.link, page.content)))
