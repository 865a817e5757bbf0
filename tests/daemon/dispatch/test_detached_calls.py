"""Detached calls: they outlive their caller, stop in good order, and go on where they were."""

import asyncio
from typing import Any

import msgspec
import pytest
from toold.protocol.tool_call import LOCAL, Principal
from toold.tools import CallInfo


async def say(arguments: Any, context: Any) -> str:
    return "said"


def batch(at_once: int = 2, each: str = "work") -> Any:
    """What detaches itself, and then calls a tool so often as its argument ``count`` says."""

    async def function(arguments: Any, context: Any) -> Any:
        if not context.detached:
            return await context.detach(changed=arguments.get("changed", {}), timeout_s=arguments.get("timeout_s", 60))
        gate = asyncio.Semaphore(at_once)

        async def one(number: int) -> str:
            async with gate:
                result = await context.call(each, {"number": number}, name=str(number))
                return "ok" if result.error is None else str(result.error.code)

        return await asyncio.gather(*(one(number) for number in range(arguments.get("count", 4))))

    return function


class Work:
    """A tool that notes what it did, and waits until it is let go on."""

    def __init__(self) -> None:
        self.done: list[int] = []
        self.begun: list[int] = []
        self._turns = asyncio.Semaphore(0)

    async def __call__(self, arguments: Any, context: Any) -> str:
        self.begun.append(arguments.get("number"))
        await self._turns.acquire()
        self.done.append(arguments.get("number"))
        return "done"

    def let(self, count: int = 1000) -> None:
        """So many that have begun, or will, end."""
        for _ in range(count):
            self._turns.release()


@pytest.fixture
def tools(make: Any) -> Any:
    """The tool ``batch``, and ``work``, which writes."""

    def made(work: Any, **more: Any) -> list[Any]:
        orchestration = make("batch", batch(**more), read_only=False, open_world=True, orchestration=True)
        return [orchestration, make("work", work, read_only=False)]

    return made


async def look_up(home: Any, call_id: str, principal: Principal = LOCAL) -> CallInfo:
    found: CallInfo = await home.router._execution._lookup.look_up(principal, call_id)
    return found


async def begin(home: Any, **arguments: Any) -> str:
    """Detach a batch in a session that ends with it; its id."""
    session = home.session()
    result = await home.call(session, 1, "batch", arguments=arguments)
    assert result.ok, result
    home.router.disconnect(session, home.port)
    return str(result.outputs[0].text)


async def test_it_goes_on_when_its_caller_is_gone(house: Any, tools: Any) -> None:
    """Its caller has its id at once; its result is kept under that, for its principal alone."""
    work = Work()
    home = house(tools(work))
    call_id = await begin(home)
    assert (await look_up(home, call_id)).state == "running"
    assert (await look_up(home, call_id, Principal("token:eve"))).state == "unknown"
    work.let()
    await home.answered()
    known = await look_up(home, call_id)
    assert known.state == "done"
    assert known.result is not None
    assert known.result.structured == ["ok"] * 4
    assert (await look_up(home, call_id, Principal("token:eve"))).state == "unknown"
    assert set(home.counts().values()) == {0}


async def test_it_is_on_the_disk_before_its_id_is_told(house: Any, tools: Any) -> None:
    """Where the disk refuses, nothing is begun, and the caller learns it."""
    home = house(tools(Work()))
    call_id = await begin(home, count=1, changed={"count": 2})
    (order,) = await home.journal.detached_calls()
    assert order.call_id == call_id
    assert msgspec.json.decode(order.arguments) == {"count": 2, "changed": {"count": 2}}

    async def refuse(running: Any, *, replace: bool) -> bool:
        if running.detached:
            home.journal.refuses = True
        return bool(await type(home.journal).start_call(home.journal, running, replace=replace))

    home.journal.start_call = refuse
    refused = await home.call(home.session(), 2, "batch")
    assert (refused.error.code, refused.error.executed) == ("SERVICE_UNAVAILABLE", "no")
    assert [one.id for one in home.router.calls if one.detached] == [call_id]


async def test_a_stop_lets_end_what_was_begun_and_begins_nothing(house: Any, tools: Any) -> None:
    """And writes no end: at the next start it goes on with the rest, under the same id, and repeats nothing."""
    work = Work()
    home = house(tools(work))
    call_id = await begin(home, count=6)
    await home.until(lambda: len(work.begun) == 2)
    closing = asyncio.create_task(home.router.close("The end.", 10.0))
    await asyncio.sleep(0)
    work.let(1)
    await home.until(lambda: len(work.done) == 1)
    for _ in range(20):  # the one that has ended would be followed by the next
        await asyncio.sleep(0)
    assert len(work.begun) == 2
    work.let(1)
    await closing
    assert sorted(work.done) == [0, 1]
    assert [event for event, _ in home.journal.events].count("end") == 3  # of the two, and of what detached them

    again = Work()
    again.let()
    later = house(tools(again), journal=home.journal)
    await later.router.load_detached()
    assert (await look_up(later, call_id)).state == "waiting"
    await later.router.resume_detached()
    await later.answered()
    known = await look_up(later, call_id)
    assert known.result is not None
    assert known.result.structured == ["ok"] * 6
    assert sorted(again.done) == [2, 3, 4, 5]
    ids = [running.id for running, _, _ in home.recorder.ended_calls]  # what the journal writes
    assert f"{call_id}/2~test" in ids
    assert len(set(ids)) == len(ids)


async def test_what_a_crash_cut_off_is_unknown(house: Any, tools: Any) -> None:
    """A write that had begun is not repeated; what never began runs."""
    work = Work()
    home = house(tools(work))
    call_id = await begin(home, count=3)
    await home.until(lambda: len(work.begun) == 2)

    again = Work()
    again.let()
    later = house(tools(again), journal=home.journal)
    await later.router.load_detached()
    await later.router.resume_detached()
    await later.answered()
    known = await look_up(later, call_id)
    assert known.result is not None
    assert known.result.structured == ["OUTCOME_UNKNOWN", "OUTCOME_UNKNOWN", "ok"]
    assert again.done == [2]
    await home.router.close("The end.", 0.0)


async def test_it_makes_any_number_of_calls(house: Any, tools: Any) -> None:
    """The bound on what one call makes is not a detached one's."""
    work = Work()
    work.let()
    home = house(tools(work), max_children=3)
    call_id = await begin(home, count=8)
    await home.answered()
    known = await look_up(home, call_id)
    assert known.result is not None
    assert known.result.structured == ["ok"] * 8


async def test_a_principal_has_so_many(house: Any, tools: Any) -> None:
    """One more is refused, with when to come again; those that wait to go on count too."""
    home = house(tools(Work()), max_detached=1)
    await begin(home)
    refused = await home.call(home.session(), 2, "batch")
    assert (refused.error.code, refused.error.executed) == ("OVER_CAPACITY", "no")
    assert refused.error.retry_after_ms == 10_000
    later = house(tools(Work()), journal=home.journal, max_detached=1)
    await later.router.load_detached()
    assert (await later.call(later.session(), 3, "batch")).error.code == "OVER_CAPACITY"
    await home.router.close("The end.", 0.0)


async def test_its_time_is_its_own_and_goes_on_over_a_restart(house: Any, tools: Any) -> None:
    """It ends at its deadline, whoever asked for it; after a restart it has half a minute at least."""
    home = house(tools(Work()))
    late = await begin(home, timeout_s=0.05)
    await home.answered()
    assert (await look_up(home, late)).outcome == "TIMEOUT"

    call_id = await begin_again(home, timeout_s=1.0)
    later = house(tools(Work()), journal=home.journal)
    await later.router.load_detached()
    await later.router.resume_detached()
    known = await look_up(later, call_id)
    assert known.remaining_s is not None
    assert 20 < known.remaining_s <= 30
    for one in (home, later):
        await one.router.close("The end.", 0.0)


async def begin_again(home: Any, **arguments: Any) -> str:
    result = await home.call(home.session(), 2, "batch", arguments=arguments)
    return str(result.outputs[0].text)


async def test_what_has_no_tool_any_more_waits(house: Any, tools: Any) -> None:
    """It is not lost: it goes on at the start at which its tool is there again."""
    home = house(tools(Work()))
    call_id = await begin(home)
    without = house([], journal=home.journal)
    await without.router.load_detached()
    await without.router.resume_detached()
    assert (await look_up(without, call_id)).state == "waiting"
    assert [order.call_id for order in await home.journal.detached_calls()] == [call_id]
    await home.router.close("The end.", 0.0)


async def test_cancelling_ends_it_with_all_it_makes(house: Any, tools: Any) -> None:
    """By its id, by its principal and nobody else; what has ended is not ended again."""
    work = Work()
    home = house(tools(work))
    call_id = await begin(home)
    await home.until(lambda: len(work.begun) == 2)
    cancel = home.router._execution._lookup.cancel
    assert not cancel(Principal("token:eve"), call_id)
    assert cancel(LOCAL, call_id)
    assert not cancel(LOCAL, call_id)
    await home.answered()
    known = await look_up(home, call_id)
    assert (known.state, known.outcome) == ("failed", "CANCELLED")
    assert not list(home.router.calls)
    assert work.done == []
