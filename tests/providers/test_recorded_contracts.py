"""Each preset's documented requests and answers (``tests/contracts``), over real HTTP, with the SDK and without."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from tests.providers.recorded_vendor import (
    CONTRACTS,
    SDKS,
    RecordedVendor,
    ask_recorded,
    open_recorded,
    recorded_request,
)
from toold.protocol.error_codes import CallError
from toold.protocol.tool_call import Cost, Usage
from toold.providers import (
    DIALECTS,
    EmbeddingRequest,
    OpenProvider,
    ProviderTerms,
    VendorProvider,
    follow_up,
    preset_models,
)
from toold.providers.openai_compatible import compatible_body

CASES = [(preset, name) for preset, contract in CONTRACTS.items() for name in contract["cases"]]
FIELDS = {"preset", "model", "source", "date", "not_read_there", "cases"}
KINDS = {"completion", "stream", "tool_call", "tool_call_stream", "rate_limit"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def vendor() -> AsyncIterator[RecordedVendor]:
    async with RecordedVendor() as vendor:
        yield vendor


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def providers(vendor: RecordedVendor) -> AsyncIterator[dict[tuple[str, str], VendorProvider]]:
    opened: dict[tuple[str, str], VendorProvider] = {}
    yield opened
    for provider in opened.values():
        await provider.close()


def test_every_preset_has_a_contract() -> None:
    """With the pages of what it says, their date, what is not from them, and each kind of answer."""
    assert set(CONTRACTS) == set(DIALECTS)
    for preset, contract in CONTRACTS.items():
        assert set(contract) - {"embeddings", "details"} == FIELDS, preset
        assert contract["source"], preset
        assert set(contract["cases"]) >= KINDS, preset


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("sdk", SDKS)
@pytest.mark.parametrize(("preset", "name"), CASES, ids=[f"{preset}-{name}" for preset, name in CASES])
async def test_recorded_answer_is_read(
    vendor: RecordedVendor, providers: dict[tuple[str, str], VendorProvider], preset: str, name: str, sdk: str
) -> None:
    """The request has exactly the documented fields, and the answer becomes the completion or error."""
    contract = CONTRACTS[preset]
    case: dict[str, Any] = contract["cases"][name]
    provider = providers.setdefault((preset, sdk), open_recorded(preset, sdk, vendor.base_url))
    request = recorded_request(preset, contract["model"], case["request"])
    stream = bool(case["request"].get("stream"))
    vendor.record(case)
    try:
        answered = await ask_recorded(provider, request, stream=stream)
    except CallError as error:
        _check_error(error, case.get("error", {}))
    else:
        _check_completion(answered.completion, case["expect"])
        if stream:
            assert "".join(delta.text for delta in answered.deltas) == case["expect"]["text"]
        if "sent_back" in case["expect"]:
            turns = follow_up(request.messages, answered.completion, dict.fromkeys(_ids(answered.completion), "1"))
            assert turns is not None
            body = compatible_body(_continued(request, turns), stream=False, dialect=DIALECTS[preset])
            assert body["messages"][1]["tool_calls"][0]["extra_content"] == case["expect"]["sent_back"]
    headers, sent = vendor.requests[-1]
    assert headers["authorization"] == "Bearer sk-recorded-0123456789"
    fields = {key: value for key, value in sent.items() if key not in {"messages", "tools"}}
    assert fields == {"model": contract["model"], "stream": stream, **case["sent"]}


EMBEDDINGS = [
    (preset, name)
    for preset, contract in CONTRACTS.items()
    for name in contract.get("embeddings", {"cases": ()})["cases"]
]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("sdk", SDKS)
@pytest.mark.parametrize(("preset", "name"), EMBEDDINGS, ids=[f"{preset}-{name}" for preset, name in EMBEDDINGS])
async def test_recorded_embeddings_are_read(
    vendor: RecordedVendor, providers: dict[tuple[str, str], VendorProvider], preset: str, name: str, sdk: str
) -> None:
    """The request has exactly the documented fields; the vectors have the inputs' order and the requested form."""
    case: dict[str, Any] = CONTRACTS[preset]["embeddings"]["cases"][name]
    provider = providers.setdefault((preset, sdk), open_recorded(preset, sdk, vendor.base_url))
    wanted = case["request"]
    terms = ProviderTerms(dialect=DIALECTS[preset], catalog=preset_models(preset))
    inputs = tuple(tuple(item) if isinstance(item, list) else item for item in wanted["inputs"])
    request = EmbeddingRequest(
        OpenProvider(preset, terms).model(wanted["model"]),
        inputs,
        wanted.get("dimensions"),
        wanted.get("encoding", "float"),
    )
    vendor.record(case)
    try:
        answer = await provider.embed(request, timeout_s=30)
    except CallError as error:
        _check_error(error, case.get("error", {}))
    else:
        expected = case["expect"]
        assert list(answer.vectors) == expected["vectors"]
        assert (answer.dimensions, answer.usage) == (2, Usage(*expected["usage"]))
        assert answer.cost == (Cost(*expected["cost"]) if "cost" in expected else None)
    assert vendor.requests[-1][1] == {"model": wanted["model"], **case["sent"]}


def _continued(request: Any, turns: Any) -> Any:
    return type(request)(request.model, turns)


def _ids(completion: Any) -> list[str]:
    return [call.id for call in completion.tool_calls]


def _check_completion(completion: Any, expected: dict[str, Any]) -> None:
    assert completion.text == expected["text"]
    assert completion.finish_reason == expected["finish_reason"]
    assert completion.reasoning == expected.get("reasoning", "")
    assert completion.usage == (None if expected["usage"] is None else Usage(*expected["usage"]))
    assert completion.cost == (Cost(*expected["cost"]) if "cost" in expected else None)
    calls = [[call.id, call.name, json.loads(call.arguments)] for call in completion.tool_calls]
    assert calls == expected.get("calls", [])


def _check_error(error: CallError, expected: dict[str, Any]) -> None:
    assert expected, error
    assert error.code == expected["code"]
    assert expected["says"] in error.message
    assert error.transient is expected.get("transient", error.transient)
    assert error.executed == expected.get("executed", "no")
    assert error.retry_after_ms == expected.get("retry_after_ms")
