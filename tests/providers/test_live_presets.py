"""A preset's vendor for real: ``make test-live PROVIDER=openai``, with the key in the preset's variable."""

import json
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from tests.providers.recorded_vendor import CONTRACTS, SDKS, open_recorded, recorded_request
from toold.protocol.error_codes import ProviderError
from toold.providers import DIALECTS, PRESETS, CompletionRequest, Delta, VendorProvider

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.live]

PRESET = os.environ.get("PROVIDER", "")
MODEL = os.environ.get("MODEL") or (CONTRACTS[PRESET]["model"] if PRESET in CONTRACTS else "")
TIMEOUT_S = 300.0


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=SDKS)
async def provider(request: pytest.FixtureRequest) -> AsyncIterator[VendorProvider]:
    if not PRESET:
        pytest.skip("PROVIDER names no preset: make test-live PROVIDER=openai [MODEL=…] [BASE_URL=…]")
    assert PRESET in PRESETS, f"PROVIDER={PRESET} is not a preset; presets: {', '.join(PRESETS)}"
    preset = PRESETS[PRESET]
    key = os.environ.get(preset.key_variable or "", "") or (
        "unused" if preset.own_server or not preset.key_variable else ""
    )
    if not key:
        pytest.skip(f"{preset.key_variable} is not set")
    provider = open_recorded(PRESET, request.param, os.environ.get("BASE_URL") or preset.base_url, key)
    yield provider
    await provider.close()


def asked(prompt: str, **wanted: Any) -> CompletionRequest:
    return recorded_request(PRESET, MODEL, {"prompt": prompt, **wanted})


async def test_completion_and_stream(provider: VendorProvider) -> None:
    """Both have text, a finish reason and usage, and the pieces add up."""
    plain = await provider.complete(asked("Say hello in one word.", max_tokens=2_000), timeout_s=TIMEOUT_S)
    assert (bool(plain.text), plain.finish_reason) == (True, "stop")
    deltas: list[Delta] = []
    prompt = "Count from 1 to 5."
    streamed = await provider.complete(asked(prompt), timeout_s=TIMEOUT_S, on_delta=deltas.append)
    assert "".join(delta.text for delta in deltas) == streamed.text
    for completion in (plain, streamed):
        assert completion.usage is not None
        assert completion.usage.input_tokens > 0


async def test_tool_call_in_both_ways(provider: VendorProvider) -> None:
    """The call has a name, an id and JSON arguments."""
    for on_delta in (None, lambda _: None):
        request = asked("What is the weather in Oslo? Use the tool.", tools=True)
        completion = await provider.complete(request, timeout_s=TIMEOUT_S, on_delta=on_delta)
        assert completion.finish_reason == "tool_calls"
        assert completion.tool_calls[0].name == "weather"
        assert "Oslo" in json.loads(completion.tool_calls[0].arguments)["city"]


async def test_json_by_a_schema(provider: VendorProvider) -> None:
    """The answer fits the schema, where the vendor enforces one."""
    if DIALECTS[PRESET].structured == "none":
        pytest.skip(f"{PRESET} does not enforce JSON")
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    request = asked("The capital of Norway, in JSON.", schema={**schema, "additionalProperties": False})
    completion = await provider.complete(request, timeout_s=TIMEOUT_S)
    assert json.loads(completion.text)["city"]


async def test_wrong_key_and_unknown_model(provider: VendorProvider) -> None:
    """Both are errors that say so; local servers may accept any key."""
    with pytest.raises(ProviderError, match=r"HTTP 4|does not exist|not found"):
        await provider.complete(recorded_request(PRESET, "no-such-model", {}), timeout_s=TIMEOUT_S)
    if PRESETS[PRESET].key_variable is None or PRESETS[PRESET].own_server:
        return
    stranger = open_recorded(PRESET, "http", os.environ.get("BASE_URL") or PRESETS[PRESET].base_url, "sk-wrong-key")
    try:
        with pytest.raises(ProviderError, match="rejected the API key"):
            await stranger.complete(asked("Hello."), timeout_s=TIMEOUT_S)
    finally:
        await stranger.close()
