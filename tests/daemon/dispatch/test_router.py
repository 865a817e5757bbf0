"""The router: which calls it accepts, how it ends them, and what remains of them."""

import asyncio
from typing import Any

from toold.daemon.dispatch import ByteLimits
from toold.protocol.tool_call import Principal, TextContent

from .scripted_tools import hang, say


async def test_a_call_is_answered_with_outputs_and_its_times(make_harness: Any, make_tool: Any) -> None:
    """The answer begins with a text block and has the milliseconds of each stage."""
    harness = make_harness([make_tool("say", say)])
    result = await harness.call(harness.session(), 7, "say", arguments={"text": "hello"})
    assert result.outputs == (TextContent("hello"),)
    assert result.error is None
    assert result.metadata.latency_ms >= result.metadata.timings.tool_ms >= 0


async def test_every_call_leaves_one_record(make_harness: Any, make_tool: Any) -> None:
    """Answered and refused calls alike, each once."""
    harness = make_harness([make_tool("say", say)])
    session = harness.session()
    await harness.call(session, 1, "say")
    await harness.call(session, 2, "sya")
    assert [(running.request.request_id, result.ok) for running, result, _ in harness.recorder.ended_calls] == [
        (1, True)
    ]
    assert [(call.request_id, result.ok) for call, result in harness.recorder.refused_calls] == [(2, False)]


async def test_cancel_ends_a_running_call_with_one_answer(make_harness: Any, make_tool: Any) -> None:
    """The answer is CANCELLED; a second cancel finds nothing."""
    harness = make_harness([make_tool("hang", hang)])
    session = harness.session()
    running = harness.submit(session, 1, "hang")
    await asyncio.sleep(0)
    assert harness.router.cancel(session, running.key)
    await harness.answered()
    assert harness.port.answers[1].error.code == "CANCELLED"
    assert not harness.router.cancel(session, running.key)
    assert harness.router.status_of(session, 1) == "done"


async def test_cancel_before_the_first_step_is_answered_too(make_harness: Any, make_tool: Any) -> None:
    """A call that is cancelled right after its acceptance was not executed."""
    harness = make_harness([make_tool("hang", hang)])
    session = harness.session()
    running = harness.submit(session, 1, "hang")
    assert harness.router.cancel(session, running.key)
    await harness.answered()
    assert (harness.port.answers[1].error.code, harness.port.answers[1].error.executed) == ("CANCELLED", "no")


async def test_a_cancel_does_not_reach_another_session(make_harness: Any, make_tool: Any) -> None:
    """The same request id in another session is another call."""
    harness = make_harness([make_tool("hang", hang)])
    mine, other = harness.session("mine"), harness.session("other")
    running = harness.submit(mine, 1, "hang")
    assert not harness.router.cancel(other, running.key)
    harness.router.cancel(mine, running.key)
    await harness.answered()


async def test_accepted_calls_per_session_are_limited(make_harness: Any, make_tool: Any) -> None:
    """Beyond the limit a call is refused at once with ``retry_after_ms``; other sessions are not affected."""
    harness = make_harness([make_tool("hang", hang), make_tool("say", say)], max_accepted_per_session=3)
    session = harness.session()
    calls = [harness.submit(session, number, "hang") for number in range(3)]
    refusal = harness.submit(session, 3, "say")
    assert refusal.error.code == "OVER_CAPACITY"
    assert refusal.error.retry_after_ms
    assert (await harness.call(harness.session("other"), 3, "say")).ok
    for running in calls:
        harness.router.cancel(session, running.key)
    await harness.answered()
    assert (await harness.call(session, 3, "say")).ok


async def test_waiting_calls_are_limited(make_harness: Any, make_tool: Any) -> None:
    """Beyond the limit a call that would wait is refused and leaves no trace in its session."""
    harness = make_harness([make_tool("hang", hang), make_tool("say", say)], max_running=1, max_waiting=2)
    session = harness.session()
    running = [harness.submit(session, 0, "hang")]
    await asyncio.sleep(0)
    running += [harness.submit(session, number, "hang") for number in (1, 2)]
    refusal = harness.submit(session, 3, "say")
    assert refusal.error.code == "OVER_CAPACITY"
    assert harness.router.status_of(session, 3) == "unknown"
    for call in running:
        harness.router.cancel(session, call.key)
    await harness.answered()


async def test_one_principal_leaves_room_for_others_among_the_waiting(make_harness: Any, make_tool: Any) -> None:
    """With several principals, one that has three quarters of the waiting calls is refused; another one may wait."""
    harness = make_harness([make_tool("hang", hang), make_tool("say", say)], max_running=2, max_waiting=4)
    harness.router.permits.keep_reserve(True)
    first, second, other = harness.session("first"), harness.session("second"), harness.session("other")
    other.principal = Principal("token:other")
    running = [(first, harness.submit(first, 0, "hang")), (other, harness.submit(other, "x", "hang"))]
    await harness.until(lambda: harness.router.permits.in_use == 2)
    running += [(second, harness.submit(second, number, "hang")) for number in (1, 2, 3)]
    refusal = harness.submit(first, 4, "say")
    assert (refusal.error.code, "one principal may have 3" in refusal.error.message) == ("OVER_CAPACITY", True)
    running.append((other, harness.submit(other, "y", "hang")))
    for session, call in running:
        assert harness.router.cancel(session, call.key)
    await harness.answered()


async def test_an_unmetered_tool_answers_when_everything_is_busy(make_harness: Any, make_tool: Any) -> None:
    """``status`` needs no permit."""
    harness = make_harness(
        [make_tool("hang", hang), make_tool("status", say, unmetered=True)], max_running=1, max_waiting=1
    )
    session = harness.session(running=1)
    calls = [harness.submit(session, number, "hang") for number in range(2)]
    await asyncio.sleep(0)
    harness.submit(session, "s", "status")
    while "s" not in harness.port.answers:
        await asyncio.sleep(0.001)
    assert harness.port.answers["s"].ok
    for running in calls:
        harness.router.cancel(session, running.key)
    await harness.answered()


async def test_a_closing_daemon_answers_running_calls_and_refuses_new_ones(make_harness: Any, make_tool: Any) -> None:
    """Calls that finish in time are answered; local calls may be sent again, others have an unknown outcome."""
    harness = make_harness([make_tool("hang", hang), make_tool("write", hang, read_only=False), make_tool("say", say)])
    session = harness.session()
    harness.submit(session, "local", "hang")
    harness.submit(session, "write", "write")
    await asyncio.sleep(0)
    harness.submit(session, "quick", "say")
    await harness.router.close("The daemon stops.", 0.05)
    assert harness.port.answers["quick"].ok
    assert harness.port.answers["local"].error.code == "SERVICE_UNAVAILABLE"
    assert harness.port.answers["write"].error.code == "OUTCOME_UNKNOWN"
    refusal = harness.submit(session, "late", "say")
    assert (refusal.error.code, refusal.error.executed) == ("SERVICE_UNAVAILABLE", "no")
    assert set(harness.counts().values()) == {0}


async def test_the_operator_ends_a_call_by_its_id(make_harness: Any, make_tool: Any) -> None:
    """Its caller learns who ended it; an unknown id ends nothing."""
    harness = make_harness([make_tool("hang", hang)])
    running = harness.submit(harness.session(), 1, "hang")
    await asyncio.sleep(0)
    assert [call.id for call in harness.router.calls] == [running.id]
    assert not await harness.router.cancel_by_operator(f"{running.id}x")
    assert await harness.router.cancel_by_operator(running.id)
    await harness.answered()
    error = harness.port.answers[1].error
    assert error.code == "CANCELLED"
    assert "operator" in error.message


async def test_durability_is_reported(make_harness: Any) -> None:
    """As the journal's last write found it."""
    harness = make_harness()
    assert harness.router.durable
    harness.journal.refuses = True
    assert not harness.router.durable


async def test_the_frames_of_calls_in_flight_are_limited(make_harness: Any, make_tool: Any) -> None:
    """A call whose frame would exceed the limit is refused before it runs, and can be retried after an answer."""
    go = asyncio.Event()

    async def wait(arguments: Any, context: Any) -> str:
        await go.wait()
        return "done"

    harness = make_harness([make_tool("wait", wait)], request_bytes=ByteLimits(10_000, 15_000, 20_000))
    session = harness.session()
    harness.submit(session, 1, "wait", frame_bytes=6_000)
    error = harness.submit(session, 2, "wait", frame_bytes=6_000).error
    assert (error.code, error.executed, error.retryable) == ("OVER_CAPACITY", "no", True)
    assert error.retry_after_ms
    assert "the limit of this session (10,000 bytes)" in error.message
    harness.submit(session, 3, "wait", frame_bytes=4_000)  # a small frame is not counted
    assert harness.router.requests.total == 6_000
    go.set()
    await harness.answered()
    assert harness.router.requests.total == 0
    assert (await harness.call(session, 2, "wait", frame_bytes=6_000)).ok
