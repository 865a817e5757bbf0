"""``glm_web_search`` searches the web without a model."""

from typing import TYPE_CHECKING, Any

from toold.protocol.error_codes import InvalidArgumentsError, ServiceUnavailableError

if TYPE_CHECKING:
    from tests.tools.builtin.vendor.conftest import Harness, OpenHarness

SEARCH = "glm_web_search"


def searched(harness: "Harness") -> dict[str, Any]:
    """The body of the last search request."""
    return [seen.body for seen in harness.simulator.requests if seen.operation == "search"][-1]


async def test_search_returns_pages(harness: "Harness") -> None:
    """One request returns pages with title, link, content, site and date. The text numbers them, and they are marked as
    simulated.
    """
    result = await harness.call(SEARCH, search_query="asyncio", count=2)
    assert harness.request_counts == {"glm search": 1}
    data = result.structured
    assert isinstance(data, dict)
    assert data["query"] == "asyncio"
    assert data["simulated"] is True
    assert data["results"][1] == {
        "title": "Simulated page 2 on asyncio",
        "link": "https://example.com/simulated/2",
        "content": "Simulated text on asyncio, number 2.",
        "site": "Simulator",
        "published": "2026-01-01",
    }
    assert result.text.startswith("1. Simulated page 1 on asyncio (Simulator, 2026-01-01)\nhttps://")
    assert (result.metadata.provider, result.metadata.usage) == ("glm", None)


async def test_settings_are_sent(harness: "Harness") -> None:
    """Age, domain, content size, engine and ids are sent. ``all`` omits the age."""
    wanted = {
        "search_recency_filter": "oneWeek", "search_domain_filter": "python.org", "content_size": "high",
        "search_engine": "search-prime", "request_id": "request-1", "user_id": "user-1",
    }  # fmt: skip
    await harness.call(SEARCH, search_query="x", **wanted)
    body = searched(harness)
    assert {name: body[name] for name in wanted} == wanted
    await harness.call(SEARCH, search_query="x", search_recency_filter="all")
    assert "search_recency_filter" not in searched(harness)


INVALID_ARGUMENTS: list[tuple[dict[str, Any], str]] = [
    ({}, "search_query is missing; it should be a string"),
    ({"search_query": ""}, "search_query should have at least 1 character"),
    ({"search_query": " "}, "The query is empty"),
    ({"query": "x"}, "query is not an argument; its arguments are search_query"),
    ({"search_query": "x", "search_recency_filter": "today"}, "search_recency_filter should be 'oneDay'"),
    ({"search_query": "x", "search_domain_filter": ""}, "search_domain_filter should have at least 1"),
    ({"search_query": "x", "content_size": "low"}, "content_size should be 'medium' or 'high'"),
]


async def test_invalid_arguments_are_refused(harness: "Harness") -> None:
    """Invalid arguments are refused before any request."""
    for arguments, says in INVALID_ARGUMENTS:
        error = await harness.refuse(SEARCH, **arguments)
        assert isinstance(error, InvalidArgumentsError), arguments
        assert says in error.message


async def test_outage_timeout_and_cancel(harness: "Harness") -> None:
    """An outage, a timeout and a cancel each cause exactly one request."""
    await harness.check_failures("glm", "search", SEARCH, search_query="x")


async def test_missing_key_is_named(open_harness: "OpenHarness") -> None:
    """Without a key the error names the setting."""
    error = await (await open_harness(GLM_API_KEY="")).refuse(SEARCH, search_query="x")
    assert isinstance(error, ServiceUnavailableError)
    assert "GLM_API_KEY" in error.message
