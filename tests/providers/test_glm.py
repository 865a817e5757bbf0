"""GLM specifics: its SDK threads and its request format."""

import asyncio
from typing import TYPE_CHECKING

import pytest
from toold.protocol.error_codes import InvalidArgumentsError
from toold.providers import CompletionRequest, Delta, FunctionTool, JsonFormat, Message, SearchQuery, WebSearch
from toold.providers.glm import glm_body, search_body, search_engine

if TYPE_CHECKING:
    from tests.providers.conftest import Bench

pytestmark = pytest.mark.asyncio(loop_scope="module")

SDKS = ["zhipuai", "zai"]


def asking(bench: "Bench", prompt: str) -> CompletionRequest:
    return CompletionRequest(bench.model("glm"), (Message("user", prompt),))


@pytest.mark.parametrize("sdk", SDKS)
async def test_concurrency_is_limited_by_the_threads(bench: "Bench", sdk: str) -> None:
    """With two threads, six calls get their own answers, and at most two run at once."""
    provider = bench.open("glm", sdk, limit=2)
    before = bench.simulator.peak("glm")
    answers = await asyncio.gather(
        *(provider.complete(asking(bench, f"number {i} [[sim:delay=0.02]]"), timeout_s=30) for i in range(6))
    )
    assert [f"number {i}" in answer.text for i, answer in enumerate(answers)] == [True] * 6
    assert bench.simulator.peak("glm") <= max(2, before)


@pytest.mark.parametrize("sdk", SDKS)
async def test_cancelled_call_frees_its_thread(bench: "Bench", sdk: str) -> None:
    """The loop keeps running while the SDK waits. After a cancel the only thread serves the next call."""
    provider = bench.open("glm", sdk, limit=1)
    hung = asyncio.create_task(provider.complete(asking(bench, "[[sim:hang]]"), timeout_s=1000))
    await bench.until_in_flight("glm", 1)
    hung.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hung
    assert "number" in (await provider.complete(asking(bench, "a number"), timeout_s=30)).text


@pytest.mark.parametrize("sdk", SDKS)
async def test_nothing_is_streamed_after_a_cancel(bench: "Bench", sdk: str) -> None:
    """After ``complete`` has raised, no further piece reaches the reader."""
    deltas: list[Delta] = []
    provider = bench.open("glm", sdk)
    prompt = "[[sim:stream_delay=0.001 say=" + "on and " * 300 + "]]"
    running = asyncio.create_task(
        provider.complete(asking(bench, prompt), timeout_s=30, on_delta=deltas.append),
    )
    async with asyncio.timeout(30):
        while not deltas:
            await asyncio.sleep(0.001)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    count = len(deltas)
    await bench.until_in_flight("glm", 0)
    await asyncio.sleep(0)
    assert len(deltas) == count


@pytest.mark.parametrize("sdk", SDKS)
async def test_close_does_not_wait_for_hung_calls(bench: "Bench", sdk: str) -> None:
    """``close`` returns while a thread is busy, and the call can still be cancelled."""
    provider = bench.open("glm", sdk, limit=3)
    hung = asyncio.create_task(provider.complete(asking(bench, "[[sim:hang]]"), timeout_s=1000))
    await bench.until_in_flight("glm", 1)
    await provider.close()
    hung.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hung
    await bench.until_in_flight("glm", 0)


async def test_glm_names_the_token_limit_max_tokens(bench: "Bench") -> None:
    """``max_tokens`` limits the answer, and a stream has usage without requesting it."""
    body = glm_body(CompletionRequest(bench.model("glm"), (Message("user", "Hi."),), max_tokens=7), stream=True)
    assert body["max_tokens"] == 7
    assert "stream_options" not in body


async def test_glm_web_search_sends_its_settings(bench: "Bench") -> None:
    """Settings that are None are omitted, and the found pages are requested."""
    search = WebSearch(query="news", count=3, recency="oneWeek", domain="a.test")
    request = CompletionRequest(bench.model("glm", "full"), (Message("user", "News?"),), tools=(search,))
    assert glm_body(request, stream=False)["tools"] == [
        {
            "type": "web_search",
            "web_search": {
                "enable": True,
                "search_engine": "search_pro",
                "search_result": True,
                "search_query": "news",
                "count": 3,
                "search_recency_filter": "oneWeek",
                "search_domain_filter": "a.test",
            },
        }
    ]


async def test_glm_refuses_web_search_together_with_functions(bench: "Bench") -> None:
    """GLM would silently ignore one of the two, so the combination is refused."""
    tools = (WebSearch(), FunctionTool("f", "Does.", {"type": "object"}))
    request = CompletionRequest(bench.model("glm", "full"), (Message("user", "News?"),), tools=tools)
    with pytest.raises(InvalidArgumentsError, match="not both"):
        glm_body(request, stream=False)


async def test_glm_schema_is_part_of_the_system_message(bench: "Bench") -> None:
    """GLM enforces only JSON, so the schema is appended to the system message."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    for messages, words in (
        ((Message("user", "Hi."),), ""),
        ((Message("system", "Be brief."), Message("user", "Hi.")), "Be brief.\n\n"),
    ):
        request = CompletionRequest(bench.model("glm", "full"), messages, response_format=JsonFormat(schema))
        body = glm_body(request, stream=False)
        assert body["response_format"] == {"type": "json_object"}
        assert [message["role"] for message in body["messages"]] == ["system", "user"]
        assert body["messages"][0]["content"].startswith(f"{words}Answer with one JSON object")
        assert '"properties": {"a": {"type": "string"}}' in body["messages"][0]["content"]


@pytest.mark.parametrize(
    ("base_url", "engine"),
    [
        ("https://open.bigmodel.cn/api/paas/v4", "search_pro"),
        ("https://api.z.ai/api/paas/v4", "search-prime"),
        ("https://z.ai/api", "search-prime"),
        ("https://xyz.ai.test/z.ai", "search_pro"),
        ("http://127.0.0.1:9/glm", "search_pro"),
    ],
)
async def test_each_platform_has_its_own_search_engine(base_url: str, engine: str) -> None:
    """Zhipu's platforms have different engine names, and the base URL decides which one is used."""
    assert search_engine(base_url) == engine


async def test_search_body_has_the_required_fields() -> None:
    """Engine and intent are always sent because the vendor refuses a search without them."""
    assert search_body(SearchQuery(query="news"), engine="e") == {
        "search_engine": "e",
        "search_query": "news",
        "search_intent": False,
    }
    whole = SearchQuery(query="news", count=3, recency="oneDay", domain="a.test", content_size="high")
    assert search_body(whole, engine="e") == {
        "search_engine": "e",
        "search_query": "news",
        "search_intent": False,
        "count": 3,
        "search_recency_filter": "oneDay",
        "search_domain_filter": "a.test",
        "content_size": "high",
    }
