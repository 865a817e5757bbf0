"""The contract of every vendor transport, plain and streamed: real SDKs and real HTTP against the simulator."""

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from toold.protocol.error_codes import ContextLengthExceededError, InvalidArgumentsError, ProviderError
from toold.protocol.tool_call import Cost
from toold.providers import (
    AttachedFile,
    CompletionRequest,
    FunctionTool,
    ImagePart,
    JsonFormat,
    Message,
    TextPart,
    ToolInvocation,
    WebSearch,
    follow_up,
)

if TYPE_CHECKING:
    from tests.providers.conftest import Asker


pytestmark = pytest.mark.asyncio(loop_scope="module")


PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUg=="


ECHO = FunctionTool("echo", "Say it again.", {"type": "object", "properties": {"text": {"type": "string"}}})


async def test_completion_has_text_model_finish_reason_and_usage(asker: "Asker") -> None:
    """Every SDK returns text, model, finish reason, usage and the simulator's mark. The text proves that the vendor
    received the prompt.
    """
    completion = await asker.ask("How are you today?")
    assert completion.text == (
        f'Simulated answer from {asker.vendor}-plain: you wrote 4 words, beginning with "How are you today?".'
    )
    assert completion.model == f"{asker.vendor}-plain"
    assert completion.simulated
    assert completion.finish_reason == "stop"
    assert completion.usage is not None
    assert completion.usage.input_tokens == 5
    assert completion.usage.output_tokens > 0


async def test_streamed_pieces_add_up_to_the_completion(asker: "Asker") -> None:
    """The streamed pieces add up to the text and the reasoning of the completion. Plain calls stream nothing."""
    completion = await asker.ask("Think.", kind="full", thinking=True)
    assert completion.reasoning == "Simulated reasoning about 1 word."
    if asker.streamed:
        assert "".join(delta.text for delta in asker.deltas) == completion.text
        assert "".join(delta.reasoning for delta in asker.deltas) == completion.reasoning
        assert len(asker.deltas) > 5
    else:
        assert asker.deltas == []


async def test_usage_includes_cached_and_reasoning_tokens_and_cost(asker: "Asker") -> None:
    """Cached and reasoning tokens are read if the vendor reports them, and the cost follows the list price."""
    earlier = Message("user", "x" * 400)
    completion = await asker.ask(messages=(earlier, Message("assistant", "y" * 40), Message("user", "And now?")))
    assert completion.usage is not None
    assert completion.usage.cached_tokens == 110
    assert completion.cost == Cost(round((2 * 1.0 + 110 * 0.5 + completion.usage.output_tokens * 2.0) / 1e6, 9), "USD")
    thought = await asker.ask(kind="full", thinking=True)
    assert thought.usage is not None
    assert thought.usage.reasoning_tokens > 0
    assert thought.cost is None


@pytest.mark.parametrize("thinking", [True, False])
async def test_thinking_can_be_switched_on_and_off(asker: "Asker", thinking: bool) -> None:
    """``thinking`` reaches the vendor and decides whether the completion has reasoning."""
    completion = await asker.ask(kind="full", thinking=thinking)
    assert asker.sent["thinking"] == {"type": "enabled" if thinking else "disabled"}
    assert bool(completion.reasoning) is thinking


async def test_omitted_fields_are_not_sent(asker: "Asker") -> None:
    """Temperature, token limit, tools and thinking are not sent if the caller does not set them."""
    await asker.ask(kind="full")
    for field in ("temperature", "max_tokens", "max_completion_tokens", "tools", "thinking"):
        assert asker.sent.get(field) is None  # the zhipuai SDK spells some of them null


async def test_temperature_and_token_limit_reach_the_vendor(asker: "Asker") -> None:
    """The token limit truncates the answer, which then has the finish reason ``length``. The temperature is sent
    unchanged.
    """
    completion = await asker.ask(temperature=0.5, max_tokens=5)
    assert asker.sent["temperature"] == 0.5
    assert completion.finish_reason == "length"
    assert len(completion.text) == 20


async def test_files_precede_the_last_user_message(asker: "Asker") -> None:
    """Attached files reach the model with their names in the user message, not in a system message."""
    files = (AttachedFile('a "b".py', "import os\nprint()\n"), AttachedFile("c.md", "# Title"))
    completion = await asker.ask("Compare.", files=files)
    assert (
        '2 files attached: a "b".py (2 lines, first line "import os"); c.md (1 line, first line "# Title")'
        in completion.text
    )
    assert 'you wrote 1 word, beginning with "Compare."' in completion.text
    assert [message["role"] for message in asker.sent["messages"]] == ["user"]


async def test_images_reach_the_vendor(asker: "Asker") -> None:
    """A data: URL is sent in the vendor's form: complete to Kimi, bare base64 to GLM."""
    completion = await asker.ask(Message("user", (TextPart("What is it?"), ImagePart(PIXEL))), kind="full")
    assert "1 image attached" in completion.text
    url = asker.sent["messages"][0]["content"][1]["image_url"]["url"]
    assert url == (PIXEL if asker.vendor == "kimi" else PIXEL.split(",")[1])


async def test_tool_calls_are_complete(asker: "Asker") -> None:
    """A tool call has its id, name and JSON arguments, regardless of how the stream splits it."""
    completion = await asker.ask('[[sim:tool=echo args={"text": "grüß dich"}]]', tools=(ECHO,))
    assert completion.finish_reason == "tool_calls"
    (call,) = completion.tool_calls
    assert call.id.startswith("call_")
    assert call.name == "echo"
    assert json.loads(call.arguments) == {"text": "grüß dich"}
    assert asker.sent["tools"][0]["function"]["name"] == "echo"


async def test_tool_results_are_sent_to_the_model(asker: "Asker") -> None:
    """The next request contains the tool call, its reasoning and the tool's result."""
    call = ToolInvocation("call_1", "echo", '{"text": "hi"}')
    completion = await asker.ask(
        messages=(
            Message("user", "[[sim:tool=echo]]"),
            Message("assistant", "", tool_calls=(call,), reasoning="I should ask."),
            Message("tool", "hi there", tool_call_id="call_1"),
        ),
        tools=(ECHO,),
    )
    assert 'A tool answered "hi there"' in completion.text
    assert asker.sent["messages"][1]["reasoning_content"] == "I should ask."
    assert asker.sent["messages"][1]["tool_calls"][0]["function"] == {"name": "echo", "arguments": '{"text": "hi"}'}
    assert asker.sent["messages"][2]["tool_call_id"] == "call_1"


async def test_request_over_the_context_window_is_refused(asker: "Asker") -> None:
    """A request that the vendor finds too long raises CONTEXT_LENGTH_EXCEEDED."""
    with pytest.raises(ContextLengthExceededError):
        await asker.ask("word " * 1000)


async def test_unsupported_requests_are_never_sent(asker: "Asker") -> None:
    """A request that the model does not support is refused before the vendor receives it."""
    before = len(asker.bench.simulator.log)
    with pytest.raises(InvalidArgumentsError, match="does not accept images"):
        await asker.ask(Message("user", (ImagePart(PIXEL),)))
    assert len(asker.bench.simulator.log) == before


async def test_thinking_depth_reaches_the_vendor(asker: "Asker") -> None:
    """A model with several efforts receives the requested one over every SDK."""
    completion = await asker.ask("Think well.", kind="deep", thinking="low")
    assert asker.sent["reasoning_effort"] == "low"
    assert asker.sent.get("thinking") is None
    assert completion.reasoning == "Simulated reasoning about 2 words at effort low."


async def test_preview_equals_the_sent_body(asker: "Asker") -> None:
    """The preview equals the sent body. SDKs add only null fields."""
    request = CompletionRequest(
        asker.bench.model(asker.vendor, "full"),
        (Message("user", "Hello."),),
        temperature=0.5,
        max_tokens=50,
        thinking="max",
        response_format=JsonFormat({"type": "object", "properties": {}}),
        cache_key="c",
    )
    previewed = asker.provider.preview(request, stream=asker.streamed)
    await asker.provider.complete(request, timeout_s=30, on_delta=(lambda _: None) if asker.streamed else None)
    assert {key: value for key, value in asker.sent.items() if value is not None} == previewed
    with pytest.raises(InvalidArgumentsError):
        asker.provider.preview(replace(request, thinking="low"))


async def test_web_search_results_accompany_the_answer(asker: "Asker") -> None:
    """GLM returns the pages with the answer, plain or streamed. Kimi returns a tool call that the next request sends
    back.
    """
    completion = await asker.ask("News?", kind="full", tools=(WebSearch(),))
    if asker.vendor == "glm":
        assert [result.reference for result in completion.search_results] == ["ref_1", "ref_2", "ref_3"]
        assert completion.search_results[0].link == "https://example.com/simulated/1"
        return
    (call,) = completion.tool_calls
    assert (call.name, completion.finish_reason) == ("$web_search", "tool_calls")
    request = (Message("user", "News?"),)
    answered = await asker.ask(messages=follow_up(request, completion), kind="full", tools=(WebSearch(),))
    assert "The web was searched 1 time." in answered.text
    assert asker.sent["messages"][1]["tool_calls"][0]["type"] == "builtin_function"
    assert asker.sent["messages"][2]["name"] == "$web_search"


async def test_headers_accompany_the_answer(asker: "Asker") -> None:
    """The completion has the headers of the request and its cache, without account data."""
    earlier = (Message("user", "x" * 400), Message("assistant", "y" * 40), Message("user", "And now?"))
    completion = await asker.ask(messages=earlier)
    if asker.vendor == "kimi":
        assert completion.headers["msh-context-cache-token-saved"] == "110"
        assert completion.headers["msh-request-id"].startswith("sim-")
        assert completion.headers["msh-uid"] == "…"
    else:
        assert completion.headers["x-log-id"].startswith("sim-")


async def test_reasoning_is_required_with_tool_results(asker: "Asker") -> None:
    """Kimi refuses a tool result without the reasoning that led to the call, and accepts it with the reasoning."""
    request = (Message("user", "Use the echo tool."),)
    completion = await asker.ask(messages=request, kind="full", thinking=True, tools=(ECHO,))
    assert completion.reasoning
    turns = follow_up(request, completion, {completion.tool_calls[0].id: "echoed"})
    assert turns is not None
    answered = await asker.ask(messages=turns, kind="full", thinking=True, tools=(ECHO,))
    assert 'A tool answered "echoed"' in answered.text
    if asker.vendor == "kimi":
        forgetful = tuple(replace(turn, reasoning="") for turn in turns)
        with pytest.raises(ProviderError, match="reasoning_content is missing"):
            await asker.ask(messages=forgetful, kind="full", thinking=True, tools=(ECHO,))
