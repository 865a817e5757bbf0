"""Provider limits: permits, circuit breaker, and requests that outlive their caller."""

import asyncio
import gc
import time
from typing import Any

import pytest
from toold.daemon.dispatch.usage_meter import UsageMeter
from toold.fairness import Permits, RunPermit
from toold.protocol.error_codes import ErrorCode, InvalidArgumentsError, ProviderError, ServiceUnavailableError
from toold.protocol.tool_call import Principal
from toold.providers import CompletionRequest, Message, OnDelta


def scripted(text: str = "hi") -> Any:
    async def script(request: CompletionRequest, on_delta: OnDelta | None) -> str:
        await asyncio.sleep(0)
        return text

    return script


async def test_a_completion_meters_its_time_tokens_and_provider(make_harness: Any) -> None:
    """The answer's metadata has its cost."""
    harness = make_harness(providers={"kimi": (scripted(), 6)})
    result = await harness.call(harness.session(), "a", "ask")
    assert result.outputs[0].text == "hi"
    assert (result.metadata.provider, result.metadata.usage.output_tokens) == ("kimi", 5)
    assert result.metadata.simulated
    assert result.metadata.timings.provider_ms > 0


async def test_at_most_the_limit_reach_the_vendor(make_harness: Any) -> None:
    """With a limit of 2, six calls run at most two at a time, and all finish."""
    harness = make_harness(providers={"glm": (scripted(), 2)})
    session = harness.session()
    for number in range(6):
        harness.submit(session, number, "ask", {"vendor": "glm"})
    await harness.answered()
    assert [harness.port.answers[number].outputs[0].text for number in range(6)] == ["hi"] * 6
    assert harness.providers["glm"].peak == 2
    assert harness.counts() == {"running": 0, "waiting": 0, "accepted": 0, "glm": 0}


async def test_calls_that_wait_for_a_hung_vendor_delay_no_others(make_harness: Any, make_tool: Any) -> None:
    """With 100 calls waiting for GLM, other tools and the other vendor answer as usual, in every session."""
    hang = asyncio.Event()

    async def hung(request: CompletionRequest, on_delta: OnDelta | None) -> str:
        await hang.wait()
        return "late"

    async def local(arguments: Any, context: Any) -> str:
        return "local"

    harness = make_harness(
        [make_tool("local", local)], providers={"glm": (hung, 4), "kimi": (scripted(), 6)}, max_running=8
    )
    busy = [harness.session(f"busy-{number}", running=8) for number in range(5)]
    for number in range(100):
        harness.submit(busy[number % 5], f"glm-{number}", "ask", {"vendor": "glm"}, timeout_ms=60_000)
    while harness.limiters["glm"].permits.waiting < 96:
        await asyncio.sleep(0.001)
    async with asyncio.timeout(10):
        for session in (harness.session("other"), busy[0]):
            for name in ("local", "ask"):
                harness.submit(session, f"{session.label}-{name}", name)
                while f"{session.label}-{name}" not in harness.port.answers:
                    await asyncio.sleep(0.001)
    assert harness.router.accepted == 100
    hang.set()
    await harness.answered()
    assert harness.providers["glm"].peak == 4
    assert all(harness.port.answers[f"glm-{number}"].ok for number in range(100))


async def test_a_call_holds_no_provider_permit_while_it_waits_to_run(make_harness: Any, make_tool: Any) -> None:
    """A call that gets its vendor's permit asks at once, however busy the daemon is."""
    go = asyncio.Event()

    async def script(request: CompletionRequest, on_delta: OnDelta | None) -> str:
        if request.messages[0].content == "first":
            await go.wait()
        return "hi"

    async def hang(arguments: Any, context: Any) -> Any:
        await asyncio.Event().wait()

    harness = make_harness([make_tool("hang", hang)], providers={"kimi": (script, 1)}, max_running=2)
    session = harness.session()
    harness.submit(session, "first", "ask", {"prompt": "first"})
    harness.submit(session, "second", "ask", {"prompt": "second"})
    while harness.limiters["kimi"].permits.waiting < 1:
        await asyncio.sleep(0.001)
    hangs = [harness.submit(session, f"hang-{number}", "hang") for number in range(4)]
    while harness.router.permits.in_use < 2 or harness.router.permits.waiting + session.permits.waiting < 1:
        await asyncio.sleep(0.001)
    go.set()
    async with asyncio.timeout(10):
        while harness.providers["kimi"].request_count < 2 or harness.limiters["kimi"].permits.in_use:
            await asyncio.sleep(0.001)
    for running in hangs:
        harness.router.cancel(session, running.key)
    await harness.answered()
    assert harness.port.answers["second"].ok


async def test_a_permit_is_held_until_the_sdk_returns(make_harness: Any) -> None:
    """A caller that times out is answered at once; the permit is released when the SDK returns."""
    release = asyncio.Event()

    async def stubborn(request: CompletionRequest, on_delta: OnDelta | None) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            await release.wait()  # as a thread that cannot be interrupted
        return ""

    harness = make_harness(providers={"glm": (stubborn, 1)})
    gate = harness.limiters["glm"]
    running = harness.submit(harness.session(), "a", "ask", {"vendor": "glm"})
    await harness.until(lambda: harness.providers["glm"].request_count)
    result = await harness.expire(running)
    assert result.error.code == "TIMEOUT"
    assert result.error.retryable
    assert (gate.permits.in_use, gate.abandoned, harness.router.permits.in_use) == (1, 1, 0)
    release.set()
    while gate.permits.in_use or gate.abandoned:
        await asyncio.sleep(0.001)


async def test_a_call_cancelled_while_it_waits_for_its_vendor_never_reaches_it(make_harness: Any) -> None:
    """Its place in the queue is free, and the vendor is not asked."""
    hang = asyncio.Event()

    async def hung(request: CompletionRequest, on_delta: OnDelta | None) -> str:
        await hang.wait()
        return "x"

    harness = make_harness(providers={"glm": (hung, 1)})
    session = harness.session()
    harness.submit(session, "first", "ask", {"vendor": "glm"})
    waiting = harness.submit(session, "second", "ask", {"vendor": "glm"})
    while harness.limiters["glm"].permits.waiting < 1:
        await asyncio.sleep(0.001)
    assert harness.router.cancel(session, waiting.key)
    while "second" not in harness.port.answers:
        await asyncio.sleep(0.001)
    error = harness.port.answers["second"].error
    assert (error.code, error.executed) == ("CANCELLED", "no")
    hang.set()
    await harness.answered()
    assert harness.providers["glm"].request_count == 1


@pytest.mark.parametrize(
    ("kind", "executed"),
    [({}, "no"), ({"read_only": False}, "no"), ({"source": "x"}, "no"), ({"read_only": False, "source": "x"}, "maybe")],
)
async def test_a_call_that_times_out_before_its_vendor_is_asked_did_nothing(
    make_harness: Any, make_tool: Any, kind: dict[str, Any], executed: str
) -> None:
    """It says so, unless its tool is of another author and may have had an effect before."""

    async def hung(request: CompletionRequest, on_delta: OnDelta | None) -> str:
        await asyncio.Event().wait()
        return ""

    async def asks(arguments: Any, context: Any) -> Any:
        request = CompletionRequest(model=context.daemon.catalog.default("glm"), messages=(Message("user", "x"),))
        return (await context.complete(request)).text

    harness = make_harness([make_tool("asks", asks, open_world=True, **kind)], providers={"glm": (hung, 1)})
    session = harness.session()
    first = harness.submit(session, "first", "asks")
    await harness.until(lambda: harness.providers["glm"].request_count)
    second = harness.submit(session, "second", "asks")
    await harness.until(lambda: harness.limiters["glm"].permits.waiting)
    error = (await harness.expire(second)).error
    assert (error.code, error.executed, error.retryable) == ("TIMEOUT", executed, executed == "no")
    assert harness.router.cancel(session, first.key)
    await harness.answered()
    assert (harness.port.answers["first"].error.executed, harness.providers["glm"].request_count) == ("maybe", 1)


async def test_hanging_calls_of_one_principal_do_not_block_another(make_harness: Any) -> None:
    """One permit is kept for principals that hold none, so another one's calls are answered while all others hang; and
    the sessions of a principal take turns.
    """
    hang = asyncio.Event()
    order: list[str] = []

    async def script(request: CompletionRequest, on_delta: OnDelta | None) -> str:
        order.append(str(request.messages[0].content))
        if order[-1].startswith("hang"):
            await hang.wait()
        return "hi"

    harness = make_harness(providers={"kimi": (script, 3)})
    permits = harness.limiters["kimi"].permits
    permits.keep_reserve(True)
    busy, second, other = harness.session("busy"), harness.session("second"), harness.session("other")
    other.principal = Principal("token:other")
    for number in range(6):
        harness.submit(busy, f"hang-{number}", "ask", {"prompt": f"hang-{number}"}, timeout_ms=60_000)
    harness.submit(second, "second", "ask", {"prompt": "second"})
    await harness.until(lambda: permits.waiting == 5)
    for number in range(3):
        assert (await harness.call(other, f"other-{number}", "ask", arguments={"prompt": "other"})).ok
    assert order == ["hang-0", "hang-1", "other", "other", "other"]
    hang.set()
    await harness.answered()
    assert sorted(order[5:7]) == ["hang-2", "second"]


async def test_a_call_whose_caller_has_left_returns_its_permit(make_harness: Any) -> None:
    """A call that only reads ends with the connection of a session that cannot be resumed: its vendor request is
    cancelled, and the next one gets the permit.
    """
    cancelled = asyncio.Event()

    async def script(request: CompletionRequest, on_delta: OnDelta | None) -> str:
        if request.messages[0].content == "hang":
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
        return "hi"

    harness = make_harness(providers={"kimi": (script, 1)})
    first, other = harness.session("gone"), harness.session("other")
    harness.submit(first, "gone", "ask", {"prompt": "hang"}, timeout_ms=60_000)
    harness.submit(other, "other", "ask", timeout_ms=60_000)
    await harness.until(lambda: harness.limiters["kimi"].permits.waiting)
    harness.router.disconnect(first, harness.port)
    await harness.until(lambda: "other" in harness.port.answers)
    assert (cancelled.is_set(), harness.port.answers["other"].ok) == (True, True)


async def test_a_failure_nobody_waits_for_is_not_logged(make_harness: Any) -> None:
    """The caller ends in the turn of the event loop in which its request fails."""
    unhandled: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, problem: unhandled.append(problem))

    async def fails(*, timeout_s: float) -> str:
        raise ProviderError("No.", executed="no")

    limiter = make_harness(providers={"kimi": (scripted(), 1)}).limiters["kimi"]
    permit = RunPermit(Permits("session", 1), Permits("running", 1))
    deadline = time.monotonic() + 60
    task = asyncio.create_task(
        limiter.ask(fails, deadline=deadline, permit=permit, meter=UsageMeter(), ended=lambda: False)
    )
    await asyncio.sleep(0)  # the request's task is made, and runs before its caller
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    del task
    gc.collect()
    await asyncio.sleep(0)
    assert (unhandled, limiter.permits.in_use) == ([], 0)


async def test_a_failing_vendor_is_refused_fast(make_harness: Any) -> None:
    """After several failures in a row calls are refused without a request, with ``retry_after_ms``."""

    async def down(request: CompletionRequest, on_delta: OnDelta | None) -> str:
        raise ServiceUnavailableError("The vendor is down.", executed="maybe")

    harness = make_harness(providers={"kimi": (down, 6)})
    session = harness.session()
    results = [await harness.call(session, number, "ask") for number in range(12)]
    assert all(result.error.code == "SERVICE_UNAVAILABLE" for result in results)
    assert harness.providers["kimi"].request_count < 12
    assert results[-1].error.retry_after_ms > 0
    assert results[-1].error.executed == "no"
    assert set(harness.provider_errors) == {("kimi", "SERVICE_UNAVAILABLE")}


async def test_a_vendors_refusals_do_not_open_the_circuit_breaker(make_harness: Any) -> None:
    """An invalid key or a bad request does not mean that the vendor is down."""

    async def refuses(request: CompletionRequest, on_delta: OnDelta | None) -> str:
        raise ProviderError("No such parameter.", executed="no")

    harness = make_harness(providers={"kimi": (refuses, 6)})
    session = harness.session()
    for number in range(12):
        assert (await harness.call(session, number, "ask")).error.code == "PROVIDER_ERROR"
    assert harness.providers["kimi"].request_count == 12


async def test_an_unconfigured_vendor_is_refused_with_the_missing_setting(make_harness: Any) -> None:
    """The error names the key."""
    harness = make_harness()
    result = await harness.call(harness.session(), "a", "ask")
    assert result.error.code == "SERVICE_UNAVAILABLE"
    assert "KIMI_API_KEY" in result.error.message
    assert not result.error.retryable


async def test_abandoned_requests_end_with_their_call(make_harness: Any, make_tool: Any) -> None:
    """If one of two requests fails the call is answered, the other is cancelled, and all permits are released."""

    async def fails(request: CompletionRequest, on_delta: OnDelta | None) -> str:
        raise ProviderError("No.", executed="no")

    async def hung(request: CompletionRequest, on_delta: OnDelta | None) -> str:
        await asyncio.Event().wait()
        return ""

    async def both(arguments: Any, context: Any) -> Any:
        def ask(vendor: str) -> Any:
            model = context.daemon.catalog.default(vendor)
            return context.complete(CompletionRequest(model=model, messages=(Message("user", "x"),)))

        return await asyncio.gather(ask("kimi"), ask("glm"), ask("glm"))

    harness = make_harness([make_tool("both", both, open_world=True)], providers={"kimi": (fails, 6), "glm": (hung, 1)})
    result = await harness.call(harness.session(), "a", "both")
    assert result.error.code == "PROVIDER_ERROR"
    async with asyncio.timeout(10):
        while set(harness.counts().values()) != {0}:
            await asyncio.sleep(0.001)


async def test_an_invalid_argument_does_not_count_for_the_circuit_breaker(make_harness: Any) -> None:
    """A request that is rejected unsent is neither a failure nor a success of the vendor."""

    async def down_or_refused(request: CompletionRequest, on_delta: OnDelta | None) -> str:
        if request.messages[0].content == "bad":
            raise InvalidArgumentsError("temperature: this model takes none.")
        raise ServiceUnavailableError("The vendor is down.", executed="maybe")

    harness = make_harness(providers={"kimi": (down_or_refused, 6)})
    session = harness.session()
    for number in range(8):
        await harness.call(session, number, "ask", arguments={"prompt": "bad" if number % 2 else "x"})
    assert len(harness.provider_errors) == 4
    await harness.call(session, 8, "ask")
    refused = await harness.call(session, 9, "ask")
    assert harness.providers["kimi"].request_count == 9
    assert refused.error.retry_after_ms > 0


@pytest.mark.parametrize("code", ["RATE_LIMITED", "CONTEXT_LENGTH_EXCEEDED", "PROVIDER_ERROR"])
async def test_the_vendors_error_reaches_the_caller(make_harness: Any, code: str) -> None:
    """The provider's error is the call's error, with its fields."""
    from toold.protocol.error_codes import ERROR_CLASSES

    async def fails(request: CompletionRequest, on_delta: OnDelta | None) -> str:
        raise ERROR_CLASSES[ErrorCode(code)]("The vendor said so.", retry_after_ms=1234)

    harness = make_harness(providers={"kimi": (fails, 6)})
    error = (await harness.call(harness.session(), "a", "ask")).error
    assert (error.code, error.message, error.retry_after_ms) == (code, "The vendor said so.", 1234)


async def test_closing_waits_at_most_its_timeout(make_harness: Any) -> None:
    """At shutdown a hung SDK is abandoned after the given time."""

    async def stubborn(request: CompletionRequest, on_delta: OnDelta | None) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            await release.wait()
        return ""

    release = asyncio.Event()
    harness = make_harness(providers={"kimi": (stubborn, 1)})
    session = harness.session()
    running = harness.submit(session, "a", "ask")
    await harness.until(lambda: harness.providers["kimi"].request_count)
    assert harness.router.cancel(session, running.key)
    await harness.answered()
    await harness.limiters["kimi"].close(0.01)
    assert harness.limiters["kimi"].abandoned == 1
    release.set()
    while harness.limiters["kimi"].abandoned:
        await asyncio.sleep(0.001)
