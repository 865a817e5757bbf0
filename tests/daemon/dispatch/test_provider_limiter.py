"""The door to a provider: its bound, its breaker, and work that outlives its caller."""

import asyncio
from typing import Any

import pytest
from toold.protocol.error_codes import ErrorCode, InvalidArgumentsError, ProviderError, ServiceUnavailableError
from toold.providers import CompletionRequest, Message, OnDelta


def scripted(text: str = "hi") -> Any:
    async def script(request: CompletionRequest, on_delta: OnDelta | None) -> str:
        await asyncio.sleep(0)
        return text

    return script


async def test_a_completion_books_its_time_tokens_and_provider(house: Any) -> None:
    """What the answer cost stands in its metadata."""
    home = house(providers={"kimi": (scripted(), 6)})
    result = await home.call(home.session(), "a", "ask")
    assert result.outputs[0].text == "hi"
    assert (result.metadata.provider, result.metadata.usage.output_tokens) == ("kimi", 5)
    assert result.metadata.simulated
    assert result.metadata.timings.provider_ms > 0


async def test_no_more_calls_than_the_limit_reach_the_vendor(house: Any) -> None:
    """With a limit of 2, six calls never run more than two at once, and none is lost."""
    home = house(providers={"glm": (scripted(), 2)})
    session = home.session()
    for number in range(6):
        home.submit(session, number, "ask", {"vendor": "glm"})
    await home.answered()
    assert [home.port.answers[number].outputs[0].text for number in range(6)] == ["hi"] * 6
    assert home.providers["glm"].peak == 2
    assert home.counts() == {"running": 0, "waiting": 0, "accepted": 0, "glm": 0}


async def test_calls_that_wait_for_a_hung_vendor_delay_nobody_else(house: Any, make: Any) -> None:
    """With 100 calls waiting for GLM, other tools and the other vendor answer as usual, in every session."""
    hang = asyncio.Event()

    async def hung(request: CompletionRequest, on_delta: OnDelta | None) -> str:
        await hang.wait()
        return "late"

    async def local(arguments: Any, context: Any) -> str:
        return "local"

    home = house([make("local", local)], providers={"glm": (hung, 4), "kimi": (scripted(), 6)}, max_running=8)
    busy = [home.session(f"busy-{number}", running=8) for number in range(5)]
    for number in range(100):
        home.submit(busy[number % 5], f"glm-{number}", "ask", {"vendor": "glm"}, timeout_ms=60_000)
    while home.gates["glm"].permits.waiting < 96:
        await asyncio.sleep(0.001)
    async with asyncio.timeout(10):
        for session in (home.session("other"), busy[0]):
            for name in ("local", "ask"):
                home.submit(session, f"{session.label}-{name}", name)
                while f"{session.label}-{name}" not in home.port.answers:
                    await asyncio.sleep(0.001)
    assert home.router.accepted == 100
    hang.set()
    await home.answered()
    assert home.providers["glm"].peak == 4
    assert all(home.port.answers[f"glm-{number}"].ok for number in range(100))


async def test_nobody_holds_a_providers_permit_while_it_waits_to_run(house: Any, make: Any) -> None:
    """A call that stood in line for its vendor asks it at once, however busy the daemon is by then."""
    go = asyncio.Event()

    async def script(request: CompletionRequest, on_delta: OnDelta | None) -> str:
        if request.messages[0].content == "first":
            await go.wait()
        return "hi"

    async def hang(arguments: Any, context: Any) -> Any:
        await asyncio.Event().wait()

    home = house([make("hang", hang)], providers={"kimi": (script, 1)}, max_running=2)
    session = home.session()
    home.submit(session, "first", "ask", {"prompt": "first"})
    home.submit(session, "second", "ask", {"prompt": "second"})
    while home.gates["kimi"].permits.waiting < 1:
        await asyncio.sleep(0.001)
    hangs = [home.submit(session, f"hang-{number}", "hang") for number in range(4)]
    while home.router.permits.in_use < 2 or home.router.permits.waiting + session.permits.waiting < 1:
        await asyncio.sleep(0.001)
    go.set()
    async with asyncio.timeout(10):
        while home.providers["kimi"].asked < 2 or home.gates["kimi"].permits.in_use:
            await asyncio.sleep(0.001)
    for running in hangs:
        home.router.cancel(session, running.key)
    await home.answered()
    assert home.port.answers["second"].ok


async def test_a_permit_stays_taken_until_the_vendors_work_has_ended(house: Any) -> None:
    """A caller that runs out of time is answered at once; the permit comes back when the SDK lets go."""
    let_go = asyncio.Event()

    async def stubborn(request: CompletionRequest, on_delta: OnDelta | None) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            await let_go.wait()  # as a thread that cannot be interrupted
        return ""

    home = house(providers={"glm": (stubborn, 1)})
    gate = home.gates["glm"]
    result = await home.call(home.session(), "a", "ask", arguments={"vendor": "glm"}, timeout_ms=30)
    assert result.error.code == "TIMEOUT"
    assert result.error.retryable
    assert (gate.permits.in_use, gate.abandoned, home.router.permits.in_use) == (1, 1, 0)
    let_go.set()
    while gate.permits.in_use or gate.abandoned:
        await asyncio.sleep(0.001)


async def test_a_call_cancelled_while_it_waits_for_its_vendor_never_reaches_it(house: Any) -> None:
    """Its place in the line is given up, and the vendor is not asked."""
    hang = asyncio.Event()

    async def hung(request: CompletionRequest, on_delta: OnDelta | None) -> str:
        await hang.wait()
        return "x"

    home = house(providers={"glm": (hung, 1)})
    session = home.session()
    home.submit(session, "first", "ask", {"vendor": "glm"})
    waiting = home.submit(session, "second", "ask", {"vendor": "glm"})
    while home.gates["glm"].permits.waiting < 1:
        await asyncio.sleep(0.001)
    assert home.router.cancel(session, waiting.key)
    while "second" not in home.port.answers:
        await asyncio.sleep(0.001)
    assert home.port.answers["second"].error.code == "CANCELLED"
    hang.set()
    await home.answered()
    assert home.providers["glm"].asked == 1


async def test_a_vendor_that_keeps_failing_is_answered_for_fast(house: Any) -> None:
    """After some failures in a row calls are refused without asking, and told when to come again."""

    async def down(request: CompletionRequest, on_delta: OnDelta | None) -> str:
        raise ServiceUnavailableError("The vendor is down.", executed="maybe")

    home = house(providers={"kimi": (down, 6)})
    session = home.session()
    results = [await home.call(session, number, "ask") for number in range(12)]
    assert all(result.error.code == "SERVICE_UNAVAILABLE" for result in results)
    assert home.providers["kimi"].asked < 12
    assert results[-1].error.retry_after_ms > 0
    assert results[-1].error.executed == "no"
    assert set(home.provider_errors) == {("kimi", "SERVICE_UNAVAILABLE")}


async def test_refusals_of_a_vendor_that_works_do_not_close_its_door(house: Any) -> None:
    """A wrong key or a bad request says nothing about whether the vendor is up."""

    async def refuses(request: CompletionRequest, on_delta: OnDelta | None) -> str:
        raise ProviderError("No such parameter.", executed="no")

    home = house(providers={"kimi": (refuses, 6)})
    session = home.session()
    for number in range(12):
        assert (await home.call(session, number, "ask")).error.code == "PROVIDER_ERROR"
    assert home.providers["kimi"].asked == 12


async def test_a_vendor_that_is_not_configured_is_answered_with_what_to_set(house: Any) -> None:
    """The error names the key."""
    home = house()
    result = await home.call(home.session(), "a", "ask")
    assert result.error.code == "SERVICE_UNAVAILABLE"
    assert "KIMI_API_KEY" in result.error.message
    assert not result.error.retryable


async def test_what_a_tool_left_asking_ends_with_its_call(house: Any, make: Any) -> None:
    """Where one of two questions fails the call is answered, the other is ended, and every permit is back."""

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

    home = house([make("both", both, open_world=True)], providers={"kimi": (fails, 6), "glm": (hung, 1)})
    result = await home.call(home.session(), "a", "both")
    assert result.error.code == "PROVIDER_ERROR"
    async with asyncio.timeout(10):
        while set(home.counts().values()) != {0}:
            await asyncio.sleep(0.001)


async def test_an_argument_that_a_model_does_not_take_says_nothing_of_its_vendor(house: Any) -> None:
    """What is refused before the vendor is asked neither counts as its error nor as its success."""

    async def down_or_refused(request: CompletionRequest, on_delta: OnDelta | None) -> str:
        if request.messages[0].content == "bad":
            raise InvalidArgumentsError("temperature: this model takes none.")
        raise ServiceUnavailableError("The vendor is down.", executed="maybe")

    home = house(providers={"kimi": (down_or_refused, 6)})
    session = home.session()
    for number in range(8):
        await home.call(session, number, "ask", arguments={"prompt": "bad" if number % 2 else "x"})
    assert len(home.provider_errors) == 4
    await home.call(session, 8, "ask")
    refused = await home.call(session, 9, "ask")
    assert home.providers["kimi"].asked == 9
    assert refused.error.retry_after_ms > 0


@pytest.mark.parametrize("code", ["RATE_LIMITED", "CONTEXT_LENGTH_EXCEEDED", "PROVIDER_ERROR"])
async def test_what_the_vendor_said_reaches_the_caller(house: Any, code: str) -> None:
    """The provider's error is the call's error, with its own fields."""
    from toold.protocol.error_codes import ERROR_CLASSES

    async def fails(request: CompletionRequest, on_delta: OnDelta | None) -> str:
        raise ERROR_CLASSES[ErrorCode(code)]("The vendor said so.", retry_after_ms=1234)

    home = house(providers={"kimi": (fails, 6)})
    error = (await home.call(home.session(), "a", "ask")).error
    assert (error.code, error.message, error.retry_after_ms) == (code, "The vendor said so.", 1234)


async def test_closing_waits_no_longer_than_it_is_told(house: Any) -> None:
    """At the daemon's end a hung SDK is left alone after the time given."""

    async def stubborn(request: CompletionRequest, on_delta: OnDelta | None) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            await let_go.wait()
        return ""

    let_go = asyncio.Event()
    home = house(providers={"kimi": (stubborn, 1)})
    await home.call(home.session(), "a", "ask", timeout_ms=20)
    await home.gates["kimi"].close(0.01)
    assert home.gates["kimi"].abandoned == 1
    let_go.set()
    while home.gates["kimi"].abandoned:
        await asyncio.sleep(0.001)
