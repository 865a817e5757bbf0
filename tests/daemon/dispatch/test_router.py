"""A call until it runs: what is accepted, refused, replayed or ended, and through which port it is answered."""

import asyncio
from typing import Any

import pytest
from toold.daemon.dispatch import ByteLimits
from toold.protocol.tool_call import Principal, TextContent, ToolResult
from toold.tools import ToolCatalog, ToolRegistry, shipped_toolsets


async def say(arguments: Any, context: Any) -> Any:
    return arguments.get("text", "said")


async def hang(arguments: Any, context: Any) -> Any:
    await asyncio.Event().wait()


def raising(error: BaseException) -> Any:
    async def function(arguments: Any, context: Any) -> Any:
        raise error

    return function


async def test_a_call_is_answered_with_outputs_and_its_times(make_harness: Any, make: Any) -> None:
    """The answer begins with a text block and has the milliseconds of each stage."""
    harness = make_harness([make("say", say)])
    result = await harness.call(harness.session(), 7, "say", arguments={"text": "hello"})
    assert result.outputs == (TextContent("hello"),)
    assert result.error is None
    assert result.metadata.latency_ms >= result.metadata.timings.tool_ms >= 0


async def test_every_call_leaves_one_record(make_harness: Any, make: Any) -> None:
    """Answered and refused calls alike, each once."""
    harness = make_harness([make("say", say)])
    session = harness.session()
    await harness.call(session, 1, "say")
    await harness.call(session, 2, "sya")
    assert [(running.request.request_id, result.ok) for running, result, _ in harness.recorder.ended_calls] == [
        (1, True)
    ]
    assert [(call.request_id, result.ok) for call, result in harness.recorder.refused_calls] == [(2, False)]


async def test_an_unknown_tool_is_refused_with_a_suggestion(make_harness: Any, make: Any) -> None:
    """Nothing was accepted, nothing executed."""
    harness = make_harness([make("codereview", say)])
    refusal = harness.submit(harness.session(), 1, "codereveiw")
    assert isinstance(refusal, ToolResult)
    assert refusal.error is not None
    assert (refusal.error.code, refusal.error.executed) == ("TOOL_NOT_FOUND", "no")
    assert "codereview" in refusal.error.message


async def test_a_toolset_limits_calls(make_harness: Any, make: Any) -> None:
    """A tool outside the toolset is not found, and the error names the toolsets that contain it."""
    harness = make_harness([make("chat", say), make("other", say)])
    session = harness.session(toolset="lean")
    assert (await harness.call(session, 1, "chat", arguments={"text": "a"})).ok
    refusal = harness.submit(session, 2, "other")
    assert refusal.error.code == "TOOL_NOT_FOUND"
    assert (
        "not in the toolset 'lean' of this session; connect with a toolset that has it: standard, full, code, hybrid."
        in (refusal.error.message)
    )
    assert (await harness.call(harness.session(), 2, "other")).ok


async def test_an_accepted_call_is_answered_even_if_its_tool_is_gone(make_harness: Any, make: Any) -> None:
    """Its id attaches while it runs and is replayed afterwards; a new call of the tool is not found."""
    harness = make_harness([make("say", say), make("hang", hang, read_only=False)])
    session = harness.session()
    done = await harness.call(session, 1, "say", arguments={"text": "a"})
    running = harness.submit(session, 2, "hang")
    await harness.until(lambda: running.entered)
    harness.router.catalog = ToolCatalog(ToolRegistry([]), shipped_toolsets(), "standard")
    assert harness.submit(session, 1, "say", {"text": "a"}).outputs == done.outputs
    assert harness.submit(session, 1, "say", {"text": "b"}).error.code == "REQUEST_ID_CONFLICT"
    assert harness.submit(session, 2, "hang") is None
    assert harness.submit(session, 3, "say", {"text": "a"}).error.code == "TOOL_NOT_FOUND"
    harness.router.cancel(session, running.key)
    await harness.answered()


async def test_cancel_ends_a_running_call_with_one_answer(make_harness: Any, make: Any) -> None:
    """The answer is CANCELLED; a second cancel finds nothing."""
    harness = make_harness([make("hang", hang)])
    session = harness.session()
    running = harness.submit(session, 1, "hang")
    await asyncio.sleep(0)
    assert harness.router.cancel(session, running.key)
    await harness.answered()
    assert harness.port.answers[1].error.code == "CANCELLED"
    assert not harness.router.cancel(session, running.key)
    assert harness.router.status_of(session, 1) == "done"


async def test_cancel_before_the_first_step_is_answered_too(make_harness: Any, make: Any) -> None:
    """A call that is cancelled right after its acceptance was not executed."""
    harness = make_harness([make("hang", hang)])
    session = harness.session()
    running = harness.submit(session, 1, "hang")
    assert harness.router.cancel(session, running.key)
    await harness.answered()
    assert (harness.port.answers[1].error.code, harness.port.answers[1].error.executed) == ("CANCELLED", "no")


async def test_a_cancel_does_not_reach_another_session(make_harness: Any, make: Any) -> None:
    """The same request id in another session is another call."""
    harness = make_harness([make("hang", hang)])
    mine, other = harness.session("mine"), harness.session("other")
    running = harness.submit(mine, 1, "hang")
    assert not harness.router.cancel(other, running.key)
    harness.router.cancel(mine, running.key)
    await harness.answered()


async def test_the_same_id_attaches_or_conflicts(make_harness: Any, make: Any) -> None:
    """A repeat of a running call gets no second answer; other content under its id is refused."""
    harness = make_harness([make("hang", hang), make("say", say)])
    session = harness.session()
    running = harness.submit(session, 1, "hang", {"a": 1})
    assert harness.submit(session, 1, "hang", {"a": 1}) is None
    conflict = harness.submit(session, 1, "hang", {"a": 2})
    assert conflict.error.code == "REQUEST_ID_CONFLICT"
    assert (await harness.call(session, "1", "say")).ok  # the string is a different id
    harness.router.cancel(session, running.key)
    await harness.answered()


async def test_a_finished_calls_id_replays_its_result(make_harness: Any, make: Any) -> None:
    """The tool runs once; a repeat gets the same outputs, marked as replayed; other content is refused."""
    runs: list[int] = []

    async def count(arguments: Any, context: Any) -> Any:
        runs.append(1)
        return {"run": len(runs)}

    harness = make_harness([make("count", count, read_only=False)])
    session = harness.session()
    first = await harness.call(session, 1, "count", arguments={"a": 1})
    again = harness.submit(session, 1, "count", {"a": 1})
    assert isinstance(again, ToolResult)
    assert (again.outputs, again.structured, again.metadata.replayed) == (first.outputs, {"run": 1}, True)
    assert first.metadata.replayed is None
    assert harness.submit(session, 1, "count", {"a": 2}).error.code == "REQUEST_ID_CONFLICT"
    assert runs == [1]
    assert len(harness.recorder.ended_calls) == 1


async def test_a_call_with_an_expired_result_does_not_run_again(make_harness: Any, make: Any) -> None:
    """A write is never repeated because its answer was deleted; a local call may be."""
    harness = make_harness([make("write", say, read_only=False), make("say", say)], max_cached_result_bytes=1)
    session = harness.session()
    for request_id, name in ((1, "write"), (2, "say")):
        await harness.call(session, request_id, name)
    expired = harness.submit(session, 1, "write")
    assert (expired.error.code, expired.error.executed, expired.error.retryable) == ("RESULT_EXPIRED", "yes", False)
    assert (harness.router.status_of(session, 1), harness.router.status_of(session, 2)) == ("expired", "unknown")
    del harness.port.answers[2]
    assert (await harness.call(session, 2, "say")).ok


async def test_failed_calls_are_replayed_as_failed(make_harness: Any, make: Any) -> None:
    """An error is an answer: the same id gets it again."""
    harness = make_harness([make("bad", raising(ValueError("x")))])
    session = harness.session()
    await harness.call(session, 1, "bad")
    again = harness.submit(session, 1, "bad")
    assert (again.error.code, again.metadata.replayed) == ("TOOL_EXECUTION_ERROR", True)


async def test_two_sessions_with_the_same_request_id_get_their_own_results(make_harness: Any, make: Any) -> None:
    """An id is scoped to its session."""
    harness = make_harness([make("say", say)])
    ports = [type(harness.port)() for _ in range(2)]
    for port, label in zip(ports, ("one", "two"), strict=True):
        harness.submit(harness.session(label), "same", "say", {"text": label}, port=port)
    await harness.answered()
    assert [port.answers["same"].outputs[0].text for port in ports] == ["one", "two"]


async def test_accepted_calls_per_session_are_limited(make_harness: Any, make: Any) -> None:
    """Beyond the limit a call is refused at once with ``retry_after_ms``; other sessions are not affected."""
    harness = make_harness([make("hang", hang), make("say", say)], max_accepted_per_session=3)
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


async def test_waiting_calls_are_limited(make_harness: Any, make: Any) -> None:
    """Beyond the limit a call that would wait is refused and leaves no trace in its session."""
    harness = make_harness([make("hang", hang), make("say", say)], max_running=1, max_waiting=2)
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


async def test_one_principal_leaves_room_for_others_among_the_waiting(make_harness: Any, make: Any) -> None:
    """With several principals, one that has three quarters of the waiting calls is refused; another one may wait."""
    harness = make_harness([make("hang", hang), make("say", say)], max_running=2, max_waiting=4)
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


async def test_an_unmetered_tool_answers_when_everything_is_busy(make_harness: Any, make: Any) -> None:
    """``status`` needs no permit."""
    harness = make_harness([make("hang", hang), make("status", say, unmetered=True)], max_running=1, max_waiting=1)
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


async def test_long_calls_send_heartbeats(make_harness: Any, make: Any) -> None:
    """Running and waiting calls of one port are reported together."""
    harness = make_harness([make("hang", hang)], max_running=1, progress_interval_s=0.04)
    session = harness.session()
    calls = [harness.submit(session, number, "hang") for number in range(2)]
    heartbeats = asyncio.create_task(harness.router.send_heartbeats())
    while harness.port.heartbeats < 3:
        await asyncio.sleep(0.001)
    heartbeats.cancel()
    messages = {request_id: progress.message for request_id, progress in harness.port.heard}
    assert "running" in messages[0]
    assert "waiting" in messages[1]
    for running in calls:
        harness.router.cancel(session, running.key)
    await harness.answered()


async def test_a_closing_daemon_answers_running_calls_and_refuses_new_ones(make_harness: Any, make: Any) -> None:
    """Calls that finish in time are answered; local calls may be sent again, others have an unknown outcome."""
    harness = make_harness([make("hang", hang), make("write", hang, read_only=False), make("say", say)])
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


async def test_the_operator_ends_a_call_by_its_id(make_harness: Any, make: Any) -> None:
    """Its caller learns who ended it; an unknown id ends nothing."""
    harness = make_harness([make("hang", hang)])
    running = harness.submit(harness.session(), 1, "hang")
    await asyncio.sleep(0)
    assert [one.id for one in harness.router.calls] == [running.id]
    assert not harness.router.cancel_by_operator(f"{running.id}x")
    assert harness.router.cancel_by_operator(running.id)
    await harness.answered()
    error = harness.port.answers[1].error
    assert error.code == "CANCELLED"
    assert "operator" in error.message


async def test_a_closing_daemon_still_replays(make_harness: Any, make: Any) -> None:
    """Only new calls are refused: a repeat gets its stored result."""
    harness = make_harness([make("say", say)])
    session = harness.session()
    await harness.call(session, 1, "say")
    await harness.router.close("The daemon stops.", 0)
    replay = harness.submit(session, 1, "say")
    assert (replay.ok, replay.metadata.replayed) == (True, True)
    assert harness.submit(session, 2, "say").error.code == "SERVICE_UNAVAILABLE"
    assert harness.router.status_of(session, 2) == "unknown"


# --- connections -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "read_only", "on_disconnect", "ends"),
    [
        (None, True, None, True),
        (None, False, None, False),
        ("key", True, None, False),
        ("key", False, None, False),
        (None, True, "keep", False),
        (None, False, "cancel", True),
        ("key", True, "cancel", True),
    ],
)
async def test_calls_end_or_continue_when_their_connection_closes(
    make_harness: Any, make: Any, key: str | None, read_only: bool, on_disconnect: Any, ends: bool
) -> None:
    """As the caller requested; by default calls continue if the session can be resumed or they may write."""
    proceed = asyncio.Event()

    async def wait(arguments: Any, context: Any) -> Any:
        await proceed.wait()

    harness = make_harness([make("wait", wait, read_only=read_only)])
    session = harness.session(key=key)
    running = harness.submit(session, 1, "wait", on_disconnect=on_disconnect)
    await harness.until(lambda: running.entered)
    harness.router.disconnect(session, harness.port)
    proceed.set()
    await harness.answered()
    assert harness.port.answers == {}
    assert harness.absent_port.answers[1].outcome == ("CANCELLED" if ends else "ok")


async def test_a_takeover_receives_the_answers_of_running_calls(make_harness: Any, make: Any) -> None:
    """Through the new port only; the later end of the old connection has no effect."""
    harness = make_harness([make("hang", hang, read_only=False)])
    session = harness.session(key="key")
    running = harness.submit(session, 1, "hang", on_disconnect="cancel")
    await harness.until(lambda: running.entered)
    back = await harness.resume("key")
    assert (back.session, back.superseded, back.missed) == (session, harness.port, {})
    assert [request_id for request_id, _ in back.port.heard] == [1]
    harness.router.disconnect(session, harness.port)
    assert running.end_reason is None
    harness.router.cancel(session, running.key)
    await harness.answered()
    assert (harness.port.answers, back.port.answers[1].outcome) == ({}, "CANCELLED")


async def test_a_takeover_during_the_journal_write_receives_the_answer(make_harness: Any, make: Any) -> None:
    """The call is running until its result is persisted; a later connection finds it cached."""

    async def write(arguments: Any, context: Any) -> Any:
        harness.journal.ready.clear()
        return "written"

    harness = make_harness([make("write", write, read_only=False)])
    session = harness.session(key="key")
    harness.submit(session, 1, "write")
    await harness.until(lambda: harness.journal.asked["end"])
    back = await harness.resume("key")
    assert back.missed == {}
    harness.journal.ready.set()
    await harness.answered()
    assert (harness.port.answers, back.port.answers[1].ok) == ({}, True)


async def test_an_answer_stuck_on_the_old_connection_is_redelivered(make_harness: Any, make: Any) -> None:
    """The daemon cannot know whether it arrived; the call counts until the old delivery is abandoned."""
    harness = make_harness([make("write", say, read_only=False)])
    session = harness.session(key="key")
    harness.port.reading.clear()
    harness.submit(session, 1, "write")
    await harness.until(lambda: harness.router.status_of(session, 1) == "done")
    back = await harness.resume("key")
    assert (back.missed[1].ok, harness.port.answers, len(session.calls)) == (True, {}, 1)
    harness.port.reading.set()
    await harness.answered()
    assert (back.port.answers, len(session.calls)) == ({}, 0)


async def test_a_report_is_repeated_within_its_window_only(make_harness: Any, make: Any) -> None:
    """A later reconnect gets how long the call has run, not an old report."""

    async def reports(arguments: Any, context: Any) -> Any:
        context.progress("half")
        await asyncio.Event().wait()

    harness = make_harness([make("reports", reports)])
    session = harness.session(key="key")
    running = harness.submit(session, 1, "reports")
    await harness.until(lambda: harness.port.heard)
    soon = await harness.resume("key")
    running.last_progress_at -= harness.router.limits.progress_window_s + 1
    late = await harness.resume("key")
    assert [progress.message for _, progress in soon.port.heard] == ["half"]
    assert ["half" in progress.message for _, progress in late.port.heard] == [False]
    harness.router.cancel(session, running.key)
    await harness.answered()


async def test_acknowledged_results_are_deleted_from_disk_too(make_harness: Any, make: Any) -> None:
    """For resumable sessions; others have no results on disk."""
    harness = make_harness([make("write", say, read_only=False)])
    lasting, plain = harness.session("lasting", key="key"), harness.session("plain")
    for session, request_id in ((lasting, 1), (plain, 2)):
        await harness.call(session, request_id, "write")
        harness.router.acknowledge(session, [request_id, "never heard of"])
    assert [event for event in harness.journal.events if event[0] == "forget"] == [("forget", "n1")]
    assert harness.router.status_of(lasting, 1) == "expired"


async def test_durability_is_reported(make_harness: Any) -> None:
    """As the journal's last write found it."""
    harness = make_harness()
    assert harness.router.durable
    harness.journal.refuses = True
    assert not harness.router.durable


async def test_the_frames_of_calls_in_flight_are_limited(make_harness: Any, make: Any) -> None:
    """A call whose frame would exceed the limit is refused before it runs, and can be retried after an answer."""
    go = asyncio.Event()

    async def wait(arguments: Any, context: Any) -> str:
        await go.wait()
        return "done"

    harness = make_harness([make("wait", wait)], request_bytes=ByteLimits(10_000, 15_000, 20_000))
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
