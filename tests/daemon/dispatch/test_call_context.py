"""One call as its tool sees it: what it may ask, what it may tell, and what is booked on it."""

import asyncio
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from toold.daemon.dispatch import ProviderLimiter
from toold.protocol.error_codes import InvalidArgumentsError, ServiceUnavailableError
from toold.protocol.tool_call import LOCAL, Cost, Progress, Usage
from toold.providers import Completion, CompletionRequest, Delta, Message, OnDelta


class Priced:
    """A vendor whose answers cost one dollar, or one yuan where that is its currency."""

    label, simulated, transport_name = "Priced", False, "a script"
    models: Any = None
    files: Any = None
    tokens: Any = None
    search: Any = None

    def preview(self, request: CompletionRequest, *, stream: bool = False) -> dict[str, Any]:
        return {"model": request.model.id}

    def __init__(self, name: str, currency: str = "USD") -> None:
        self.name = name
        self._currency = currency
        self.answers_simulated = False

    async def complete(
        self, request: CompletionRequest, *, timeout_s: float, on_delta: OnDelta | None = None
    ) -> Completion:
        cost = Cost(1.0, self._currency)
        return Completion(
            text="",
            model=f"{request.model.id}-0711",
            finish_reason="stop",
            usage=Usage(3, 5),
            cost=cost,
            simulated=self.answers_simulated,
        )

    async def warm_up(self) -> None: ...

    async def close(self) -> None: ...


def question(context: Any, vendor: str) -> CompletionRequest:
    return CompletionRequest(model=context.daemon.catalog.default(vendor), messages=(Message("user", "x"),))


async def once(request: CompletionRequest, on_delta: OnDelta | None) -> str:
    return "hi"


async def test_a_tool_knows_its_call_and_nothing_of_the_connection(house: Any, make: Any) -> None:
    """Ids, principal, client, and the time that is left, which is never negative."""
    seen: dict[str, Any] = {}

    async def look(arguments: Any, context: Any) -> str:
        seen.update(id=context.call_id, principal=context.principal, streaming=context.streaming)
        seen["left"] = context.remaining()
        context._call.deadline = 0.0
        seen["late"] = context.remaining()
        return ""

    home = house([make("look", look)])
    await home.call(home.session(streaming=True), 1, "look", timeout_ms=20_000)
    assert seen["id"]
    assert (seen["principal"], seen["streaming"], seen["late"]) == (LOCAL, True, 0.0)
    assert 0 < seen["left"] <= 20


async def test_reports_go_to_the_caller_until_the_call_is_answered(house: Any, make: Any) -> None:
    """What a tool that outlives its call still says reaches nobody."""
    contexts: list[Any] = []

    async def report(arguments: Any, context: Any) -> str:
        context.progress("half", 1, 2)
        context.stream("text")
        contexts.append(context)
        return ""

    home = house([make("report", report)])
    await home.call(home.session(streaming=True), 1, "report")
    contexts[0].progress("too late")
    contexts[0].stream("too late")
    assert home.port.heard == [(1, Progress("half", 1.0, 2.0))]
    assert home.port.chunks == [(1, "text")]


async def test_text_is_streamed_only_to_those_who_read_it(house: Any, make: Any) -> None:
    """A session without streaming gets no piece, and no session gets an empty one."""

    async def stream(arguments: Any, context: Any) -> str:
        for piece in ("one", "", "two"):
            context.stream(piece)
        return ""

    home = house([make("stream", stream)])
    await home.call(home.session("silent"), "silent", "stream")
    await home.call(home.session("reading", streaming=True), "reading", "stream")
    assert home.port.chunks == [("reading", "one"), ("reading", "two")]


async def test_what_cannot_travel_is_mended_before_it_is_sent(house: Any, make: Any) -> None:
    """Half of a surrogate pair is no Unicode, infinity no JSON, and nobody reads a page of progress."""

    async def odd(arguments: Any, context: Any) -> str:
        context.progress("odd \ud83d", float("inf"), float("nan"))
        context.progress("x" * 100_000)
        context.stream("odd \ude00")
        return ""

    home = house([make("odd", odd)])
    await home.call(home.session(streaming=True), 1, "odd")
    (_, first), (_, long) = home.port.heard
    assert first == Progress("odd ?", None, None)
    assert len(long.message) <= 1000
    assert home.port.chunks == [(1, "odd ?")]


async def test_what_several_completions_used_is_summed(house: Any, make: Any) -> None:
    """Tokens and cost of all of them stand in the metadata, with the model that the vendor says answered."""

    async def twice(arguments: Any, context: Any) -> str:
        for _ in range(2):
            await context.complete(question(context, "kimi"))
        return ""

    home = house([make("twice", twice)], providers={"kimi": (once, 6)})
    home.gates["kimi"] = ProviderLimiter(Priced("kimi"), 6, on_error=lambda *_: None)
    metadata = (await home.call(home.session(), 1, "twice")).metadata
    assert (metadata.usage, metadata.cost) == (Usage(6, 10), Cost(2.0, "USD"))
    assert metadata.model.endswith("-0711")
    assert metadata.simulated is None


async def test_why_a_model_was_chosen_stands_in_the_metadata(house: Any, make: Any) -> None:
    """Of the last completion, as the model does."""

    async def choose(arguments: Any, context: Any) -> str:
        await context.complete(question(context, "kimi"), model_choice_reason=arguments.get("first"))
        await context.complete(question(context, "kimi"), model_choice_reason=arguments.get("second"))
        return ""

    home = house([make("choose", choose)], providers={"kimi": (once, 6)})
    session = home.session()
    chosen = await home.call(session, 1, "choose", arguments={"first": "a", "second": "b"})
    assert chosen.metadata.model_choice_reason == "b"
    named = await home.call(session, 2, "choose", arguments={"first": "a"})
    assert named.metadata.model_choice_reason is None


async def test_a_conversation_is_held_for_the_calls_principal(house: Any, make: Any) -> None:
    """By its id or a new one, in the call's session and name; who waits for it is told so."""

    async def talk(arguments: Any, context: Any) -> str:
        ids.append(context.call_id)
        async with context.conversation(arguments.get("id")) as conversation:
            return str(conversation.id)

    ids: list[str] = []
    home = house([make("talk", talk)])
    session = home.session()
    assert (await home.call(session, 1, "talk")).outputs[0].text == "new"
    assert (await home.call(session, 2, "talk", arguments={"id": "c-1"})).outputs[0].text == "c-1"
    assert home.conversations.wanted == [
        (None, (LOCAL, session.id, ids[0])),
        ("c-1", (LOCAL, session.id, ids[1])),
    ]
    assert "waiting for another call of the same conversation" in home.port.heard[0][1].message


@pytest.mark.parametrize("by", ["its provider", "its answer"])
async def test_what_is_simulated_costs_nothing(house: Any, make: Any, by: str) -> None:
    """Its tokens are told, and a cost of nothing, also where a simulator was given as the vendor's own address."""

    async def ask(arguments: Any, context: Any) -> str:
        await context.complete(question(context, "kimi"))
        return ""

    home = house([make("asks", ask)], providers={"kimi": (once, 6)})
    vendor = Priced("kimi")
    if by == "its provider":
        vendor.simulated = True
    else:
        vendor.answers_simulated = True
    home.gates["kimi"] = ProviderLimiter(vendor, 6, on_error=lambda *_: None)
    metadata = (await home.call(home.session(), 1, "asks")).metadata
    assert (metadata.usage, metadata.cost, metadata.simulated) == (Usage(3, 5), Cost(0.0, "USD"), True)


async def test_a_vendor_that_there_is_not_is_answered_with_what_to_set(house: Any, make: Any) -> None:
    """The tool gets the error before anything is asked, and may ask the other vendor instead."""

    async def either(arguments: Any, context: Any) -> str:
        with pytest.raises(Exception, match="GLM_API_KEY"):
            await context.complete(question(context, "glm"))
        return str((await context.complete(question(context, "kimi"))).text)

    home = house([make("either", either)], providers={"kimi": (once, 6)})
    assert (await home.call(home.session(), 1, "either")).outputs[0].text == "hi"


async def test_what_a_tool_asks_in_a_task_of_its_own_ends_with_the_call(house: Any, make: Any) -> None:
    """A forgotten task keeps no provider's permit."""
    reached, tasks = asyncio.Event(), []

    async def hang(request: CompletionRequest, on_delta: OnDelta | None) -> str:
        reached.set()
        await asyncio.Event().wait()
        return ""

    async def forgetful(arguments: Any, context: Any) -> str:
        tasks.append(asyncio.create_task(context.complete(question(context, "kimi"))))
        await reached.wait()
        return "done"

    home = house([make("forgetful", forgetful)], providers={"kimi": (hang, 6)})
    assert (await home.call(home.session(), 1, "forgetful")).outputs[0].text == "done"
    with pytest.raises(asyncio.CancelledError):
        await tasks[0]
    async with asyncio.timeout(20):
        while home.gates["kimi"].permits.in_use:
            await asyncio.sleep(0.001)


def counted(home: Any, request_id: int) -> int:
    """How many requests the answer says that the vendors were sent."""
    calls: int = home.port.answers[request_id].metadata.provider_calls
    return calls


async def test_what_a_vendor_has_beside_completions_is_asked_through_the_same_door(house: Any, make: Any) -> None:
    """With the provider's permit, within the call's time; provider, time and number of requests are booked."""
    seen: list[tuple[int, float]] = []

    async def listing(arguments: Any, context: Any) -> Any:
        async def ids(word: str, *, timeout_s: float) -> list[str]:
            seen.append((home.gates["kimi"].permits.in_use, timeout_s))
            return [word]

        assert context.abilities("kimi") is home.providers["kimi"]
        await context.complete(question(context, "kimi"))
        return await context.vendor("kimi", partial(ids, "a"))

    home = house([make("listing", listing)], providers={"kimi": (once, 6)})
    result = await home.call(home.session(), 1, "listing", timeout_ms=20_000)
    assert result.structured == ["a"]
    assert (result.metadata.provider, result.metadata.simulated, counted(home, 1)) == ("kimi", True, 2)
    assert result.metadata.timings.provider_ms > 0
    ((in_use, timeout_s),) = seen
    assert in_use == 1
    assert 0 < timeout_s <= 20


@pytest.mark.parametrize("method", ["abilities", "vendor"])
async def test_abilities_of_a_vendor_that_there_is_not_say_what_to_set(house: Any, make: Any, method: str) -> None:
    """As its completions do."""

    async def lost(arguments: Any, context: Any) -> Any:
        return context.abilities("glm") if method == "abilities" else await context.vendor("glm", once)

    home = house([make("lost", lost)], providers={"kimi": (once, 6)})
    error = (await home.call(home.session(), 1, "lost")).error
    assert (error.code, error.retryable) == ("SERVICE_UNAVAILABLE", False)
    assert "GLM_API_KEY" in error.message


async def test_failures_of_any_request_close_a_vendors_door(house: Any, make: Any) -> None:
    """The breaker counts uploads and searches too; what it refuses, and what is refused unsent, is no request."""

    async def down(*, timeout_s: float) -> None:
        raise ServiceUnavailableError("The vendor is down.", executed="maybe")

    async def wrong(*, timeout_s: float) -> None:
        raise InvalidArgumentsError("It takes no such file.")

    async def send(arguments: Any, context: Any) -> Any:
        await context.vendor("kimi", wrong if arguments.get("wrong") else down)

    home = house([make("send", send)], providers={"kimi": (once, 6)})
    session = home.session()
    await home.call(session, 0, "send", arguments={"wrong": True})
    assert counted(home, 0) == 0
    for number in range(1, 6):
        await home.call(session, number, "send")
        assert counted(home, number) == 1
    refused = await home.call(session, 6, "ask")
    assert (refused.error.code, refused.error.executed, counted(home, 6)) == ("SERVICE_UNAVAILABLE", "no", 0)
    assert len(home.provider_errors) == 5


@pytest.fixture
async def priced(house: Any, make: Any) -> Any:
    """A house with a vendor that costs a dollar an answer, tools that ask it and one that does not, and no budget."""

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

    tools = [make("pays", pays, open_world=True), make("lists", lists, open_world=True), make("local", local)]
    home = house(tools, providers={"kimi": (once, 6)})
    home.gates["kimi"] = ProviderLimiter(Priced("kimi"), 6, on_error=lambda *_: None)
    return home


async def test_a_spent_budget_stops_what_asks_a_vendor_and_nothing_else(priced: Any) -> None:
    """Completions and other requests alike, before the provider's permit is taken; local tools go on."""
    priced.budget.amounts = {"USD": 2.0}
    session, gate = priced.session(), priced.gates["kimi"]
    for number in range(2):
        assert (await priced.call(session, number, "pays")).ok
    async with gate.permits, gate.permits, gate.permits, gate.permits, gate.permits, gate.permits:
        for number, name in enumerate(("pays", "lists"), 2):  # every permit is taken, and nobody waits for one
            error = (await priced.call(session, number, name)).error
            assert (error.code, error.executed, error.retryable) == ("RATE_LIMITED", "no", True)
            assert "it resets at" in error.message
            assert 0 < error.retry_after_ms <= 86_400_000
            assert counted(priced, number) == 0
    assert (await priced.call(session, 4, "local")).ok
    assert set(priced.counts().values()) == {0}


async def test_completions_under_way_count_as_they_are_reckoned(priced: Any) -> None:
    """One that may take the rest has it to itself until it is answered."""
    priced.budget.amounts = {"USD": 1.5}
    session = priced.session()
    with priced.budget.reserve(Cost(1.5, "USD")):
        error = (await priced.call(session, 1, "pays")).error
    assert "running calls have reserved the rest" in error.message
    assert (await priced.call(session, 2, "pays")).ok
    error = (await priced.call(session, 3, "pays", arguments={"max_tokens": 10**9})).error
    assert (error.code, error.retryable) == ("RATE_LIMITED", False)
    assert "more than the whole daily budget" in error.message


async def test_what_is_simulated_is_not_reckoned(priced: Any) -> None:
    """It costs nothing, so no budget stops it."""
    priced.budget.amounts = {"USD": 0.5}
    priced.gates["kimi"].provider.simulated = True
    session = priced.session()
    for number in range(3):
        assert (await priced.call(session, number, "pays", arguments={"max_tokens": 10**9})).ok
    assert priced.budget.state()["spent"] == {"USD": 0.0}


@pytest.mark.parametrize("how", ["time", "caller"])
async def test_what_was_given_up_is_booked_by_estimate(house: Any, make: Any, how: str) -> None:
    """The vendor has read the question and may bill it, with what it had said; the answer says so, and is marked."""
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

    home = house([make("asks", ask)], providers={"kimi": (slow, 1)})
    session = home.session()
    if how == "time":
        metadata = (await home.call(session, 1, "asks", timeout_ms=100)).metadata
    else:
        running = home.submit(session, 1, "asks")
        await reached.wait()
        home.router.cancel(session, running.key)
        await home.answered()
        metadata = home.port.answers[1].metadata
    assert (metadata.usage.output_tokens, metadata.usage.estimated) == (3, True)
    assert metadata.usage.input_tokens > 0
    assert metadata.provider_calls == 1


async def test_what_was_never_sent_is_not_booked(house: Any, make: Any) -> None:
    """A call that ran out of time while it stood in line for its vendor took nothing."""

    async def ask(arguments: Any, context: Any) -> str:
        await context.complete(question(context, "kimi"))
        return ""

    home = house([make("asks", ask)], providers={"kimi": (once, 1)})
    async with home.gates["kimi"].permits:
        result = await home.call(home.session(), 1, "asks", timeout_ms=50)
    assert (result.error.code, result.metadata.usage, result.metadata.provider_calls) == ("TIMEOUT", None, 0)
