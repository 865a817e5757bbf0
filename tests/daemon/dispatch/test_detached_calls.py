"""Detached calls: they outlive their caller, stop cleanly at shutdown, and resume."""

import asyncio
from typing import Any

import msgspec
import pytest
from toold.protocol.tool_call import LOCAL, Principal
from toold.tools import CallInfo


def batch(at_once: int = 2, each: str = "work") -> Any:
    """A function that detaches itself and then calls a tool ``count`` times."""

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
    """A tool that records its runs and waits for permission to continue."""

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
        """Let this many started or future runs end."""
        for _ in range(count):
            self._turns.release()


@pytest.fixture
def tools(make_tool: Any) -> Any:
    """The tools ``batch`` and ``work``, which writes."""

    def made(work: Any, **more: Any) -> list[Any]:
        orchestration = make_tool("batch", batch(**more), read_only=False, open_world=True, orchestration=True)
        return [orchestration, make_tool("work", work, read_only=False)]

    return made


async def look_up(harness: Any, call_id: str, principal: Principal = LOCAL) -> CallInfo:
    result: CallInfo = await harness.router.lookup.look_up(principal, call_id)
    return result


async def begin(harness: Any, **arguments: Any) -> str:
    """Detach a batch in a session that then ends. Returns its id."""
    session = harness.session()
    result = await harness.call(session, 1, "batch", arguments=arguments)
    assert result.ok, result
    harness.router.disconnect(session, harness.port)
    return str(result.outputs[0].text)


@pytest.mark.parametrize(("creator", "right"), [(Principal("token:boss", operator=True), False), (LOCAL, True)])
async def test_a_detached_call_outlives_the_operator_right(
    make_harness: Any, tools: Any, creator: Principal, right: bool
) -> None:
    """Its principal has the right only if it is local, because the token may end before the call does."""
    work = Work()
    harness = make_harness(tools(work))
    session = harness.session()
    session.principal = creator
    assert (await harness.call(session, 1, "batch", arguments={})).ok
    (call,) = [call for call in harness.router.calls if call.detached]
    assert (call.session.principal, call.session.principal.operator) == (creator, right)
    work.let()
    await harness.answered()


async def test_a_detached_call_outlives_its_caller(make_harness: Any, tools: Any) -> None:
    """The caller gets its id at once; its result is stored under that id, for its principal only."""
    work = Work()
    harness = make_harness(tools(work))
    call_id = await begin(harness)
    assert (await look_up(harness, call_id)).state == "running"
    assert (await look_up(harness, call_id, Principal("token:eve"))).state == "unknown"
    work.let()
    await harness.answered()
    known = await look_up(harness, call_id)
    assert known.state == "done"
    assert known.result is not None
    assert known.result.structured == ["ok"] * 4
    assert (await look_up(harness, call_id, Principal("token:eve"))).state == "unknown"
    assert set(harness.counts().values()) == {0}


async def test_a_detached_call_is_journalled_before_its_id_is_sent(make_harness: Any, tools: Any) -> None:
    """If the journal cannot be written, nothing starts and the caller gets the error."""
    harness = make_harness(tools(Work()))
    call_id = await begin(harness, count=1, changed={"count": 2})
    (order,) = await harness.journal.detached_calls()
    assert order.call_id == call_id
    assert msgspec.json.decode(order.arguments) == {"count": 2, "changed": {"count": 2}}

    async def refuse(running: Any, *, replace: bool, task: None = None) -> bool:
        if running.detached:
            harness.journal.refuses = True
        return bool(await type(harness.journal).start_call(harness.journal, running, replace=replace, task=task))

    harness.journal.start_call = refuse
    refused = await harness.call(harness.session(), 2, "batch")
    assert (refused.error.code, refused.error.executed) == ("SERVICE_UNAVAILABLE", "no")
    assert [call.id for call in harness.router.calls if call.detached] == [call_id]


async def test_a_run_that_waits_to_resume_is_not_resumed_by_another_call(make_harness: Any, make_tool: Any) -> None:
    """Until its tools are loaded, a detached call waits; another call that resumed its run would repeat its writes."""
    work = Work()

    async def run(arguments: Any, context: Any) -> Any:
        if arguments.get("resume"):
            await context.resume(arguments.get("resume"))
        elif not context.detached:
            return await context.detach(changed={}, timeout_s=60)
        return (await context.call("work", {"number": 1}, name="step")).outcome

    tools = [make_tool("run", run, read_only=False, orchestration=True), make_tool("work", work, read_only=False)]
    harness = make_harness(tools)
    detached = (await harness.call(harness.session(), 1, "run")).outputs[0].text
    await harness.until(lambda: work.begun)
    later = make_harness(tools, journal=harness.journal)
    await later.router.load_detached()
    refused = await later.call(later.session(), 2, "run", arguments={"resume": detached})
    assert (refused.error.code, detached in refused.error.message, work.begun) == ("REQUEST_ID_CONFLICT", True, [1])
    work.let()
    await harness.answered()


async def test_a_resumed_call_does_not_start_its_detached_call_again(make_harness: Any, make_tool: Any) -> None:
    """If the daemon ends when a child call has started a detached call and has not ended, the resumed child returns
    the same one.
    """
    work = Work()

    async def outer(arguments: Any, context: Any) -> Any:
        if arguments.get("resume"):
            await context.resume(arguments.get("resume"))
        return (await context.call("inner", {}, name="step")).text

    async def inner(arguments: Any, context: Any) -> Any:
        if context.detached:
            return (await context.call("work", {"number": 1}, name="step")).outcome
        return await context.detach(changed={}, timeout_s=60)

    tools = [
        make_tool(name, function, read_only=False, orchestration=True)
        for name, function in [("outer", outer), ("inner", inner)]
    ]
    harness = make_harness([*tools, make_tool("work", work, read_only=False)])
    detached = (await harness.call(harness.session(), 1, "outer")).text
    (outer_id,) = (call_id for call_id, (tool, *_) in harness.journal.runs.items() if tool == "outer")
    child = (outer_id, "step")
    harness.journal.calls[child] = msgspec.structs.replace(
        harness.journal.calls[child], state="interrupted", result=None
    )
    repeat = await harness.call(harness.session(), 2, "outer", arguments={"resume": outer_id})
    assert (repeat.text, list(harness.journal.orders)) == (detached, [detached])
    work.let()
    await harness.answered()


async def test_a_shutdown_finishes_running_children_and_starts_none(make_harness: Any, tools: Any) -> None:
    """No end is written: at the next start the call resumes under the same id and repeats nothing."""
    work = Work()
    harness = make_harness(tools(work))
    call_id = await begin(harness, count=6)
    await harness.until(lambda: len(work.begun) == 2)
    closing = asyncio.create_task(harness.router.close("The end.", 10.0))
    await asyncio.sleep(0)
    work.let(1)
    await harness.until(lambda: len(work.done) == 1)
    for _ in range(20):  # long enough for the next child to start
        await asyncio.sleep(0)
    assert len(work.begun) == 2
    work.let(1)
    await closing
    assert sorted(work.done) == [0, 1]
    assert (await look_up(harness, call_id)).state == "waiting"  # it will resume, so it has not failed
    assert [event for event, _ in harness.journal.events].count(
        "end"
    ) == 3  # of both children and of the call that detached them

    again = Work()
    again.let()
    later = make_harness(tools(again), journal=harness.journal)
    await later.router.load_detached()
    assert (await look_up(later, call_id)).state == "waiting"
    await later.router.resume_detached()
    await later.answered()
    known = await look_up(later, call_id)
    assert known.result is not None
    assert known.result.structured == ["ok"] * 6
    assert sorted(again.done) == [2, 3, 4, 5]
    ids = [running.id for running, _, _ in harness.recorder.ended_calls]  # the calls that the journal writes
    assert f"{call_id}/2~test" in ids
    assert len(set(ids)) == len(ids)


async def test_a_call_that_is_resumed_twice_at_once_runs_once(make_harness: Any, tools: Any) -> None:
    """Two tasks of a node may find the same call, for example after the death of another node and for a request about
    it.
    """
    harness = make_harness(tools(Work()))
    call_id = await begin(harness, count=2)
    await harness.router.close("The end.", 0.0)
    later = make_harness(tools(Work()), journal=harness.journal)
    await later.router.load_detached()
    harness.journal.ready.clear()  # both look for its session
    resumed = asyncio.gather(later.router.resume_detached(), later.router.resume_detached())
    await asyncio.sleep(0)
    harness.journal.ready.set()
    await resumed
    assert [call.id for call in later.router.calls if call.detached] == [call_id]
    await later.answered()
    assert (await look_up(later, call_id)).state == "done"


async def test_a_read_that_a_shutdown_cuts_off_runs_again(make_harness: Any, tools: Any, make_tool: Any) -> None:
    """As after a crash: what can be repeated, such as an agent's model turn, has no end that a resumed run reads."""
    harness = make_harness(
        [tools(None, each="inquire")[0], make_tool("inquire", Work(), read_only=True, open_world=True)]
    )
    call_id = await begin(harness, count=2)
    await harness.until(lambda: sum(call.tool.name == "inquire" and call.entered for call in harness.router.calls) == 2)
    await harness.router.close("The end.", 0.0)

    again = Work()
    again.let()
    repeated = make_tool("inquire", again, read_only=True, open_world=True)
    later = make_harness([tools(None, each="inquire")[0], repeated], journal=harness.journal)
    await later.router.load_detached()
    await later.router.resume_detached()
    await later.answered()
    known = await look_up(later, call_id)
    assert known.result is not None
    assert known.result.structured == ["ok", "ok"]
    assert sorted(again.done) == [0, 1]


async def test_children_interrupted_by_a_crash_are_unknown(make_harness: Any, tools: Any) -> None:
    """A started write is not repeated; children that had not started run."""
    work = Work()
    harness = make_harness(tools(work))
    call_id = await begin(harness, count=3)
    await harness.until(lambda: len(work.begun) == 2)

    again = Work()
    again.let()
    later = make_harness(tools(again), journal=harness.journal)
    await later.router.load_detached()
    await later.router.resume_detached()
    await later.answered()
    known = await look_up(later, call_id)
    assert known.result is not None
    assert known.result.structured == ["OUTCOME_UNKNOWN", "OUTCOME_UNKNOWN", "ok"]
    assert again.done == [2]
    await harness.router.close("The end.", 0.0)


async def test_a_detached_call_makes_any_number_of_children(make_harness: Any, tools: Any) -> None:
    """The limit on children does not apply to it."""
    work = Work()
    work.let()
    harness = make_harness(tools(work), max_children=3)
    call_id = await begin(harness, count=8)
    await harness.answered()
    known = await look_up(harness, call_id)
    assert known.result is not None
    assert known.result.structured == ["ok"] * 8


async def test_detached_calls_per_principal_are_limited(make_harness: Any, tools: Any) -> None:
    """One more is refused with ``retry_after_ms``; calls that wait to resume count too."""
    harness = make_harness(tools(Work()), max_detached=1)
    await begin(harness)
    refused = await harness.call(harness.session(), 2, "batch")
    assert (refused.error.code, refused.error.executed) == ("OVER_CAPACITY", "no")
    assert refused.error.retry_after_ms == 10_000
    later = make_harness(tools(Work()), journal=harness.journal, max_detached=1)
    await later.router.load_detached()
    assert (await later.call(later.session(), 3, "batch")).error.code == "OVER_CAPACITY"
    await harness.router.close("The end.", 0.0)


async def test_its_timeout_continues_over_a_restart(make_harness: Any, tools: Any) -> None:
    """It ends at its own deadline; after a restart it has at least 30 s."""
    harness = make_harness(tools(Work()))
    late = await begin(harness, timeout_s=0.05)
    await harness.answered()
    assert (await look_up(harness, late)).outcome == "TIMEOUT"

    call_id = await begin_again(harness, timeout_s=1.0)
    later = make_harness(tools(Work()), journal=harness.journal)
    await later.router.load_detached()
    await later.router.resume_detached()
    known = await look_up(later, call_id)
    assert known.remaining_s is not None
    assert 20 < known.remaining_s <= 30
    for item in (harness, later):
        await item.router.close("The end.", 0.0)


async def begin_again(harness: Any, **arguments: Any) -> str:
    result = await harness.call(harness.session(), 2, "batch", arguments=arguments)
    return str(result.outputs[0].text)


async def test_a_detached_call_without_its_tool_waits(make_harness: Any, tools: Any) -> None:
    """It resumes at the next start at which its tool exists."""
    harness = make_harness(tools(Work()))
    call_id = await begin(harness)
    without = make_harness([], journal=harness.journal)
    await without.router.load_detached()
    await without.router.resume_detached()
    assert (await look_up(without, call_id)).state == "waiting"
    assert [order.call_id for order in await harness.journal.detached_calls()] == [call_id]
    await harness.router.close("The end.", 0.0)


async def test_cancelling_ends_it_with_its_children(make_harness: Any, tools: Any) -> None:
    """By its id and only for its principal; a finished call cannot be cancelled."""
    work = Work()
    harness = make_harness(tools(work))
    call_id = await begin(harness)
    await harness.until(lambda: len(work.begun) == 2)
    cancel = harness.router.lookup.cancel
    assert not await cancel(Principal("token:eve"), call_id)
    assert await cancel(LOCAL, call_id)
    assert not await cancel(LOCAL, call_id)
    await harness.answered()
    known = await look_up(harness, call_id)
    assert (known.state, known.outcome) == ("failed", "CANCELLED")
    assert not list(harness.router.calls)
    assert work.done == []
