"""Run budgets: what a call and its descendants may spend, checked before each vendor request."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from toold.daemon.dispatch import ProviderLimiter
from toold.daemon.dispatch.run_budget import RunLimits, Spent, price_refusal, run_refusal
from toold.protocol.tool_call import LOCAL, Cost, Principal, Usage
from toold.providers import ModelCatalog

from .priced_provider import PricedProvider, once, question

LIMITS = RunLimits("desk", {"USD": 1.0}, 1000)
NOTHING = Spent({}, 0)
KIMI = ModelCatalog.load().default("kimi")


@pytest.mark.parametrize(
    ("spent", "reserved", "expected", "retryable", "words"),
    [
        (Spent({"USD": 0.9}, 0), NOTHING, (10, 0.1), None, ""),
        (Spent({"USD": 0.9}, 0), NOTHING, (10, 0.2), False, "may cost 1 USD: 0.9 USD are spent, and the next request"),
        (Spent({"USD": 0.5}, 0), Spent({"USD": 0.4}, 9), (10, 0.2), True, "other requests have reserved the rest"),
        (Spent({"USD": 1.0}, 0), NOTHING, None, False, "1 USD are spent"),
        (Spent({"CNY": 9.0}, 0), NOTHING, (10, 0.2), None, ""),
        (Spent({}, 990), NOTHING, (10, 0.0), None, ""),
        (Spent({}, 995), NOTHING, (10, 0.0), False, "may use 1,000 tokens: 995 are used, and the next request"),
        (Spent({}, 500), Spent({}, 495), (10, 0.0), True, "other requests have reserved the rest"),
        (Spent({}, 1000), NOTHING, None, False, "1,000 are used"),
    ],
)
def test_a_request_must_fit_into_what_is_left(
    spent: Spent, reserved: Spent, expected: tuple[int, float] | None, retryable: bool | None, words: str
) -> None:
    """Money and tokens are limited, by what is spent and reserved; only a reservation makes a retry useful."""
    usage = None if expected is None else Usage(expected[0], 0)
    cost = None if expected is None else Cost(expected[1], "USD")
    refusal = run_refusal(LIMITS, spent, reserved, usage, cost)
    if retryable is None:
        assert refusal is None
        return
    assert refusal is not None
    error = refusal.to_tool_error(repeatable=True)
    assert (error.code, error.executed, error.retryable) == ("RATE_LIMITED", "no", retryable)
    assert words in error.message


def test_money_needs_a_price_in_its_currency() -> None:
    """The error says what to set; a limit of tokens alone needs no price."""
    other = replace(KIMI, id="acme/large", vendor_id="large", price=None)
    refusals = [price_refusal(RunLimits("desk", {"CNY": 3.0}, None), model) for model in (KIMI, other)]
    messages = [refusal.message for refusal in refusals if refusal is not None]
    assert "its price is in USD; add an amount in USD, or limit its tokens instead" in messages[0]
    assert 'its price is unknown; set price in [models."acme/large"], or limit' in messages[1]
    assert price_refusal(LIMITS, KIMI) is None
    assert price_refusal(RunLimits("desk", {}, 10), other) is None


@pytest.fixture
def priced(make_harness: Any, make_tool: Any) -> Callable[..., Any]:
    """A harness with a vendor whose answers cost a dollar and 8 tokens, and these agents by name."""

    async def pays(arguments: Any, context: Any) -> str:
        await context.complete(question(context, "kimi"))
        return "paid"

    def make(**functions: Any) -> Any:
        agents = [
            make_tool(name, function, read_only=False, orchestration=True, agent=True)
            for name, function in functions.items()
        ]
        harness = make_harness([make_tool("pays", pays, open_world=True), *agents], providers={"kimi": (once, 6)})
        harness.limiters["kimi"] = ProviderLimiter(PricedProvider("kimi"), 6, on_error=lambda *_: None)
        return harness

    return make


async def spend(context: Any, count: int, prefix: str = "t") -> list[str]:
    results = [await context.call("pays", {}, name=f"{prefix}{number}", journal=True) for number in range(count)]
    return ["ok" if result.ok else result.error.message for result in results]


async def test_no_request_follows_the_limit_and_the_bill_is_exact(priced: Any) -> None:
    """The third dollar exceeds the limit, so a fourth request is not sent; the bill has all three."""

    async def desk(_arguments: Any, context: Any) -> Any:
        spending = await context.limit_spending("desk", amounts={"USD": 2.5})
        outcomes = await spend(context, 5)
        (bill,) = spending.usage_by_model
        return [outcomes, bill.completions, bill.cost.amount, spending.tokens, spending.left]

    harness = priced(desk=desk)
    result = await harness.call(harness.session(), 1, "desk")
    outcomes, completions, cost, tokens, left = result.structured
    assert outcomes[:3] == ["ok"] * 3
    assert all("The run of desk may cost 2.5 USD: 3 USD are spent" in message for message in outcomes[3:])
    assert (completions, cost, tokens, left) == (3, 3.0, 24, {"USD": 0.0})
    assert (result.metadata.provider_calls, result.metadata.cost) == (3, Cost(3.0, "USD"))


async def test_an_inner_run_has_what_the_outer_one_left(priced: Any) -> None:
    """Its own limit does not raise the outer one, and what it spends counts there."""
    seen: dict[str, Any] = {}

    async def inner(_arguments: Any, context: Any) -> Any:
        spending = await context.limit_spending("inner", amounts={"USD": 50.0}, max_tokens=10_000)
        seen["left"] = spending.left
        outcomes = await spend(context, 3)
        seen["inner"] = spending.spent
        return outcomes

    async def outer(_arguments: Any, context: Any) -> Any:
        spending = await context.limit_spending("outer", amounts={"USD": 2.5})
        await spend(context, 1)
        outcomes = (await context.call("inner", {}, name="i")).structured
        return [outcomes, spending.spent, spending.left_tokens]

    harness = priced(outer=outer, inner=inner)
    outcomes, spent, left_tokens = (await harness.call(harness.session(), 1, "outer")).structured
    assert outcomes[:2] == ["ok", "ok"]
    assert "The run of outer may cost 2.5 USD: 3 USD are spent" in outcomes[2]
    assert (spent, left_tokens, seen) == ({"USD": 3.0}, None, {"left": {"USD": 1.5}, "inner": {"USD": 2.0}})


async def test_a_resumed_run_has_spent_what_it_spent_before(priced: Any) -> None:
    """Earlier requests count, although their children are replayed and ask no vendor."""

    async def desk(arguments: Any, context: Any) -> Any:
        if arguments.get("resume"):
            await context.resume(arguments.get("resume"))
        spending = await context.limit_spending("desk", amounts={"USD": 2.5})
        return [await spend(context, arguments.get("count")), spending.spent, context.call_id]

    harness = priced(desk=desk)
    session = harness.session()
    _, _, first = (await harness.call(session, 1, "desk", arguments={"count": 2})).structured
    again = await harness.call(session, 2, "desk", arguments={"count": 4, "resume": first})
    outcomes, spent, _ = again.structured
    assert outcomes[:3] == ["ok"] * 3
    assert "3 USD are spent" in outcomes[3]
    assert (spent, again.metadata.provider_calls) == ({"USD": 3.0}, 1)


async def test_simulated_requests_count_at_their_list_price(priced: Any) -> None:
    """So a limit can be tried without a vendor; the bill is zero."""

    async def desk(_arguments: Any, context: Any) -> Any:
        spending = await context.limit_spending("desk", max_tokens=100_000)
        await spend(context, 1)
        return [spending.spent["USD"], spending.usage_by_model[0].cost.amount]

    harness = priced(desk=desk)
    harness.limiters["kimi"].provider.answers_simulated = True
    listed, billed = (await harness.call(harness.session(), 1, "desk")).structured
    assert (listed > 0, billed) == (True, 0.0)


async def test_a_model_without_a_price_is_refused_at_once(priced: Any) -> None:
    """With the models that the run will ask, and else before the first request."""
    unknown = replace(KIMI, price=None)

    async def early(_arguments: Any, context: Any) -> None:
        await context.limit_spending("early", amounts={"USD": 1.0}, models=[KIMI, unknown])

    async def late(_arguments: Any, context: Any) -> None:
        await context.limit_spending("late", daily={"USD": 1.0})
        await context.complete(replace(question(context, "kimi"), model=unknown))

    harness = priced(early=early, late=late)
    session = harness.session()
    for number, (name, code) in enumerate((("early", "SERVICE_UNAVAILABLE"), ("late", "RATE_LIMITED"))):
        error = (await harness.call(session, number, name)).error
        assert (error.code, error.retryable, "its price is unknown" in error.message) == (code, False, True)


async def test_an_agent_has_a_daily_budget_of_all_principals(priced: Any) -> None:
    """It counts what the agent spent today before the start, and other calls do not use it."""

    async def desk(_arguments: Any, context: Any) -> Any:
        await context.limit_spending("desk", daily={"USD": 4.5})
        return await spend(context, 2)

    harness = priced(desk=desk)
    harness.journal.spent_by_tools["desk"] = {"USD": 2.0}
    assert (await harness.call(harness.session(), 1, "desk")).structured == ["ok", "ok"]
    assert (await harness.call(harness.session(), 2, "pays")).ok
    other = harness.session(principal=Principal("token:ann"))
    assert other.principal != LOCAL
    first, second = (await harness.call(other, 3, "desk")).structured
    assert first == "ok"
    assert "The daily budget of the agent desk of 4.5 USD is spent" in second
    assert harness.journal.method_calls["spent_by_tool"] == 1


async def test_completions_for_a_source_share_its_daily_budget(make_harness: Any, make_tool: Any) -> None:
    """Also those that it asks for at the same time, and before the budget was read from the journal."""

    async def pays(_: Any, context: Any) -> str:
        await context.complete(question(context, "kimi"))
        return "paid"

    sampling = make_tool("sampling_shop", pays, open_world=True)

    async def sell(_: Any, context: Any) -> list[str]:
        harness.journal.ready.clear()
        asking = [
            asyncio.create_task(context.call_hidden(sampling, {}, name=f"sampling-{number}", daily_budget={"USD": 2.5}))
            for number in range(5)
        ]
        await asyncio.sleep(0)
        harness.journal.ready.set()
        results = await asyncio.gather(*asking)
        return ["ok" if result.ok else result.error.message for result in results]

    harness = make_harness([make_tool("sell", sell, open_world=True)], providers={"kimi": (once, 6)})
    harness.limiters["kimi"] = ProviderLimiter(PricedProvider("kimi"), 6, on_error=lambda *_: None)
    harness.journal.spent_by_tools["sampling_shop"] = {"USD": 2.5}
    outcomes = (await harness.call(harness.session(), 1, "sell")).structured
    assert all("sampling_shop of 2.5 USD is spent" in outcome for outcome in outcomes), outcomes
    assert harness.journal.method_calls["spent_by_tool"] == 1
