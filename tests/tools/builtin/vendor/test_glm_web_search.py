"""``glm_web_search``: pages, without a model."""

from typing import TYPE_CHECKING, Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError, ServiceUnavailableError

if TYPE_CHECKING:
    from tests.tools.builtin.vendor.conftest import House, OpenHouse

SEARCH = "glm_web_search"


def searched(house: "House") -> dict[str, Any]:
    """The body of the last search."""
    return [seen.body for seen in house.simulator.requests if seen.operation == "search"][-1]


async def test_pages_come_back(house: "House") -> None:
    """One request; each page with title, link, words, site and date, numbered in the text, and marked as simulated."""
    result = await house.call(SEARCH, search_query="asyncio", count=2)
    assert house.asked == {"glm search": 1}
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


async def test_settings_go_along(house: "House") -> None:
    """Age, domain and length of the pages; ``all`` leaves the age to the vendor."""
    wanted = {"search_recency_filter": "oneWeek", "search_domain_filter": "python.org", "content_size": "high"}
    await house.call(SEARCH, search_query="x", **wanted)
    body = searched(house)
    assert {name: body[name] for name in wanted} == wanted
    await house.call(SEARCH, search_query="x", search_recency_filter="all")
    assert "search_recency_filter" not in searched(house)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "search_query is missing; it should be a string"),
        ({"search_query": ""}, "search_query should have at least 1 character"),
        ({"search_query": " "}, "The query is empty"),
        ({"query": "x"}, "query is not an argument; its arguments are search_query"),
        ({"search_query": "x", "count": 0}, "count should be greater than or equal to 1, not 0"),
        ({"search_query": "x", "count": 51}, "count should be less than or equal to 50, not 51"),
        ({"search_query": "x", "search_recency_filter": "today"}, "search_recency_filter should be 'oneDay'"),
        ({"search_query": "x", "search_domain_filter": ""}, "search_domain_filter should have at least 1"),
        ({"search_query": "x", "content_size": "low"}, "content_size should be 'medium' or 'high'"),
    ],
)
async def test_wrong_arguments_are_told(house: "House", arguments: dict[str, Any], says: str) -> None:
    """Before the vendor is asked."""
    error = await house.refuse(SEARCH, **arguments)
    assert isinstance(error, InvalidArgumentsError)
    assert says in error.message


async def test_how_it_fails(house: "House") -> None:
    """Down, out of time, cancelled."""
    await house.fails_well("glm", "search", SEARCH, search_query="x")


async def test_without_a_key_it_says_which(open_house: "OpenHouse") -> None:
    """It is listed all the same."""
    error = await (await open_house(GLM_API_KEY="")).refuse(SEARCH, search_query="x")
    assert isinstance(error, ServiceUnavailableError)
    assert "GLM_API_KEY" in error.message
