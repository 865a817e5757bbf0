"""What a call uses at vendors: tokens, cost and requests, and the budget that they are limited by."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from toold.daemon.dispatch import ProviderLimiter
from toold.protocol.error_codes import CallTimeoutError, InvalidArgumentsError, ServiceUnavailableError
from toold.protocol.tool_call import Cost, Usage
from toold.providers import CompletionRequest, Delta, EmbeddingRequest, Embeddings, ModelPrice, OnDelta

from .priced_provider import PricedProvider, once, question


async def test_usage_of_several_completions_is_summed(make_harness: Any, make_tool: Any) -> None:
    """The metadata has the tokens and cost of all of them, and the model that the vendor reported."""

    async def twice(arguments: Any, context: Any) -> str:
        for _ in range(2):
            await context.complete(question(context, "kimi"))
        return ""

    harness = make_harness([make_tool("twice", twice)], providers={"kimi": (once, 6)})
    harness.limiters["kimi"] = ProviderLimiter(PricedProvider("kimi"), 6, on_error=lambda *_: None)
    metadata = (await harness.call(harness.session(), 1, "twice")).metadata
    assert (metadata.usage, metadata.cost) == (Usage(6, 10), Cost(2.0, "USD"))
    assert metadata.model.endswith("-0711")
    assert metadata.simulated is None


async def test_the_reason_for_the_model_is_in_the_metadata(make_harness: Any, make_tool: Any) -> None:
    """Model and reason are those of the last completion."""

    async def choose(arguments: Any, context: Any) -> str:
        await context.complete(question(context, "kimi"), model_choice_reason=arguments.get("first"))
        await context.complete(question(context, "kimi"), model_choice_reason=arguments.get("second"))
        return ""

    harness = make_harness([make_tool("choose", choose)], providers={"kimi": (once, 6)})
    session = harness.session()
    chosen = await harness.call(session, 1, "choose", arguments={"first": "a", "second": "b"})
    assert chosen.metadata.model_choice_reason == "b"
    named = await harness.call(session, 2, "choose", arguments={"first": "a"})
    assert named.metadata.model_choice_reason is None


@pytest.mark.parametrize("by", ["its provider", "its answer"])
async def test_simulated_completions_cost_nothing(make_harness: Any, make_tool: Any, by: str) -> None:
    """Tokens are reported with zero cost, also if a simulator is configured as the vendor's address."""

    async def ask(arguments: Any, context: Any) -> str:
        await context.complete(question(context, "kimi"))
        return ""

    harness = make_harness([make_tool("asks", ask)], providers={"kimi": (once, 6)})
    vendor = PricedProvider("kimi")
    if by == "its provider":
        vendor.simulated = True
    else:
        vendor.answers_simulated = True
    harness.limiters["kimi"] = ProviderLimiter(vendor, 6, on_error=lambda *_: None)
    metadata = (await harness.call(harness.session(), 1, "asks")).metadata
    assert (metadata.usage, metadata.cost, metadata.simulated) == (Usage(3, 5), Cost(0.0, "USD"), True)


async def test_embeddings_are_metered_and_given_up_ones_are_estimated(make_harness: Any, make_tool: Any) -> None:
    """The metadata has their tokens and cost; what was sent and then given up counts as estimated."""

    class Hanging(PricedProvider):
        async def embed(self, request: EmbeddingRequest, *, timeout_s: float) -> Embeddings:
            raise CallTimeoutError("too slow")

    async def embeds(arguments: Any, context: Any) -> str:
        model = replace(context.daemon.catalog.default("kimi"), price=ModelPrice("USD", 1_000_000, 0))
        with suppress(CallTimeoutError):
            await context.embed(EmbeddingRequest(model, ((1, 2, 3), (4, 5))))
        return ""

    harness = make_harness([make_tool("embeds", embeds)], providers={"kimi": (once, 6)})
    harness.limiters["kimi"] = ProviderLimiter(PricedProvider("kimi"), 6, on_error=lambda *_: None)
    metadata = (await harness.call(harness.session(), 1, "embeds")).metadata
    assert (metadata.usage, metadata.cost) == (Usage(3, 0), Cost(1.0, "USD"))
    harness.limiters["kimi"] = ProviderLimiter(Hanging("kimi"), 6, on_error=lambda *_: None)
    metadata = (await harness.call(harness.session(), 2, "embeds")).metadata
    assert (metadata.usage, metadata.cost) == (Usage(5, 0, estimated=True), Cost(5.0, "USD", estimated=True))


def counted(harness: Any, request_id: int) -> int:
    """The number of vendor requests that the answer reports."""
    calls: int = harness.port.answers[request_id].metadata.provider_calls
    return calls


async def test_other_vendor_requests_use_the_same_limiter(make_harness: Any, make_tool: Any) -> None:
    """They hold the provider's permit within the call's time; provider, time and requests are metered."""
    seen: list[tuple[int, float]] = []

    async def listing(arguments: Any, context: Any) -> Any:
        async def ids(word: str, *, timeout_s: float) -> list[str]:
            seen.append((harness.limiters["kimi"].permits.in_use, timeout_s))
            return [word]

        assert context.capabilities("kimi") is harness.providers["kimi"]
        await context.complete(question(context, "kimi"))
        return await context.vendor("kimi", partial(ids, "a"))

    harness = make_harness([make_tool("listing", listing)], providers={"kimi": (once, 6)})
    result = await harness.call(harness.session(), 1, "listing", timeout_ms=20_000)
    assert result.structured == ["a"]
    assert (result.metadata.provider, result.metadata.simulated, counted(harness, 1)) == ("kimi", True, 2)
    assert result.metadata.timings.provider_ms > 0
    ((in_use, timeout_s),) = seen
    assert in_use == 1
    assert 0 < timeout_s <= 20


async def test_failures_of_any_request_open_the_circuit_breaker(make_harness: Any, make_tool: Any) -> None:
    """Uploads and searches count too; requests that are refused unsent do not."""

    async def down(*, timeout_s: float) -> None:
        raise ServiceUnavailableError("The vendor is down.", executed="maybe")

    async def wrong(*, timeout_s: float) -> None:
        raise InvalidArgumentsError("It takes no such file.")

    async def send(arguments: Any, context: Any) -> Any:
        await context.vendor("kimi", wrong if arguments.get("wrong") else down)

    harness = make_harness([make_tool("send", send)], providers={"kimi": (once, 6)})
    session = harness.session()
    await harness.call(session, 0, "send", arguments={"wrong": True})
    assert counted(harness, 0) == 0
    for number in range(1, 6):
        await harness.call(session, number, "send")
        assert counted(harness, number) == 1
    refused = await harness.call(session, 6, "ask")
    assert (refused.error.code, refused.error.executed, counted(harness, 6)) == ("SERVICE_UNAVAILABLE", "no", 0)
    assert len(harness.provider_errors) == 5


@pytest.fixture
async def priced(make_harness: Any, make_tool: Any) -> Any:
    """A harness with a vendor whose answers cost a dollar, tools that ask it and one that does not, and no budget."""

    async def pays(arguments: Any, context: Any) -> str:
        request = replace(question(context, "kimi"), max_tokens=arguments.get("max_tokens", 10))
        await context.complete(request)
        return ""

    async def lists(arguments: Any, context: Any) -> Any:
        async def ids(*, timeout_s: float) -> list[str]:
            return []

        return await context.vendor("kimi", ids)

    async def local(arguments: Any, context: Any) -> str:
        return "local"

    tools = [
        make_tool("pays", pays, open_world=True),
        make_tool("lists", lists, open_world=True),
        make_tool("local", local),
    ]
    harness = make_harness(tools, providers={"kimi": (once, 6)})
    harness.limiters["kimi"] = ProviderLimiter(PricedProvider("kimi"), 6, on_error=lambda *_: None)
    return harness


async def test_a_spent_budget_stops_only_vendor_requests(priced: Any) -> None:
    """Completions and other requests, before the provider's permit is acquired; local tools still work."""
    priced.budget.amounts = {"USD": 2.0}
    session, gate = priced.session(), priced.limiters["kimi"]
    for number in range(2):
        assert (await priced.call(session, number, "pays")).ok
    async with gate.permits, gate.permits, gate.permits, gate.permits, gate.permits, gate.permits:
        for number, name in enumerate(("pays", "lists"), 2):  # all permits are taken, and no call waits for one
            error = (await priced.call(session, number, name)).error
            assert (error.code, error.executed, error.retryable) == ("RATE_LIMITED", "no", True)
            assert "it resets at" in error.message
            assert 0 < error.retry_after_ms <= 86_400_000
            assert counted(priced, number) == 0
    assert (await priced.call(session, 4, "local")).ok
    assert set(priced.counts().values()) == {0}


async def test_running_completions_reserve_their_estimates(priced: Any) -> None:
    """A completion that may use the rest blocks others until it is answered."""
    priced.budget.amounts = {"USD": 1.5}
    session = priced.session()
    with priced.budget.reserve(Cost(1.5, "USD")):
        error = (await priced.call(session, 1, "pays")).error
    assert "running calls have reserved the rest" in error.message
    assert (await priced.call(session, 2, "pays")).ok
    error = (await priced.call(session, 3, "pays", arguments={"max_tokens": 10**9})).error
    assert (error.code, error.retryable) == ("RATE_LIMITED", False)
    assert "more than the whole daily budget" in error.message


async def test_simulated_completions_reserve_nothing(priced: Any) -> None:
    """They cost nothing, so no budget stops them."""
    priced.budget.amounts = {"USD": 0.5}
    priced.limiters["kimi"].provider.simulated = True
    session = priced.session()
    for number in range(3):
        assert (await priced.call(session, number, "pays", arguments={"max_tokens": 10**9})).ok
    assert priced.budget.state()["spent"] == {"USD": 0.0}


@pytest.mark.parametrize("how", ["time", "caller"])
async def test_interrupted_completions_are_metered_by_estimate(make_harness: Any, make_tool: Any, how: str) -> None:
    """The vendor may bill the prompt and the part it sent; the answer contains both, marked as estimated."""
    reached = asyncio.Event()

    async def slow(request: CompletionRequest, on_delta: OnDelta | None) -> str:
        assert on_delta is not None
        on_delta(Delta("one two three"))
        reached.set()
        await asyncio.Event().wait()
        return ""

    async def ask(arguments: Any, context: Any) -> str:
        await context.complete(question(context, "kimi"), on_delta=lambda _: None)
        return ""

    harness = make_harness([make_tool("asks", ask)], providers={"kimi": (slow, 1)})
    session = harness.session()
    running = harness.submit(session, 1, "asks")
    await reached.wait()
    if how == "time":
        metadata = (await harness.expire(running)).metadata
    else:
        harness.router.cancel(session, running.key)
        await harness.answered()
        metadata = harness.port.answers[1].metadata
    assert (metadata.usage.output_tokens, metadata.usage.estimated) == (3, True)
    assert metadata.usage.input_tokens > 0
    assert metadata.provider_calls == 1


async def test_unsent_completions_are_not_metered(make_harness: Any, make_tool: Any) -> None:
    """A call that times out while it waits for its vendor uses nothing."""

    async def ask(arguments: Any, context: Any) -> str:
        await context.complete(question(context, "kimi"))
        return ""

    harness = make_harness([make_tool("asks", ask)], providers={"kimi": (once, 1)})
    async with harness.limiters["kimi"].permits:
        running = harness.submit(harness.session(), 1, "asks")
        await harness.until(lambda: harness.limiters["kimi"].permits.waiting)
        result = await harness.expire(running)
    assert (result.error.code, result.metadata.usage, result.metadata.provider_calls) == ("TIMEOUT", None, 0)
