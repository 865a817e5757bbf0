"""The simulator's answers beside chat and files."""

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
    async with httpx.AsyncClient(headers=headers, trust_env=False, timeout=30) as client:
        yield client


ASKED = [{"role": "user", "content": "x" * 40}]


async def test_tokens_are_counted_in_each_vendors_shape(simulator: Simulator, http: httpx.AsyncClient) -> None:
    """Kimi's estimate and GLM's tokenizer; tools count too."""
    kimi = f"{simulator.kimi_base_url}/tokenizers/estimate-token-count"
    glm = f"{simulator.glm_base_url}/tokenizer"
    assert (await http.post(kimi, json={"model": "kimi-plain", "messages": ASKED})).json()["data"] == {
        "total_tokens": 10
    }
    plain = (await http.post(glm, json={"model": "glm-plain", "messages": ASKED})).json()["usage"]["prompt_tokens"]
    tools = [{"type": "function", "function": {"name": "find"}}]
    more = (await http.post(glm, json={"model": "glm-plain", "messages": ASKED, "tools": tools})).json()["usage"]
    assert plain == 10 < more["prompt_tokens"]


async def test_a_count_obeys_no_directives_of_the_prompt(simulator: Simulator, http: httpx.AsyncClient) -> None:
    """They are meant for the chat that follows."""
    url = f"{simulator.kimi_base_url}/tokenizers/estimate-token-count"
    prompt = [{"role": "user", "content": "[[sim:status=500]]"}]
    assert (await http.post(url, json={"model": "kimi-plain", "messages": prompt})).status_code == 200


@pytest.mark.parametrize("body", [{}, {"messages": 1}, {"messages": ["a"]}, {"model": "gpt-4", "messages": ASKED}])
async def test_what_cannot_be_counted_is_refused(simulator: Simulator, http: httpx.AsyncClient, body: Any) -> None:
    """No messages, or a model that is not the vendor's."""
    assert (await http.post(f"{simulator.glm_base_url}/tokenizer", json=body)).status_code == 400


async def test_a_search_finds_simulated_pages(simulator: Simulator, http: httpx.AsyncClient) -> None:
    """As many as asked for, in the vendor's shape, plainly made up; a query may hold directives."""
    url = f"{simulator.glm_base_url}/web_search"
    body = {"search_engine": "search_pro", "search_query": "moths", "count": 2}
    found = (await http.post(url, json=body)).json()
    assert found["simulated"] is True
    assert [page["title"] for page in found["search_result"]] == [
        "Simulated page 1 on moths",
        "Simulated page 2 on moths",
    ]
    assert (await http.post(url, json={"search_query": "moths"})).status_code == 400
    limited = await http.post(url, json={**body, "search_query": "moths [[sim:status=429 retry_after=3]]"})
    assert (limited.status_code, limited.headers["retry-after"]) == (429, "3")
    assert (await http.post(url, json={**body, "search_query": "[[sim:explode]]"})).status_code == 400
