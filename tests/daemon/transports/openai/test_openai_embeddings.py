"""``POST /v1/embeddings``, used with the ``openai`` SDK over real HTTP, with simulated vendors."""

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from tests.waiting import until
from toold.daemon.access import change_tokens
from toold.daemon.app import Daemon
from toold.protocol.tool_call import LOCAL
from toold.providers.simulator import Simulator

TEXTS = ["A cat sat on a mat.", "A cat sat on the mat.", "Prices rise."]


@pytest.fixture
async def vendor() -> AsyncIterator[Simulator]:
    async with Simulator(providers=("acme", "spare")) as vendor:
        yield vendor


@pytest.fixture
async def daemon(run_with: Any, vendor: Simulator) -> Daemon:
    env = {"TOOLD_SIMULATE": "false", "GLM_API_KEY": "sim-key", "GLM_BASE_URL": vendor.glm_base_url}
    for name in ("acme", "spare"):
        table = {"BASE_URL": vendor.base_url(name), "API_KEY": "sim-key", "SDK": "http"}
        env |= {f"TOOLD_PROVIDERS__{name.upper()}__{setting}": value for setting, value in table.items()}
    started: Daemon = await run_with(**env)
    return started


@pytest.fixture
async def client(daemon: Daemon) -> AsyncIterator[AsyncOpenAI]:
    key = (daemon.settings.state_dir / "token").read_text().strip()
    http = DefaultAsyncHttpxClient(trust_env=False)
    base_url = f"http://127.0.0.1:{daemon.http.port}/v1"
    async with AsyncOpenAI(api_key=key, base_url=base_url, http_client=http, max_retries=0) as client:
        yield client


def cosine(first: list[float], second: list[float]) -> float:
    """Of vectors of length 1."""
    return sum(a * b for a, b in zip(first, second, strict=True))


async def test_embeddings_of_texts_and_tokens(daemon: Daemon, vendor: Simulator, client: AsyncOpenAI) -> None:
    """The SDK gets one vector per input in both encodings, with the usage and what toold adds; the call
    is in the audit, and the caller's ``user`` is not sent.
    """
    by_default = await client.embeddings.create(model="embedding-3", input=TEXTS, user="ada")  # base64
    floats = await client.embeddings.create(model="embedding-3", input=TEXTS, encoding_format="float")
    assert [item.index for item in floats.data] == [0, 1, 2]
    assert [item.embedding for item in by_default.data] == [item.embedding for item in floats.data]
    cat, same, other = (item.embedding for item in floats.data)
    assert cosine(cat, same) > 0.6 > cosine(cat, other)
    assert floats.usage.prompt_tokens == floats.usage.total_tokens > 0
    assert (floats.model, floats.model_extra["toold"]["provider"]) == ("embedding-3", "glm")  # type: ignore[index]
    raw = await client.embeddings.with_raw_response.create(model="acme/small", input=[[1, 2], [3]], dimensions=4)
    assert [len(item.embedding) for item in raw.parse().data] == [4, 4]
    ended = (await daemon.view.ended(LOCAL, 1))[0]
    assert (ended["tool"], ended["transport"], ended["id"]) == ("embed", "openai", raw.headers["x-request-id"])
    bodies = [request.body for request in vendor.requests if request.operation == "embeddings"]
    assert {"user", "encoding_format"}.isdisjoint(bodies[0])
    assert bodies[-1] == {"model": "small", "input": [[1, 2], [3]], "dimensions": 4}


async def test_failover_and_a_repeated_key(vendor: Simulator, client: AsyncOpenAI) -> None:
    """The answer names the provider that answered instead; a repeated request gets the stored answer."""
    ask: Any = client.embeddings.create
    vendor.plan("acme", "embeddings", "status=503")
    replaced = await ask(model="acme/small", input="Hello.", extra_body={"fallback": ["spare/small"]})
    report = replaced.model_extra["toold"]
    assert (replaced.model, report["provider"]) == ("spare/small", "spare")
    assert report["fallback"][0]["code"] == "SERVICE_UNAVAILABLE"
    key = {"Idempotency-Key": "k"}
    first, repeat = [await ask(model="embedding-3", input="Hello.", extra_headers=key) for _ in range(2)]
    assert (repeat.data, repeat.model_extra["toold"]["replayed"]) == (first.data, True)
    with pytest.raises(openai.ConflictError):
        await ask(model="embedding-3", input="Bye.", extra_headers=key)


async def test_errors(daemon: Daemon, client: AsyncOpenAI) -> None:
    """What is wrong is named in OpenAI's form; a token whose toolsets lack the tool gets 403."""
    ask: Any = client.embeddings.create
    chat: Any = client.chat.completions.create
    bad = openai.BadRequestError
    wrong: list[tuple[Any, dict[str, Any], type[openai.APIStatusError], str]] = [
        (ask, {"model": "glm-4.6", "input": "a"}, bad, "embedding-3"),
        (ask, {"model": "embeding-3", "input": "a"}, openai.NotFoundError, "did you mean"),
        (ask, {"model": "embedding-3", "input": ["a", ""]}, bad, "item 1 is empty"),
        (ask, {"model": "embedding-3", "input": []}, bad, "is empty; it must have"),
        (ask, {"model": "qzx", "input": "a"}, openai.NotFoundError, "'qzx'; GET /v1/models lists them"),
        (ask, {"model": "embedding-3", "input": [1]}, bad, "send texts"),
        (ask, {"model": "embedding-3", "input": "a", "extra_body": {"dimension": 2}}, bad, "dimensions"),
        (ask, {"model": "embedding-3", "input": "a", "dimensions": 9_999}, bad, "from 1 to"),
        (ask, {"model": "embedding-3", "input": "[[sim:status=429]]"}, openai.RateLimitError, "rate limit"),
        (chat, {"model": "embedding-3", "messages": [{"role": "user", "content": "a"}]}, bad, "not completions"),
    ]
    for call, arguments, error, says in wrong:
        with pytest.raises(error, match=says):
            await call(**arguments)
    created: list[str] = []

    def add(book: Any) -> Any:
        book, token = book.with_new("cas", 1.0, toolsets=("lean",))
        created.append(token)
        return book

    change_tokens(daemon.settings.state_dir, add)
    await until(lambda: len(daemon.tokens.book.tokens) == 1)
    with pytest.raises(openai.PermissionDeniedError, match="the tool embed"):
        await client.with_options(api_key=created[0]).embeddings.create(model="embedding-3", input="a")
    assert "embedding-3" in [model.id async for model in client.models.list()]
