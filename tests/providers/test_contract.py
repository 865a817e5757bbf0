"""Every SDK call in use, against the simulator and, with ``make test-live``, against the vendors.

The simulator is useful only if the vendors answer alike. These tests therefore request only what all of them support
and check the format of the answers.
"""

import base64
import json
import os
import struct
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from pydantic import SecretStr
from toold.protocol.error_codes import CallError
from toold.providers import (
    ESTIMATE_ERROR,
    GLM,
    KIMI,
    Completion,
    CompletionRequest,
    Delta,
    FunctionTool,
    ImagePart,
    JsonFormat,
    Message,
    Model,
    ModelCatalog,
    SearchQuery,
    TextPart,
    VendorAccess,
    VendorProvider,
    WebSearch,
    build_glm,
    build_kimi,
    extracted_text,
    follow_up,
    functions_wanted,
)
from toold.providers.simulator import SIMULATOR_KEY, Simulator

pytestmark = pytest.mark.asyncio(loop_scope="module")

TIMEOUT_S = 300.0
MODELS = {"kimi": "kimi-k2.6", "glm": "glm-4.6"}
"""Cheap models that can switch thinking and use the vendor's web search."""
SEEING = {"kimi": "kimi-k2.6", "glm": "glm-4.6v-flash"}
BASE_URLS = {vendor.name: vendor.base_url for vendor in (KIMI, GLM)}
ROUTES = [("kimi", "openai"), ("kimi", "http"), ("glm", "zhipuai"), ("glm", "zai"), ("glm", "http")]

ADD = FunctionTool(
    "add",
    "Add two integers.",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
)
VERDICT = {
    "type": "object",
    "properties": {
        "severity": {"type": "string", "enum": ["low", "high"]},
        "line": {"type": "integer"},
        "reasons": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["severity", "line", "reasons"],
    "additionalProperties": False,
}


@dataclass
class Side:
    """One vendor over one vendor transport, simulated or real."""

    vendor: str
    live: bool
    provider: VendorProvider
    catalog: ModelCatalog

    def model(self) -> Model:
        return self.catalog.resolve(MODELS[self.vendor])

    async def ask(self, prompt: str | tuple[Any, ...], **fields: Any) -> Completion:
        fields = {"model": self.model(), "messages": (Message("user", prompt),), "thinking": False, **fields}
        on_delta = fields.pop("on_delta", None)
        return await self.provider.complete(CompletionRequest(**fields), timeout_s=TIMEOUT_S, on_delta=on_delta)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def simulated() -> AsyncIterator[Simulator]:
    async with Simulator() as simulator:
        yield simulator


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="module",
    params=[(*route, False) for route in ROUTES]
    + [pytest.param((*route, True), marks=pytest.mark.live) for route in ROUTES],
    ids=lambda side: f"{side[0]}-{side[1]}-{'live' if side[2] else 'simulated'}",
)
async def side(request: pytest.FixtureRequest, simulated: Simulator) -> AsyncIterator[Side]:
    vendor, sdk, live = request.param
    setting = f"{vendor.upper()}_API_KEY"
    if live and not os.environ.get(setting):
        pytest.skip(f"{setting} is not set")
    here = simulated.kimi_base_url if vendor == "kimi" else simulated.glm_base_url
    there = os.environ.get(f"{vendor.upper()}_BASE_URL", BASE_URLS[vendor])
    key = os.environ[setting] if live else SIMULATOR_KEY
    access = VendorAccess(api_key=SecretStr(key), base_url=there if live else here, limit=4, simulated=not live)
    build: Any = build_kimi if vendor == "kimi" else build_glm
    provider: VendorProvider = build(access, sdk=sdk)
    yield Side(vendor, live, provider, ModelCatalog.load())
    await provider.close()


def picture() -> str:
    """A red square of 64 by 64 pixels, as a ``data:`` URL."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + b"\xff\0\0" * 64 for _ in range(64))
    header = struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(png).decode()


async def test_question_is_answered(side: Side) -> None:
    """The completion has text, finish reason, usage, the simulator's mark and headers."""
    completion = await side.ask("Say hello in one word.", max_tokens=100)
    assert completion.text
    assert completion.finish_reason == "stop"
    assert completion.usage is not None
    assert completion.usage.input_tokens > 0
    assert completion.reasoning == ""
    assert completion.simulated is not side.live
    assert "date" in completion.headers or "content-type" in completion.headers


async def test_streamed_pieces_equal_the_text(side: Side) -> None:
    """The streamed pieces add up to the text. Usage and headers are present."""
    deltas: list[Delta] = []
    completion = await side.ask("Count from 1 to 5.", on_delta=deltas.append, cache_key="contract")
    assert "".join(delta.text for delta in deltas) == completion.text != ""
    assert completion.usage is not None
    assert completion.headers


async def test_reasoning_is_separate_from_the_text(side: Side) -> None:
    """A model with a thinking switch either returns its reasoning separately or does not think."""
    deep = await side.ask("What is 17 times 3?", thinking="max")
    assert deep.reasoning
    assert deep.reasoning not in deep.text
    assert (await side.ask("What is 17 times 3?", thinking="minimal")).reasoning == ""


async def test_answer_matches_the_requested_schema(side: Side) -> None:
    """The answer matches the schema, whether the vendor enforces it or only reads it in the prompt."""
    request = "A program divides by zero in line 3. Judge it, and give two reasons."
    completion = await side.ask(request, response_format=JsonFormat(VERDICT, "verdict"))
    verdict = json.loads(completion.text)
    assert verdict["severity"] in ("low", "high")
    assert isinstance(verdict["line"], int)
    assert all(isinstance(reason, str) for reason in verdict["reasons"])


@pytest.mark.parametrize("thinking", [False, True])
async def test_function_call_is_completed(side: Side, thinking: bool) -> None:
    """The model calls the function, receives its result together with its own reasoning, and answers."""
    messages = (Message("user", "Use the add tool to add 2 and 3, then say the sum."),)
    request = await side.ask("", messages=messages, tools=(ADD,), thinking=thinking)
    wanted = functions_wanted(request)
    assert [call.name for call in wanted] == ["add"]
    assert isinstance(json.loads(wanted[0].arguments), dict)
    turns = follow_up(messages, request, {wanted[0].id: "5"})
    assert turns is not None
    answered = await side.ask("", messages=turns, tools=(ADD,), thinking=thinking)
    assert "5" in answered.text


async def test_web_search_within_a_conversation(side: Side) -> None:
    """GLM searches on its own and returns what it found. Kimi requests the search and continues after its call is sent
    back.
    """
    messages: tuple[Message, ...] = (Message("user", "Search the web: what is the newest stable Python version?"),)
    rounds = 0
    while True:
        completion = await side.ask("", messages=messages, tools=(WebSearch(),))
        rounds += 1
        turns = follow_up(messages, completion)
        if turns is None or rounds > 5:
            break
        messages = turns
    assert completion.text
    if side.vendor == "kimi":
        assert 2 <= rounds <= 5
    else:
        assert rounds == 1
        assert all(result.link.startswith("http") and result.content for result in completion.search_results)
        assert completion.search_results


async def test_image_reaches_the_model(side: Side) -> None:
    """A ``data:`` URL reaches the model."""
    model = side.catalog.resolve(SEEING[side.vendor])
    completion = await side.ask((TextPart("Which colour is this?"), ImagePart(picture())), model=model)
    assert ("red" if side.live else "1 image attached") in completion.text.lower()


async def test_models_are_listed(side: Side) -> None:
    """The list of model ids contains the model that these tests use."""
    assert MODELS[side.vendor] in await side.provider.models.ids(timeout_s=TIMEOUT_S)


async def test_tokens_are_counted_by_the_vendor(side: Side) -> None:
    """The vendor counts the tokens, and the local estimate is within its stated error."""
    assert side.provider.tokens is not None
    text = "The quick brown fox jumps over the lazy dog. 敏捷的棕色狐狸跳过了懒狗。 for i in range(10): print(i)\n" * 20
    request = CompletionRequest(side.model(), (Message("user", text),))
    counted = await side.provider.tokens.count(request, timeout_s=TIMEOUT_S)
    assert (counted.counted_by, counted.error, counted.simulated) == ("vendor", 0.0, not side.live)
    estimate = side.provider.tokens.estimate(request)
    assert (estimate.counted_by, estimate.error) == ("estimate", ESTIMATE_ERROR)
    assert counted.tokens > 0
    if side.live:  # the simulator counts differently
        assert abs(counted.tokens - estimate.tokens) <= estimate.error * estimate.tokens


async def test_file_lifecycle_at_the_vendor(side: Side) -> None:
    """A file can be uploaded, listed, inspected, downloaded and deleted. After that the list no longer contains it."""
    files = side.provider.files
    assert files is not None
    kimi = side.vendor == "kimi"
    purpose = "file-extract" if kimi else "batch"
    name = "grüße.txt" if kimi else "questions.jsonl"
    content = ("Ein Wort: Rhabarber." if kimi else '{"custom_id": "1", "method": "POST", "body": {}}\n').encode()
    sent = await files.upload(name, content, purpose, timeout_s=TIMEOUT_S)
    try:
        assert (sent.name, sent.bytes, sent.purpose) == (name, len(content), purpose)
        assert sent.created_at > 0
        listed = await files.list(timeout_s=TIMEOUT_S, purpose=purpose)
        assert sent.id in [file.id for file in listed.files]
        if kimi:
            assert (await files.info(sent.id, timeout_s=TIMEOUT_S)).id == sent.id
        fetched = await files.content(sent.id, timeout_s=TIMEOUT_S)
        assert "Rhabarber" in extracted_text(fetched) if kimi else fetched == content
    finally:
        await files.delete(sent.id, timeout_s=TIMEOUT_S)
    assert sent.id not in [file.id for file in (await files.list(timeout_s=TIMEOUT_S, purpose=purpose)).files]


async def test_missing_file_is_refused(side: Side) -> None:
    """A missing file is an error with executed ``no``, and an id cannot lead to another path."""
    assert side.provider.files is not None
    for file_id in ("no-such-file", "../models", "a/b?c=d"):
        with pytest.raises(CallError) as caught:
            await side.provider.files.content(file_id, timeout_s=TIMEOUT_S)
        assert caught.value.executed == "no"


async def test_web_search_without_a_model(side: Side) -> None:
    """GLM returns at most the requested number of pages, with titles, addresses and text. Kimi has no such search."""
    if side.provider.search is None:
        assert side.vendor == "kimi"
        return
    query = SearchQuery(query="Python release schedule", count=3, recency="oneYear", content_size="medium")
    answer = await side.provider.search.search(query, timeout_s=TIMEOUT_S)
    assert 1 <= len(answer.results) <= 3
    assert all(result.title and result.link.startswith("http") and result.content for result in answer.results)
    assert answer.simulated is not side.live
