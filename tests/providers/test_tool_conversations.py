"""Conversations in which a model calls several tools per turn, over every vendor transport."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, Literal

import pytest
import pytest_asyncio
from pydantic import SecretStr
from toold.protocol.error_codes import InvalidArgumentsError
from toold.providers import (
    Completion,
    CompletionRequest,
    FunctionTool,
    Message,
    Model,
    ModelCatalog,
    OpenProvider,
    ToolInvocation,
    VendorAccess,
    VendorInfo,
    build_compatible,
    build_glm,
    build_kimi,
    follow_up,
)
from toold.providers.completion_parsing import CompletionAssembly, read_answer
from toold.providers.simulator import SIMULATOR_KEY, Simulator

from .conftest import ROUTES

pytestmark = pytest.mark.asyncio(loop_scope="module")

DEEP = VendorInfo(
    name="deep", label="Deep", key_setting="api_key", lists_all=False, base_url="", attempt_timeout_s=25, concurrency=4
)
TOOLS = tuple(FunctionTool(name, "Does.", {"type": "object"}) for name in ("add", "log"))
SCRIPT = [
    {"text": "Two.", "calls": [{"name": "add", "arguments": {"n": 1}}, {"name": "log", "arguments": {"n": 2}}]},
    {"calls": [{"name": "log", "arguments": {"n": 3}}, {"name": "log", "arguments": {"n": 3}}]},
    {"text": "Done."},
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def simulator(catalog: ModelCatalog) -> AsyncIterator[Simulator]:
    async with Simulator(catalog=catalog, providers=["deep"]) as simulator:
        yield simulator


@pytest_asyncio.fixture(
    scope="module", loop_scope="module", params=[*ROUTES, ("deep", "openai"), ("deep", "http")], ids="-".join
)
async def provider(simulator: Simulator, request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    vendor, sdk = request.param
    access = VendorAccess(
        api_key=SecretStr(SIMULATOR_KEY), base_url=simulator.base_url(vendor), limit=4, simulated=True
    )
    builders: dict[str, Any] = {"kimi": build_kimi, "glm": build_glm}
    provider = builders[vendor](access, sdk=sdk) if vendor in builders else build_compatible(DEEP, access, sdk)
    yield provider
    await provider.close()


@pytest.fixture
def model(provider: Any, catalog: ModelCatalog) -> Model:
    if provider.name == "deep":
        return OpenProvider("deep").model("any")
    return catalog.resolve(f"{provider.name}-full")


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
async def test_several_calls_per_turn(provider: Any, model: Model, simulator: Simulator, streamed: bool) -> None:
    """A conversation of three turns, two of them with two calls each: each call has its own id, the results may be in
    any order, and Kimi's thinking models get their reasoning back.
    """

    async def turn(messages: tuple[Message, ...]) -> Completion:
        thinking = None if model.thinking == "none" else True
        request = CompletionRequest(model, messages, tools=TOOLS, thinking=thinking)
        completion = await provider.complete(request, timeout_s=30, on_delta=(lambda _: None) if streamed else None)
        assert isinstance(completion, Completion)
        return completion

    messages: tuple[Message, ...] = (Message("user", f"Go. [[sim:script={json.dumps(SCRIPT)}]]"),)
    seen = []
    for _ in range(2):
        completion = await turn(messages)
        calls = completion.tool_calls
        assert completion.finish_reason == "tool_calls"
        assert len({call.id for call in calls}) == 2
        seen += [(call.name, json.loads(call.arguments)) for call in calls]
        turns = follow_up(messages, completion, {call.id: f"result {call.id}" for call in calls})
        assert turns is not None
        messages = (*turns[:-2], turns[-1], turns[-2])
    assert (await turn(messages)).text == "Done."
    assert seen == [("add", {"n": 1}), ("log", {"n": 2}), ("log", {"n": 3}), ("log", {"n": 3})]
    sent = simulator.log[-1].body["messages"]
    assert [message["role"] for message in sent] == ["user", *["assistant", "tool", "tool"] * 2]
    assert [message["content"] for message in sent[1:2]] == ["Two."]
    assert [bool(sent[index].get("reasoning_content")) for index in (1, 4)] == [provider.name != "deep"] * 2


async def test_an_unpaired_conversation_is_not_sent(provider: Any, model: Model, simulator: Simulator) -> None:
    """A call without its result, or a result without its call, is an error that names the message."""
    asked, called = Message("user", "Add."), Message("assistant", "", (ToolInvocation("a", "add", "{}"),))
    result = Message("tool", "1", tool_call_id="a")
    before = len(simulator.log)
    for messages, words in (
        ((asked, called), r"messages\[2\]: the results of these calls must come first: 'a'"),
        ((asked, called, asked, result), r"messages\[2\]: the results"),
        ((asked, result), r"messages\[1\]: no earlier call waits"),
        ((asked, called, result, result), r"messages\[3\]: no earlier call waits"),
    ):
        with pytest.raises(InvalidArgumentsError, match=words):
            await provider.complete(CompletionRequest(model, messages, tools=TOOLS), timeout_s=30)
    assert len(simulator.log) == before


@pytest.mark.parametrize("choice", ["none", "required"])
async def test_the_choice_reaches_every_vendor(
    provider: Any, model: Model, choice: Literal["none", "required"]
) -> None:
    """It is sent or, where the vendor has no such value, replaced or refused; never ignored."""
    plain = replace(model, thinking="none")
    request = CompletionRequest(plain, (Message("user", "Add."),), tools=TOOLS, tool_choice=choice)
    if provider.name == "glm" and choice == "required":
        with pytest.raises(InvalidArgumentsError, match="GLM decides whether"):
            provider.preview(request)
        return
    body = provider.preview(request)
    assert ("tools" not in body) if provider.name == "glm" else (body["tool_choice"] == choice)


async def test_what_a_vendor_wants_back_is_sent_back(catalog: Any) -> None:
    """The thought signature that Gemini sends with a call returns with it; other vendors get no such field."""
    model, extra = catalog.resolve("kimi-plain"), {"google": {"thought_signature": "c2ln"}}
    calls: list[Any] = [{"id": name, "function": {"name": name, "arguments": "{}"}} for name in ("add", "log")]
    calls[0]["extra_content"] = extra
    plain = read_answer({"choices": [{"message": {"tool_calls": calls}, "finish_reason": "stop"}]}, model)
    assembly = CompletionAssembly(model)
    for index, call in enumerate(calls):
        assembly.add({"choices": [{"delta": {"tool_calls": [{**call, "index": index}]}, "finish_reason": "stop"}]})
    assert assembly.completion().tool_calls == plain.tool_calls
    turns = follow_up((Message("user", "Add."),), plain, {"add": "1", "log": "2"})
    access = VendorAccess(api_key=SecretStr("none"), base_url="http://127.0.0.1:9/v1", limit=1)
    assert turns is not None
    body = build_compatible(DEEP, access, "http").preview(CompletionRequest(model, turns))
    sent = body["messages"][1]["tool_calls"]
    assert (sent[0]["extra_content"], "extra_content" in sent[1]) == (extra, False)
