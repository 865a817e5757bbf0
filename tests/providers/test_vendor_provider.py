"""The contract that every road keeps, plain and streamed: real SDKs and real HTTP against the simulator."""

import asyncio
import contextlib
import json
import socket
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from toold.protocol.error_codes import (
    CallError,
    CallTimeoutError,
    ContextLengthExceededError,
    InvalidArgumentsError,
    ProviderError,
    RateLimitedError,
    ServiceUnavailableError,
)
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
    count_sdk_retries,
    follow_up,
)

if TYPE_CHECKING:
    from tests.providers.conftest import Asker, Bench

PATIENCE_S = 30.0
"""Far more than anything here takes, so that what hangs fails."""

pytestmark = pytest.mark.asyncio(loop_scope="module")

PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUg=="
ECHO = FunctionTool("echo", "Say it again.", {"type": "object", "properties": {"text": {"type": "string"}}})


async def test_an_answer_says_who_answered_and_why_it_stopped(asker: "Asker") -> None:
    """Text, model, finish reason and usage come back, the text proves that the prompt was read, and the simulator's
    mark comes through every SDK.
    """
    completion = await asker.ask("How are you today?")
    assert completion.text == (
        f'Simulated answer from {asker.vendor}-plain: you wrote 4 words beginning "How are you today?".'
    )
    assert completion.model == f"{asker.vendor}-plain"
    assert completion.simulated
    assert completion.finish_reason == "stop"
    assert completion.usage is not None
    assert completion.usage.input_tokens == 5
    assert completion.usage.output_tokens > 0


async def test_streamed_pieces_are_the_answer(asker: "Asker") -> None:
    """What was streamed, put together, is the text and the reasoning of the completion; plain calls stream nothing."""
    completion = await asker.ask("Think.", kind="full", thinking=True)
    assert completion.reasoning == "Simulated reasoning about 1 word."
    if asker.streamed:
        assert "".join(delta.text for delta in asker.deltas) == completion.text
        assert "".join(delta.reasoning for delta in asker.deltas) == completion.reasoning
        assert len(asker.deltas) > 5
    else:
        assert asker.deltas == []


async def test_usage_counts_cached_and_reasoning_tokens_and_costs(asker: "Asker") -> None:
    """Cached and reasoning tokens are read where the vendor gives them, and the cost follows the list price."""
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
async def test_thinking_is_switched(asker: "Asker", thinking: bool) -> None:
    """``thinking`` reaches the vendor, and decides whether there is reasoning."""
    completion = await asker.ask(kind="full", thinking=thinking)
    assert asker.sent["thinking"] == {"type": "enabled" if thinking else "disabled"}
    assert bool(completion.reasoning) is thinking


async def test_what_is_left_out_is_not_sent(asker: "Asker") -> None:
    """Temperature, bound, tools and thinking are the vendor's where the caller names none."""
    await asker.ask(kind="full")
    for field in ("temperature", "max_tokens", "max_completion_tokens", "tools", "thinking"):
        assert asker.sent.get(field) is None  # the zhipuai SDK spells some of them null


async def test_temperature_and_bound_reach_the_vendor(asker: "Asker") -> None:
    """The bound cuts the answer, which then says ``length``; the temperature is sent as it is."""
    completion = await asker.ask(temperature=0.5, max_tokens=5)
    assert asker.sent["temperature"] == 0.5
    assert completion.finish_reason == "length"
    assert len(completion.text) == 20


async def test_files_stand_before_the_last_question(asker: "Asker") -> None:
    """Attached files are read by the model, names and all, and no system message is made of them."""
    files = (AttachedFile('a "b".py', "import os\nprint()\n"), AttachedFile("c.md", "# Title"))
    completion = await asker.ask("Compare.", files=files)
    assert (
        '2 files attached: a "b".py (2 lines, first line "import os"); c.md (1 line, first line "# Title")'
        in completion.text
    )
    assert 'you wrote 1 word beginning "Compare."' in completion.text
    assert [message["role"] for message in asker.sent["messages"]] == ["user"]


async def test_images_reach_the_vendor(asker: "Asker") -> None:
    """A data: URL is sent in the vendor's own form: whole to Kimi, bare base64 to GLM."""
    completion = await asker.ask(Message("user", (TextPart("What is it?"), ImagePart(PIXEL))), kind="full")
    assert "1 image attached" in completion.text
    url = asker.sent["messages"][0]["content"][1]["image_url"]["url"]
    assert url == (PIXEL if asker.vendor == "kimi" else PIXEL.split(",")[1])


async def test_tool_calls_come_back_whole(asker: "Asker") -> None:
    """A tool that the model asks for comes with id, name and JSON arguments, however it was cut into pieces."""
    completion = await asker.ask('[[sim:tool=echo args={"text": "grüß dich"}]]', tools=(ECHO,))
    assert completion.finish_reason == "tool_calls"
    (call,) = completion.tool_calls
    assert call.id.startswith("call_")
    assert call.name == "echo"
    assert json.loads(call.arguments) == {"text": "grüß dich"}
    assert asker.sent["tools"][0]["function"]["name"] == "echo"


async def test_a_tools_answer_goes_back(asker: "Asker") -> None:
    """The conversation goes on with the call, its reasoning and the tool's answer."""
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


# Directive → what the caller gets: class, executed, transient, and a piece of the message.
FAILURES: list[tuple[str, type[CallError], str, bool, str]] = [
    ("status=401", ProviderError, "no", False, "rejected the API key; check "),
    ("status=403", ProviderError, "no", False, "HTTP 403"),
    ("status=400", ProviderError, "no", False, "HTTP 400"),
    ("status=429", RateLimitedError, "no", True, "rate limit exceeded"),
    ("status=429 code=exceeded_current_quota_error", RateLimitedError, "no", False, "top it up"),
    ("status=429 code=1113", RateLimitedError, "no", False, "top it up"),
    ("status=500", ServiceUnavailableError, "maybe", True, "HTTP 500"),
    ("status=503", ServiceUnavailableError, "maybe", True, "HTTP 503"),
    ("too_long", ContextLengthExceededError, "no", False, "larger window"),
    ("filter", ProviderError, "no", False, "unsafe"),
    ("withhold", ProviderError, "yes", False, "withheld its answer"),
    ("garbage", ProviderError, "maybe", False, "not JSON"),
]


@pytest.mark.parametrize(("wish", "error", "executed", "transient", "words"), FAILURES, ids=[f[0] for f in FAILURES])
async def test_failures_are_told_apart(
    asker: "Asker", wish: str, error: type[CallError], executed: str, transient: bool, words: str
) -> None:
    """Every failure of the vendor becomes the one error that says what it was and what to do; nothing is retried."""
    before = len(asker.bench.simulator.log)
    with pytest.raises(error) as caught:
        await asker.ask(f"Hello. [[sim:{wish}]]")
    assert type(caught.value) is error
    assert caught.value.executed == executed
    assert caught.value.transient is transient
    assert words in caught.value.message
    assert len(asker.bench.simulator.log) == min(before + 1, 200)


async def test_a_rate_limit_says_when_to_come_back(asker: "Asker") -> None:
    """``Retry-After`` becomes ``retry_after_ms``."""
    with pytest.raises(RateLimitedError) as caught:
        await asker.ask("[[sim:status=429 retry_after=2.5]]")
    assert caught.value.retry_after_ms == 2500


async def test_an_answer_without_choices_is_not_an_answer(asker: "Asker") -> None:
    """JSON that has no choices is refused as not understood, or, streamed, as broken off; never an empty answer."""
    with pytest.raises((ProviderError, ServiceUnavailableError)) as caught:
        await asker.ask("[[sim:empty]]")
    assert caught.value.executed == "maybe"


async def test_a_connection_that_breaks_is_not_an_answer(streamer: "Asker") -> None:
    """A stream that ends in the middle is an error, not a shorter answer."""
    with pytest.raises(ServiceUnavailableError) as caught:
        await streamer.ask("[[sim:break_after=4]]")
    assert caught.value.executed == "maybe"
    assert streamer.deltas


async def test_an_error_within_a_stream_is_told_apart(streamer: "Asker") -> None:
    """A vendor that refuses in the middle of its answer gets the error of its code; it may have executed something."""
    code = "content_filter" if streamer.vendor == "kimi" else "1301"
    with pytest.raises(ProviderError, match="unsafe") as caught:
        await streamer.ask(f"[[sim:error_after=4 code={code}]]")
    assert caught.value.executed == "maybe"
    with pytest.raises(ProviderError, match="interrupted its answer with an error"):
        await streamer.ask("[[sim:error_after=4]]")


async def test_a_request_over_the_window_is_refused_as_such(asker: "Asker") -> None:
    """What the vendor finds too long is CONTEXT_LENGTH_EXCEEDED, with advice."""
    with pytest.raises(ContextLengthExceededError):
        await asker.ask("word " * 1000)


async def test_a_wrong_key_is_named_by_its_setting_and_never_shown(bench: "Bench", road: tuple[str, str]) -> None:
    """The message names the setting to check; neither it nor any repr holds the key."""
    provider = bench.open(*road, key="wrong-0123456789abcdef.secret")
    with pytest.raises(ProviderError) as caught:
        await provider.complete(CompletionRequest(bench.model(road[0]), (Message("user", "Hi."),)), timeout_s=30)
    assert f"check {road[0].upper()}_API_KEY" in caught.value.message
    assert "0123456789abcdef" not in f"{caught.value!r} {provider!r} {vars(provider)}"


async def test_a_vendor_that_cannot_be_reached_executed_nothing(bench: "Bench", road: tuple[str, str]) -> None:
    """A refused connection is SERVICE_UNAVAILABLE, executed ``no``."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    provider = bench.open(*road, base_url=f"http://127.0.0.1:{port}/v1")
    with pytest.raises(ServiceUnavailableError) as caught:
        await provider.complete(CompletionRequest(bench.model(road[0]), (Message("user", "Hi."),)), timeout_s=30)
    assert caught.value.executed == "no"
    assert "cannot be reached" in caught.value.message


async def test_a_hung_vendor_ends_at_the_deadline(asker: "Asker") -> None:
    """A vendor that never answers is a TIMEOUT when the time is over, and its connection is closed then."""
    with pytest.raises(CallTimeoutError) as caught:
        await asker.ask("[[sim:hang]]", timeout_s=0.1)
    assert caught.value.executed == "maybe"
    assert "0.1 s" in caught.value.message
    await asker.bench.until_in_flight(asker.vendor, 0)


async def test_a_stream_that_trickles_ends_at_the_deadline(streamer: "Asker") -> None:
    """Chunks that keep coming do not push the deadline, and are no reason to think the vendor dead."""
    with pytest.raises(CallTimeoutError) as caught:
        await streamer.ask("[[sim:stream_delay=0.02 say=" + "on and " * 500 + "on]]", timeout_s=0.6)
    assert streamer.deltas
    assert (caught.value.details or {})["silent_s"] < 0.6
    await streamer.bench.until_in_flight(streamer.vendor, 0)


async def test_a_stream_that_stops_midway_ends_at_the_deadline(streamer: "Asker") -> None:
    """A vendor that hangs after some chunks is a TIMEOUT too."""
    with pytest.raises(CallTimeoutError):
        await streamer.ask("[[sim:hang_after=4]]", timeout_s=0.6)
    assert streamer.deltas
    await streamer.bench.until_in_flight(streamer.vendor, 0)


async def test_one_attempt_ends_at_the_models_own_time(asker: "Asker") -> None:
    """A model's ``timeout_s`` bounds one attempt, however much time the call has."""
    prompt = "[[sim:hang_after=2]]" if asker.streamed else "[[sim:hang]]"
    with pytest.raises(CallTimeoutError) as caught:
        await asker.ask(prompt, timeout_s=8, kind="hasty")
    assert "within 0.2 s" in caught.value.message
    await asker.bench.until_in_flight(asker.vendor, 0)


async def test_cancelling_closes_the_vendors_connection(asker: "Asker") -> None:
    """A cancelled call raises CancelledError once its work has ended, and nothing runs at the vendor after."""
    asking = asyncio.create_task(asker.ask("[[sim:hang_after=4]]" if asker.streamed else "[[sim:hang]]"))
    await asker.bench.until_in_flight(asker.vendor, 1)
    if asker.streamed:
        await asker.until_heard()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await asker.bench.until_in_flight(asker.vendor, 0)


async def test_no_instant_of_a_cancel_leaves_the_vendor_at_work(asker: "Asker") -> None:
    """Whatever a call is about to do when it is cancelled, it is answered or cancelled, and nothing is left running.

    A cancel after each of the first turns of the loop comes upon connecting, sending, waiting, reading and closing.
    """

    async def cancelled_after(turns: int, prompt: str) -> None:
        asking = asyncio.create_task(asker.ask(prompt))
        for _ in range(turns):
            await asyncio.sleep(0)
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            assert (await asking).text

    async with asyncio.timeout(PATIENCE_S):
        for turns in range(50):
            await cancelled_after(turns, "[[sim:hang]]")
            await cancelled_after(2 * turns, "Hello.")
    await asker.bench.until_in_flight(asker.vendor, 0)


async def test_a_deadline_that_meets_the_https_time_out_closes_the_connection(asker: "Asker") -> None:
    """An attempt may take as long as the call: then both end in one instant, and in whichever order they come to act
    the call is a TIMEOUT and nothing runs at the vendor any more.
    """

    async def timed_out(timeout_s: float) -> None:
        with pytest.raises(CallTimeoutError):
            await asker.ask("[[sim:hang]]", timeout_s=timeout_s)

    async with asyncio.timeout(PATIENCE_S):
        for _ in range(8):
            await asyncio.gather(*(timed_out(0.02 + 0.0007 * number) for number in range(4)))
    await asker.bench.until_in_flight(asker.vendor, 0)


async def test_what_the_model_cannot_do_is_never_sent(asker: "Asker") -> None:
    """An impossible request is refused by name before the vendor sees it."""
    before = len(asker.bench.simulator.log)
    with pytest.raises(InvalidArgumentsError, match="does not accept images"):
        await asker.ask(Message("user", (ImagePart(PIXEL),)))
    assert len(asker.bench.simulator.log) == before


async def test_sdks_retry_only_where_a_further_attempt_fits(bench: "Bench") -> None:
    """With time for it each SDK repeats a failed request, and each repeat is told; plain HTTP, which has no retries of
    its own, does not.
    """

    async def attempts(vendor: str, sdk: str) -> int:
        marker, repeats = f"{vendor} over {sdk}", list[int]()
        asking = CompletionRequest(bench.model(vendor), (Message("user", f"{marker} [[sim:status=500]]"),))
        with pytest.raises(ServiceUnavailableError), count_sdk_retries(lambda: repeats.append(1)):
            await bench.open(vendor, sdk).complete(asking, timeout_s=69)
        seen = sum(marker in str(seen.body) for seen in bench.simulator.log)
        assert len(repeats) == seen - 1
        return seen

    counts = await asyncio.gather(
        attempts("kimi", "openai"), attempts("glm", "zhipuai"), attempts("glm", "zai"), attempts("glm", "http")
    )
    assert list(counts) == [2, 2, 2, 1]


async def test_a_depth_reaches_the_vendor(asker: "Asker") -> None:
    """A model with degrees is asked for one of them, whatever the SDK knows of it."""
    completion = await asker.ask("Think well.", kind="deep", thinking="low")
    assert asker.sent["reasoning_effort"] == "low"
    assert asker.sent.get("thinking") is None
    assert completion.reasoning == "Simulated reasoning about 2 words at effort low."


async def test_what_a_preview_shows_is_what_is_sent(asker: "Asker") -> None:
    """Field by field; the SDKs add none but empty ones."""
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


async def test_what_the_web_search_found_comes_with_the_answer(asker: "Asker") -> None:
    """GLM's pages, whole or streamed; with Kimi the search is a call that has to come back."""
    completion = await asker.ask("News?", kind="full", tools=(WebSearch(),))
    if asker.vendor == "glm":
        assert [result.reference for result in completion.search_results] == ["ref_1", "ref_2", "ref_3"]
        assert completion.search_results[0].link == "https://example.com/simulated/1"
        return
    (call,) = completion.tool_calls
    assert (call.name, completion.finish_reason) == ("$web_search", "tool_calls")
    asked = (Message("user", "News?"),)
    answered = await asker.ask(messages=follow_up(asked, completion), kind="full", tools=(WebSearch(),))
    assert "The web was searched 1 time." in answered.text
    assert asker.sent["messages"][1]["tool_calls"][0]["type"] == "builtin_function"
    assert asker.sent["messages"][2]["name"] == "$web_search"


async def test_headers_come_with_the_answer(asker: "Asker") -> None:
    """Those of the request and its cache, without the account's."""
    earlier = (Message("user", "x" * 400), Message("assistant", "y" * 40), Message("user", "And now?"))
    completion = await asker.ask(messages=earlier)
    if asker.vendor == "kimi":
        assert completion.headers["msh-context-cache-token-saved"] == "110"
        assert completion.headers["msh-request-id"].startswith("sim-")
        assert completion.headers["msh-uid"] == "…"
    else:
        assert completion.headers["x-log-id"].startswith("sim-")


async def test_a_thinking_models_reasoning_has_to_come_back(asker: "Asker") -> None:
    """Kimi refuses a tool's result without the reasoning that led to its call; with it the answer comes."""
    asked = (Message("user", "Use the echo tool."),)
    completion = await asker.ask(messages=asked, kind="full", thinking=True, tools=(ECHO,))
    assert completion.reasoning
    turns = follow_up(asked, completion, {completion.tool_calls[0].id: "echoed"})
    assert turns is not None
    answered = await asker.ask(messages=turns, kind="full", thinking=True, tools=(ECHO,))
    assert 'A tool answered "echoed"' in answered.text
    if asker.vendor == "kimi":
        forgetful = tuple(replace(turn, reasoning="") for turn in turns)
        with pytest.raises(ProviderError, match="reasoning_content is missing"):
            await asker.ask(messages=forgetful, kind="full", thinking=True, tools=(ECHO,))
