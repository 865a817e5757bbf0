"""The simulator's token counts and web search."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from toold.providers.simulator import SIMULATOR_KEY, Simulator

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def http() -> AsyncIterator[httpx.AsyncClient]:
    headers = {"authorization": f"Bearer {SIMULATOR_KEY}"}
    async with httpx.AsyncClient(headers=headers, trust_env=False, timeout=30, verify=False) as client:
        yield client


ASKED = [{"role": "user", "content": "x" * 40}]


async def test_token_counts_have_the_vendors_format(simulator: Simulator, http: httpx.AsyncClient) -> None:
    """Kimi's estimate and GLM's tokenizer have their own formats. Tools are counted."""
    kimi = f"{simulator.kimi_base_url}/tokenizers/estimate-token-count"
    glm = f"{simulator.glm_base_url}/tokenizer"
    assert (await http.post(kimi, json={"model": "kimi-plain", "messages": ASKED})).json()["data"] == {
        "total_tokens": 10
    }
    plain = (await http.post(glm, json={"model": "glm-plain", "messages": ASKED})).json()["usage"]["prompt_tokens"]
    tools = [{"type": "function", "function": {"name": "find"}}]
    more = (await http.post(glm, json={"model": "glm-plain", "messages": ASKED, "tools": tools})).json()["usage"]
    assert plain == 10 < more["prompt_tokens"]


async def test_token_count_ignores_directives(simulator: Simulator, http: httpx.AsyncClient) -> None:
    """Directives in a prompt apply only to the chat request that follows."""
    url = f"{simulator.kimi_base_url}/tokenizers/estimate-token-count"
    prompt = [{"role": "user", "content": "[[sim:status=500]]"}]
    assert (await http.post(url, json={"model": "kimi-plain", "messages": prompt})).status_code == 200


@pytest.mark.parametrize("body", [{}, {"messages": 1}, {"messages": ["a"]}, {"model": "gpt-4", "messages": ASKED}])
async def test_invalid_token_counts_are_refused(simulator: Simulator, http: httpx.AsyncClient, body: Any) -> None:
    """Missing or malformed messages and an unknown model are refused."""
    assert (await http.post(f"{simulator.glm_base_url}/tokenizer", json=body)).status_code == 400


async def test_search_returns_simulated_pages(simulator: Simulator, http: httpx.AsyncClient) -> None:
    """The search returns the requested number of simulated pages in the vendor's format. A query
    can contain directives.
    """
    url = f"{simulator.glm_base_url}/web_search"
    body = {"search_engine": "search_pro", "search_query": "moths", "count": 2}
    result = (await http.post(url, json=body)).json()
    assert result["simulated"] is True
    assert [page["title"] for page in result["search_result"]] == [
        "Simulated page 1 on moths",
        "Simulated page 2 on moths",
    ]
    assert (await http.post(url, json={"search_query": "moths"})).status_code == 400
    limited = await http.post(url, json={**body, "search_query": "moths [[sim:status=429 retry_after=3]]"})
    assert (limited.status_code, limited.headers["retry-after"]) == (429, "3")
    assert (await http.post(url, json={**body, "search_query": "[[sim:explode]]"})).status_code == 400
