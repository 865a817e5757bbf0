"""A small language model on this machine, served by llama.cpp, as a vendor of the daemon."""

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr
from tests.peers.conftest import PEERS, require
from tests.peers.test_peers import PROGRAMS
from toold.protocol.error_codes import CallError, ContextLengthExceededError, ProviderError
from toold.providers import (
    KIMI,
    CompletionRequest,
    Delta,
    EmbeddingRequest,
    FunctionTool,
    JsonFormat,
    Message,
    OpenProvider,
    VendorAccess,
    VendorInfo,
    VendorProvider,
    build_compatible,
)
from toold.testing import daemon_under_test

pytestmark = pytest.mark.large_peer
KEY = "sk-local-0123456789"
START_S = 120.0
SCHEMA = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}},
    "required": ["colour"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def base_url(starts_processes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of llama.cpp's server with SmolLM2 135M."""
    with local_server(tmp_path_factory.mktemp("llama") / "log") as url:
        yield url


@contextmanager
def local_server(log: Path, *arguments: str) -> Iterator[str]:
    require("llama")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(PEERS / "llama/bin/python"), str(PROGRAMS / "llama.py"), str(port), *arguments]
    with log.open("wb") as output:
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output)
    try:
        _wait_until_ready(server, f"http://127.0.0.1:{port}/health", log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.communicate(timeout=60)


def _wait_until_ready(server: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and server.poll() is None:
        try:
            if httpx.get(url, trust_env=False, timeout=5).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError(log.read_text(errors="replace"))


def provider_at(base_url: str, sdk: str, key: str = KEY) -> VendorProvider:
    info = VendorInfo(
        name="local", label="local", key_setting="k", lists_all=False, base_url=base_url, attempt_timeout_s=100,
        concurrency=1, sdks=KIMI.sdks,
    )  # fmt: skip
    access = VendorAccess(api_key=SecretStr(key), base_url=base_url, limit=1, simulated=True)
    return build_compatible(info, access, sdk)


@pytest.mark.parametrize("sdk", ["openai", "http"])
async def test_a_local_model_answers(base_url: str, sdk: str) -> None:
    """Plain and streamed, with usage and JSON by a schema; a wrong key and a long prompt have their errors."""
    provider = provider_at(base_url, sdk)
    model = OpenProvider("local").model("smollm2")

    def asked(prompt: str, **fields: object) -> CompletionRequest:
        return CompletionRequest(model, (Message("user", prompt),), temperature=0, max_tokens=24, **fields)  # type: ignore[arg-type]

    try:
        assert await provider.models.ids(timeout_s=60) == ("smollm2",)
        question = "What is the capital of France?"
        plain = await provider.complete(asked(question), timeout_s=90)
        assert plain.text
        assert plain.usage is not None
        assert 0 < plain.usage.output_tokens <= 24
        deltas: list[Delta] = []
        streamed = await provider.complete(
            asked("What is the capital of France?"), timeout_s=90, on_delta=deltas.append
        )
        assert len(deltas) > 3
        assert "".join(delta.text for delta in deltas) == streamed.text
        assert (streamed.text, streamed.finish_reason) == (plain.text, plain.finish_reason)
        assert streamed.usage is not None
        formed = await provider.complete(asked("A colour?", response_format=JsonFormat(SCHEMA)), timeout_s=90)
        assert json.loads(formed.text)["colour"] in {"red", "blue"}
        with pytest.raises(ContextLengthExceededError):
            await provider.complete(asked("word " * 5_000), timeout_s=90)
    finally:
        await provider.close()
    stranger = provider_at(base_url, sdk, "sk-wrong")
    try:
        with pytest.raises(ProviderError, match="rejected the API key"):
            await stranger.complete(asked("Hello."), timeout_s=90)
    finally:
        await stranger.close()


async def test_functions_are_sent_although_the_server_ignores_them(base_url: str) -> None:
    """The chat template of this model has no place for functions: the answer is a text, also if a call is required."""
    provider = provider_at(base_url, "openai")
    weather = FunctionTool("weather", "The weather in a city.", {"type": "object", "properties": {}})
    request = CompletionRequest(
        OpenProvider("local").model("smollm2"),
        (Message("user", "What is the weather in Oslo? Use the tool."),),
        temperature=0,
        max_tokens=32,
        tools=(weather,),
        tool_choice="required",
    )
    completion = await provider.complete(request, timeout_s=90)
    await provider.close()
    assert completion.text
    assert completion.tool_calls == ()


async def test_a_local_server_makes_embeddings(base_url: str, tmp_path: Path) -> None:
    """A server that was started for them makes vectors in both encodings; the other one refuses, and is not retried."""
    model = OpenProvider("local").model("smollm2")
    with local_server(tmp_path / "log", "embeddings") as url:
        for sdk in ("openai", "http"):
            provider = provider_at(url, sdk)
            answer = await provider.embed(EmbeddingRequest(model, ("A cat.", "A dog.")), timeout_s=90)
            assert (len(answer.vectors), answer.dimensions) == (2, 576)
            assert answer.usage is not None
            tokens = await provider.embed(EmbeddingRequest(model, ((1, 2, 3),), encoding="base64"), timeout_s=90)
            assert isinstance(tokens.vectors[0], str)
            await provider.close()
    refusing = provider_at(base_url, "http")
    with pytest.raises(ProviderError, match="does not support embeddings"):
        await refusing.embed(EmbeddingRequest(model, ("A cat.",)), timeout_s=90)
    await refusing.close()


async def test_the_daemon_asks_a_local_model(base_url: str) -> None:
    """A chat by two settings, with the vendor's count of tokens and without a cost; an unknown model is its error."""
    env = {"TOOLD_PROVIDERS__LOCAL__BASE_URL": base_url, "TOOLD_PROVIDERS__LOCAL__API_KEY": KEY}
    async with daemon_under_test(env=env) as daemon:
        asked = {"prompt": "What is the capital of France?", "model": "local/smollm2", "max_tokens": 16}
        answer = await daemon.client.call("chat", asked)
        assert answer.structured["provider"] == "local"
        assert answer.text
        assert answer.metadata.usage is not None
        assert answer.metadata.usage.input_tokens > 0
        assert answer.metadata.usage.estimated is False
        assert answer.metadata.cost is None
        with pytest.raises(CallError):
            await daemon.client.call("chat", {**asked, "prompt": "word " * 5_000})
