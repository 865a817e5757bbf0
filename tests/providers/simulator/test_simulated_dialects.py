"""The simulator in each preset's dialect, asked through the SDK and plain HTTP."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from pydantic import SecretStr
from toold.protocol.error_codes import CallError
from toold.providers import (
    DIALECTS,
    PRESETS,
    CompletionRequest,
    FunctionTool,
    JsonFormat,
    Message,
    OpenProvider,
    ProviderTerms,
    VendorAccess,
    VendorInfo,
    VendorProvider,
    build_compatible,
)
from toold.providers.simulator import SIMULATOR_KEY, Simulator

pytestmark = pytest.mark.asyncio(loop_scope="module")

ECHO = FunctionTool("echo", "Say it.", {"type": "object", "properties": {}})
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def simulator() -> AsyncIterator[Simulator]:
    async with Simulator(providers=PRESETS, presets={preset: preset for preset in PRESETS}) as simulator:
        yield simulator


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="module",
    params=[(preset, sdk) for preset in PRESETS for sdk in ("openai", "http")],
    ids="-".join,
)
async def provider(simulator: Simulator, request: pytest.FixtureRequest) -> AsyncIterator[VendorProvider]:
    preset, sdk = request.param
    url = simulator.base_url(preset)
    info = VendorInfo(
        name=preset, label=preset, key_setting="k", lists_all=False, base_url=url, attempt_timeout_s=60, concurrency=4
    )
    access = VendorAccess(api_key=SecretStr(SIMULATOR_KEY), base_url=url, limit=4, simulated=True)
    provider = build_compatible(info, access, sdk, dialect=DIALECTS[preset])
    yield provider
    await provider.close()


def question(preset: str, prompt: str = "Hello.", **fields: Any) -> CompletionRequest:
    model = OpenProvider(preset, ProviderTerms(dialect=DIALECTS[preset])).model("m")
    return CompletionRequest(model, (Message("user", prompt),), **fields)


async def test_every_dialect_answers_plain_and_streamed(provider: VendorProvider) -> None:
    """Text, thinking, usage and cost are the same in both ways, as far as the vendor sends them."""
    asked = question(provider.name, thinking=True, max_tokens=500)
    pieces: list[str] = []
    plain = await provider.complete(asked, timeout_s=30)
    streamed = await provider.complete(asked, timeout_s=30, on_delta=lambda delta: pieces.append(delta.text))
    assert plain.text == streamed.text == "".join(pieces)
    assert plain.text.startswith("Simulated answer")
    assert plain.simulated
    assert plain.usage == streamed.usage
    assert plain.usage is not None
    assert plain.usage.reasoning_tokens > 0
    assert plain.usage.output_tokens > plain.usage.reasoning_tokens
    assert plain.reasoning == streamed.reasoning
    assert bool(plain.reasoning) is (provider.name not in {"openai", "anthropic", "gemini"})
    assert (plain.cost is not None) is (provider.name in {"openrouter", "litellm"})
    silent = await provider.complete(question(provider.name, thinking=False), timeout_s=30)
    assert silent.usage is not None
    assert silent.usage.reasoning_tokens == 0


async def test_every_dialect_has_tools_json_and_errors(provider: VendorProvider) -> None:
    """A tool call, JSON output where the vendor has it, and the errors of its form."""
    called = await provider.complete(question(provider.name, "Use the echo tool.", tools=(ECHO,)), timeout_s=30)
    assert [call.name for call in called.tool_calls] == ["echo"]
    if DIALECTS[provider.name].structured != "none":
        answer = await provider.complete(question(provider.name, response_format=JsonFormat(SCHEMA)), timeout_s=30)
        assert '"a"' in answer.text
        free = await provider.complete(question(provider.name, response_format=JsonFormat()), timeout_s=30)
        assert free.text.startswith("{")
    for directives, code, words in (
        ("status=401", "PROVIDER_ERROR", "rejected the API key"),
        ("status=429 retry_after=2.5", "RATE_LIMITED", "rate limit exceeded"),
        ("status=503", "SERVICE_UNAVAILABLE", "HTTP 503"),
        ("too_long", "CONTEXT_LENGTH_EXCEEDED", "too long for the model"),
    ):
        with pytest.raises(CallError, match=words) as error:
            await provider.complete(question(provider.name, f"[[sim:{directives}]]"), timeout_s=30)
        assert error.value.code == code
        assert error.value.retry_after_ms == (2500 if "retry_after" in directives else None)
