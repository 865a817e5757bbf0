"""The cache of results: which calls it answers, which results it keeps, and how many."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from toold.daemon.dispatch import call_cache
from toold.protocol.error_codes import NotFoundError, ServiceUnavailableError
from toold.protocol.questions.client_question import QuestionRefusedError
from toold.protocol.tool_call import Principal, ToolResult
from toold.protocol.user_credential import CredentialField
from toold.tools import ToolOutput

from .scripted_tools import AnyArguments, make_tool

WANTED = CredentialField("jira", "api_key")


class Clock:
    """The time, and how far the test has moved it."""

    def __init__(self) -> None:
        self.moved_s = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.moved_s


class Vault:
    """Credentials in memory."""

    page = None

    def __init__(self) -> None:
        self.stored: dict[str, str] = {}
        self.broken = False

    async def value(self, principal: str, wanted: CredentialField) -> str | None:
        if self.broken:
            raise ServiceUnavailableError("The vault is shut.")
        return self.stored.get(principal)


class World:
    """A harness with one cached tool of a source, whose results are numbered."""

    def __init__(self, make_harness: Any, answer: Callable[[Any, Any], Any] | None = None, **more: Any) -> None:
        self.runs = 0
        self.answer = answer
        options: dict[str, Any] = {"source": "shop", "open_world": True} | more
        self.tool = make_tool("count", self._count, **options).cached_for(60.0)
        self.harness = make_harness([self.tool, make_tool("plain", self._count, source="shop", open_world=True)])
        self.clock, self.vault = Clock(), Vault()
        self.cache = self.harness.router.cache
        self.cache._clock, self.cache._credentials = self.clock, self.vault
        self._calls = 0

    async def _count(self, arguments: Any, context: Any) -> Any:
        self.runs += 1
        return f"run {self.runs}" if self.answer is None else await self.answer(arguments, context)

    async def call(self, principal: str = "ada", tool: str = "count", **arguments: Any) -> ToolResult:
        self._calls += 1
        session = self.harness.session(principal=Principal(principal))
        result = await self.harness.call(session, self._calls, tool, arguments=arguments)
        assert isinstance(result, ToolResult)
        return result


async def test_the_same_call_gets_the_result_and_its_age(make_harness: Any) -> None:
    """In another session too, and with the arguments in another order; the tool does not run."""
    world = World(make_harness)
    first = await world.call(a=1, b=[2.5])
    world.clock.moved_s = 7.0
    second = await world.call(b=[2.5], a=1)
    assert (first.text, first.metadata.cache_age_s) == ("run 1", None)
    assert second.text == "run 1"
    assert second.metadata.cache_age_s == pytest.approx(7.0, abs=5.0)
    assert second.metadata.timings.tool_ms == 0
    assert (world.runs, len(world.cache)) == (1, 1)
    assert set(world.harness.counts().values()) == {0}


@pytest.mark.parametrize("other", [{"a": 2}, {"a": "1"}, {}, {"a": 1, "b": None}])
async def test_other_arguments_are_another_call(make_harness: Any, other: dict[str, Any]) -> None:
    """Also those that a sloppy comparison takes for equal."""
    world = World(make_harness)
    await world.call(a=1)
    assert (await world.call(**other)).text == "run 2"


async def test_a_call_that_passes_on_meta_runs(make_harness: Any) -> None:
    """Its server may answer by it; keys about traces change nothing."""
    world = World(make_harness)
    session = world.harness.session(principal=Principal("ada"))

    async def call(request_id: int, meta: dict[str, Any] | None) -> str | None:
        answer: ToolResult = await world.harness.call(session, request_id, "count", arguments={"a": 1}, meta=meta)
        return answer.text

    assert [await call(1, None), await call(2, {"tracestate": "a=1"})] == ["run 1", "run 1"]
    assert [await call(3, {"tenant": 1}), await call(4, {"tenant": 1})] == ["run 2", "run 3"]
    assert await call(5, None) == "run 1"


async def test_principals_share_nothing(make_harness: Any) -> None:
    """The same call of another principal runs."""
    world = World(make_harness)
    assert (await world.call("ada")).text == "run 1"
    assert (await world.call("bob")).text == "run 2"
    assert (await world.call("ada")).text == "run 1"


async def test_only_tools_with_a_time_are_cached(make_harness: Any) -> None:
    """By default a tool has none."""
    world = World(make_harness)
    assert [(await world.call(tool="plain")).text for _ in range(2)] == ["run 1", "run 2"]
    assert len(world.cache) == 0


async def test_a_result_expires(make_harness: Any) -> None:
    """After ``cache_s`` the tool runs again; the sweep deletes the result also if no one asks for it."""
    world = World(make_harness)
    await world.call()
    world.clock.moved_s = 61.0
    assert (await world.call()).text == "run 2"
    world.clock.moved_s = 122.0
    world.cache.delete_expired()
    assert (len(world.cache), world.cache.held_bytes) == (0, 0)


async def test_a_cached_answer_waits_for_nothing(make_harness: Any) -> None:
    """It takes no token of the source's rate limit, and is recorded like any other call."""
    world = World(make_harness)
    rate = type("Rate", (), {"per_minute": 1, "burst": 1})
    world.harness.rates["shop"] = rate
    await world.call()
    assert (await world.call()).text == "run 1"
    refused = await world.call(a=1)
    assert refused.error is not None
    assert refused.error.code == "RATE_LIMITED"
    ages = [result.metadata.cache_age_s for _, result, _ in world.harness.recorder.ended_calls]
    assert [age is not None for age in ages] == [False, True, False]


async def test_a_repeated_request_id_gets_the_first_answer(make_harness: Any) -> None:
    """A cached answer is the final answer of its request id, also after it has expired in the cache."""
    world = World(make_harness)
    await world.call()
    session = world.harness.session(principal=Principal("ada"))
    cached = await world.harness.call(session, "same", "count")
    world.cache.clear()
    repeated = world.harness.submit(session, "same", "count")
    assert isinstance(repeated, ToolResult)
    assert (cached.text, repeated.text, repeated.metadata.replayed) == ("run 1", "run 1", True)
    assert world.runs == 1


async def test_errors_are_not_kept(make_harness: Any) -> None:
    """The next call runs."""

    async def fail(arguments: Any, context: Any) -> Any:
        raise NotFoundError("There is none.")

    world = World(make_harness, fail)
    for _ in range(2):
        assert (await world.call()).error is not None
    assert (world.runs, len(world.cache)) == (2, 0)


@pytest.mark.parametrize(
    "output",
    [
        ToolOutput("kept elsewhere", meta={"toold/retained": {"handle": "h"}}),
        ToolOutput("kept elsewhere", meta={"toold/metadata": {"spilled": True}}),
        ToolOutput("x" * (call_cache.MAX_CACHED_BYTES + 1)),
    ],
    ids=["handle", "spilled", "long"],
)
async def test_handles_and_long_results_are_not_kept(make_harness: Any, output: ToolOutput) -> None:
    """A handle of another toold expires there."""

    async def answer(arguments: Any, context: Any) -> Any:
        return output

    world = World(make_harness, answer)
    for _ in range(2):
        assert (await world.call()).ok
    assert (world.runs, len(world.cache)) == (2, 0)


async def test_what_depends_on_the_client_is_not_kept(make_harness: Any) -> None:
    """A tool that asks what its client answers has a result for that client alone."""

    async def answer(arguments: Any, context: Any) -> Any:
        return f"roots: {'roots' in context.answered_kinds}"

    world = World(make_harness, answer)
    for _ in range(2):
        assert (await world.call()).text == "roots: False"
    assert world.runs == 2


async def test_a_result_after_a_question_is_not_kept(make_harness: Any) -> None:
    """Also if the client could not answer: another one may."""

    async def answer(arguments: Any, context: Any) -> Any:
        with pytest.raises(QuestionRefusedError):
            await context.elicit("Which city?", AnyArguments)
        return "none"

    world = World(make_harness, answer)
    for _ in range(2):
        assert (await world.call()).text == "none"
    assert world.runs == 2


async def test_shaped_results_are_not_kept(make_harness: Any) -> None:
    """A shaped result can name a file that expires."""

    async def answer(arguments: Any, context: Any) -> Any:
        context._call.shaping = {"kept": "h"}
        return "shaped"

    world = World(make_harness, answer)
    for _ in range(2):
        assert (await world.call()).text == "shaped"
    assert world.runs == 2


async def test_a_replaced_credential_gets_nothing_of_the_one_before(make_harness: Any) -> None:
    """If calls are made with the caller's credential, it is part of what a result is kept for; without it they run."""
    world = World(make_harness, credentials=(WANTED,))
    world.vault.stored["ada"] = "old"
    assert [(await world.call()).text for _ in range(2)] == ["run 1", "run 1"]
    world.vault.stored["ada"] = "new"
    assert [(await world.call()).text for _ in range(2)] == ["run 2", "run 2"]
    del world.vault.stored["ada"]
    assert (await world.call()).text == "run 3"
    world.vault.broken = True
    assert (await world.call()).text == "run 4"


async def test_a_tool_that_is_listed_again_runs(make_harness: Any) -> None:
    """Results belong to the tool object that returned them, and are deleted when the catalog loses it."""
    world = World(make_harness)
    await world.call()
    world.cache.keep_only(world.harness.router.catalog.registry)
    assert len(world.cache) == 1
    later = make_harness([world.tool.cached_for(60.0)])
    world.harness.router.catalog = later.router.catalog
    assert (await world.call()).text == "run 2"
    world.harness.router.catalog = make_harness().router.catalog
    world.cache.keep_only(world.harness.router.catalog.registry)
    assert (len(world.cache), world.cache.held_bytes) == (0, 0)


async def test_a_call_from_before_a_clearing_is_not_kept(make_harness: Any) -> None:
    """What it read may be from before the reload."""

    async def answer(arguments: Any, context: Any) -> Any:
        world.cache.clear()
        return "old"

    world = World(make_harness, answer)
    await world.call()
    assert len(world.cache) == 0


async def test_the_principal_with_the_most_loses_its_oldest(make_harness: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results beyond the limit displace those of the principal that fills the cache, the least recently used first."""
    monkeypatch.setattr(call_cache, "MAX_CACHE_BYTES", 4 * call_cache.MIN_COUNTED_BYTES)
    world = World(make_harness)
    await world.call("bob")
    for number in range(3):
        await world.call(a=number)
    await world.call(a=0)
    await world.call(a=3)
    assert (len(world.cache), world.cache.held_bytes) == (4, 4 * call_cache.MIN_COUNTED_BYTES)
    runs = world.runs
    await world.call("bob")
    for number in (0, 2, 3):
        await world.call(a=number)
    assert world.runs == runs
    await world.call(a=1)
    assert world.runs == runs + 1
