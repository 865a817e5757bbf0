"""The contract of every vendor transport, plain and streamed: real SDKs and real HTTP against the simulator."""

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
"""Far longer than any of these tests takes, so that a hanging test fails."""

pytestmark = pytest.mark.asyncio(loop_scope="module")

PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUg=="
ECHO = FunctionTool("echo", "Say it again.", {"type": "object", "properties": {"text": {"type": "string"}}})


async def test_completion_has_text_model_finish_reason_and_usage(asker: "Asker") -> None:
    """Every SDK returns text, model, finish reason, usage and the simulator's mark. The text proves that the vendor
    received the prompt.
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
    assert 'you wrote 1 word beginning "Compare."' in completion.text
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


# Directive → the resulting error: class, executed, transient, and a part of the message.
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
    ("nested", ProviderError, "maybe", False, "not JSON: it is nested too deeply"),
]


@pytest.mark.parametrize(
    ("directives", "error", "executed", "transient", "words"), FAILURES, ids=[f[0] for f in FAILURES]
)
async def test_each_failure_has_its_own_error(
    asker: "Asker", directives: str, error: type[CallError], executed: str, transient: bool, words: str
) -> None:
    """Every vendor failure becomes one error that names the cause and the remedy. The request is not retried."""
    before = len(asker.bench.simulator.log)
    with pytest.raises(error) as caught:
        await asker.ask(f"Hello. [[sim:{directives}]]")
    assert type(caught.value) is error
    assert caught.value.executed == executed
    assert caught.value.transient is transient
    assert words in caught.value.message
    assert len(asker.bench.simulator.log) == min(before + 1, 200)


async def test_rate_limit_error_has_retry_after(asker: "Asker") -> None:
    """``Retry-After`` becomes ``retry_after_ms``."""
    with pytest.raises(RateLimitedError) as caught:
        await asker.ask("[[sim:status=429 retry_after=2.5]]")
    assert caught.value.retry_after_ms == 2500


async def test_response_without_choices_is_an_error(asker: "Asker") -> None:
    """JSON without choices raises an error and never produces an empty answer."""
    with pytest.raises((ProviderError, ServiceUnavailableError)) as caught:
        await asker.ask("[[sim:empty]]")
    assert caught.value.executed == "maybe"


async def test_interrupted_stream_is_an_error(streamer: "Asker") -> None:
    """A stream that ends early raises an error instead of returning a shorter answer."""
    with pytest.raises(ServiceUnavailableError) as caught:
        await streamer.ask("[[sim:break_after=4]]")
    assert caught.value.executed == "maybe"
    assert streamer.deltas


async def test_error_within_a_stream_is_mapped_by_its_code(streamer: "Asker") -> None:
    """An error in the middle of a stream is mapped by its code. The vendor may have executed the request."""
    code = "content_filter" if streamer.vendor == "kimi" else "1301"
    with pytest.raises(ProviderError, match="unsafe") as caught:
        await streamer.ask(f"[[sim:error_after=4 code={code}]]")
    assert caught.value.executed == "maybe"
    with pytest.raises(ProviderError, match="interrupted its answer with an error"):
        await streamer.ask("[[sim:error_after=4]]")


async def test_request_over_the_context_window_is_refused(asker: "Asker") -> None:
    """A request that the vendor finds too long raises CONTEXT_LENGTH_EXCEEDED."""
    with pytest.raises(ContextLengthExceededError):
        await asker.ask("word " * 1000)


async def test_wrong_key_error_names_the_setting_and_hides_the_key(bench: "Bench", route: tuple[str, str]) -> None:
    """The message names the setting to check. Neither the message nor any repr contains the key."""
    provider = bench.open(*route, key="wrong-0123456789abcdef.secret")
    with pytest.raises(ProviderError) as caught:
        await provider.complete(CompletionRequest(bench.model(route[0]), (Message("user", "Hi."),)), timeout_s=30)
    assert f"check {route[0].upper()}_API_KEY" in caught.value.message
    assert "0123456789abcdef" not in f"{caught.value!r} {provider!r} {vars(provider)}"


async def test_unreachable_vendor_executed_nothing(bench: "Bench", route: tuple[str, str]) -> None:
    """A refused connection raises SERVICE_UNAVAILABLE with executed ``no``."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    provider = bench.open(*route, base_url=f"http://127.0.0.1:{port}/v1")
    with pytest.raises(ServiceUnavailableError) as caught:
        await provider.complete(CompletionRequest(bench.model(route[0]), (Message("user", "Hi."),)), timeout_s=30)
    assert caught.value.executed == "no"
    assert "cannot be reached" in caught.value.message


async def test_hung_call_ends_at_the_deadline(asker: "Asker") -> None:
    """A vendor that never answers causes a TIMEOUT at the deadline, and the connection is closed."""
    with pytest.raises(CallTimeoutError) as caught:
        await asker.ask("[[sim:hang]]", timeout_s=0.1)
    assert caught.value.executed == "maybe"
    assert "0.1 s" in caught.value.message
    await asker.bench.until_in_flight(asker.vendor, 0)


async def test_slow_stream_ends_at_the_deadline(streamer: "Asker") -> None:
    """Chunks that keep arriving do not extend the deadline, and the reported silence stays short."""
    with pytest.raises(CallTimeoutError) as caught:
        await streamer.ask("[[sim:stream_delay=0.02 say=" + "on and " * 500 + "on]]", timeout_s=0.6)
    assert streamer.deltas
    assert (caught.value.details or {})["silent_s"] < 0.6
    await streamer.bench.until_in_flight(streamer.vendor, 0)


async def test_stalled_stream_ends_at_the_deadline(streamer: "Asker") -> None:
    """A vendor that stops sending after some chunks also causes a TIMEOUT."""
    with pytest.raises(CallTimeoutError):
        await streamer.ask("[[sim:hang_after=4]]", timeout_s=0.6)
    assert streamer.deltas
    await streamer.bench.until_in_flight(streamer.vendor, 0)


async def test_attempt_ends_at_the_timeout_of_the_model(asker: "Asker") -> None:
    """A model's ``timeout_s`` limits one attempt, regardless of how much time the call has."""
    prompt = "[[sim:hang_after=2]]" if asker.streamed else "[[sim:hang]]"
    with pytest.raises(CallTimeoutError) as caught:
        await asker.ask(prompt, timeout_s=8, kind="hasty")
    assert "within 0.2 s" in caught.value.message
    await asker.bench.until_in_flight(asker.vendor, 0)


async def test_cancelling_closes_the_connection_to_the_vendor(asker: "Asker") -> None:
    """A cancelled call raises CancelledError after its work has ended, and the vendor then runs no request."""
    asking = asyncio.create_task(asker.ask("[[sim:hang_after=4]]" if asker.streamed else "[[sim:hang]]"))
    await asker.bench.until_in_flight(asker.vendor, 1)
    if asker.streamed:
        await asker.until_heard()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await asker.bench.until_in_flight(asker.vendor, 0)


async def test_cancel_at_any_moment_leaves_no_request_running(asker: "Asker") -> None:
    """A call that is cancelled at any moment is either answered or cancelled, and no request keeps running.

    The test cancels after each of the first loop iterations: while connecting, sending, waiting, reading, closing.
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


async def test_simultaneous_deadline_and_http_timeout_close_the_connection(asker: "Asker") -> None:
    """The deadline of the call and the HTTP timeout can expire at the same instant. In either order the call is a
    TIMEOUT and the vendor runs no request.
    """

    async def timed_out(timeout_s: float) -> None:
        with pytest.raises(CallTimeoutError):
            await asker.ask("[[sim:hang]]", timeout_s=timeout_s)

    async with asyncio.timeout(PATIENCE_S):
        for _ in range(8):
            await asyncio.gather(*(timed_out(0.02 + 0.0007 * number) for number in range(4)))
    await asker.bench.until_in_flight(asker.vendor, 0)


async def test_unsupported_requests_are_never_sent(asker: "Asker") -> None:
    """A request that the model does not support is refused before the vendor receives it."""
    before = len(asker.bench.simulator.log)
    with pytest.raises(InvalidArgumentsError, match="does not accept images"):
        await asker.ask(Message("user", (ImagePart(PIXEL),)))
    assert len(asker.bench.simulator.log) == before


async def test_sdks_retry_only_if_another_attempt_fits(bench: "Bench") -> None:
    """If the time allows it, each SDK retries a failed request and reports the retry. Plain HTTP does not retry."""

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
