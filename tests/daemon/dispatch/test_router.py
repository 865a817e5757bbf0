"""The road of a call up to its run: what is accepted, refused, replayed or ended, and through whom it is answered."""

import asyncio
from typing import Any

import pytest
from toold.protocol.tool_call import TextContent, ToolResult
from toold.tools import ToolCatalog, ToolRegistry, shipped_toolsets


async def say(arguments: Any, context: Any) -> Any:
    return arguments.get("text", "said")


async def hang(arguments: Any, context: Any) -> Any:
    await asyncio.Event().wait()


def raising(error: BaseException) -> Any:
    async def function(arguments: Any, context: Any) -> Any:
        raise error

    return function


async def test_a_call_is_answered_with_outputs_and_its_times(house: Any, make: Any) -> None:
    """The answer has a text block first and the milliseconds of each part of its road."""
    home = house([make("say", say)])
    result = await home.call(home.session(), 7, "say", arguments={"text": "hello"})
    assert result.outputs == (TextContent("hello"),)
    assert result.error is None
    assert result.metadata.latency_ms >= result.metadata.timings.tool_ms >= 0


async def test_every_call_leaves_one_record(house: Any, make: Any) -> None:
    """Answered and refused calls alike, each once."""
    home = house([make("say", say)])
    session = home.session()
    await home.call(session, 1, "say")
    await home.call(session, 2, "sya")
    assert [(running.request.request_id, result.ok) for running, result, _ in home.recorder.ended_calls] == [(1, True)]
    assert [(call.request_id, result.ok) for call, result in home.recorder.refused_calls] == [(2, False)]


async def test_an_unknown_tool_is_refused_with_a_suggestion(house: Any, make: Any) -> None:
    """Nothing was accepted, nothing executed."""
    home = house([make("codereview", say)])
    refusal = home.submit(home.session(), 1, "codereveiw")
    assert isinstance(refusal, ToolResult)
    assert refusal.error is not None
    assert (refusal.error.code, refusal.error.executed) == ("TOOL_NOT_FOUND", "no")
    assert "codereview" in refusal.error.message


async def test_a_toolset_bounds_what_may_be_called(house: Any, make: Any) -> None:
    """A tool outside is not found, however well it is known, and whoever has it is named."""
    home = house([make("chat", say), make("other", say)])
    session = home.session(toolset="lean")
    assert (await home.call(session, 1, "chat", arguments={"text": "a"})).ok
    refusal = home.submit(session, 2, "other")
    assert refusal.error.code == "TOOL_NOT_FOUND"
    assert "not in the toolset 'lean' of this session; connect with one that has it: standard, full, code, hybrid." in (
        refusal.error.message
    )
    assert (await home.call(home.session(), 2, "other")).ok


async def test_an_accepted_call_has_its_answer_though_its_tool_is_gone(house: Any, make: Any) -> None:
    """Its id attaches while it runs and is replayed once it is done; another call of the tool is not found."""
    home = house([make("say", say), make("hang", hang, read_only=False)])
    session = home.session()
    done = await home.call(session, 1, "say", arguments={"text": "a"})
    running = home.submit(session, 2, "hang")
    await home.until(lambda: running.entered)
    home.router.catalog = ToolCatalog(ToolRegistry([]), shipped_toolsets(), "standard")
    assert home.submit(session, 1, "say", {"text": "a"}).outputs == done.outputs
    assert home.submit(session, 1, "say", {"text": "b"}).error.code == "REQUEST_ID_CONFLICT"
    assert home.submit(session, 2, "hang") is None
    assert home.submit(session, 3, "say", {"text": "a"}).error.code == "TOOL_NOT_FOUND"
    home.router.cancel(session, running.key)
    await home.answered()


async def test_cancel_ends_a_running_call_with_one_answer(house: Any, make: Any) -> None:
    """The terminal answer is CANCELLED; a second cancel finds nothing."""
    home = house([make("hang", hang)])
    session = home.session()
    running = home.submit(session, 1, "hang")
    await asyncio.sleep(0)
    assert home.router.cancel(session, running.key)
    await home.answered()
    assert home.port.answers[1].error.code == "CANCELLED"
    assert not home.router.cancel(session, running.key)
    assert home.router.status_of(session, 1) == "done"


async def test_cancel_before_the_first_step_is_answered_too(house: Any, make: Any) -> None:
    """A call that is cancelled in the moment it is accepted was not executed."""
    home = house([make("hang", hang)])
    session = home.session()
    running = home.submit(session, 1, "hang")
    assert home.router.cancel(session, running.key)
    await home.answered()
    assert (home.port.answers[1].error.code, home.port.answers[1].error.executed) == ("CANCELLED", "no")


async def test_nobody_cancels_another_sessions_call(house: Any, make: Any) -> None:
    """The same request id in another session is another call."""
    home = house([make("hang", hang)])
    mine, other = home.session("mine"), home.session("other")
    running = home.submit(mine, 1, "hang")
    assert not home.router.cancel(other, running.key)
    home.router.cancel(mine, running.key)
    await home.answered()


async def test_the_same_id_attaches_or_conflicts(house: Any, make: Any) -> None:
    """A repeat of a running call adds no second answer; other content under its id is refused."""
    home = house([make("hang", hang), make("say", say)])
    session = home.session()
    running = home.submit(session, 1, "hang", {"a": 1})
    assert home.submit(session, 1, "hang", {"a": 1}) is None
    conflict = home.submit(session, 1, "hang", {"a": 2})
    assert conflict.error.code == "REQUEST_ID_CONFLICT"
    assert (await home.call(session, "1", "say")).ok  # the string is another id
    home.router.cancel(session, running.key)
    await home.answered()


async def test_a_done_calls_id_replays_its_result(house: Any, make: Any) -> None:
    """The tool runs once; the repeat gets the same outputs, marked as replayed; other content is refused."""
    runs: list[int] = []

    async def count(arguments: Any, context: Any) -> Any:
        runs.append(1)
        return {"run": len(runs)}

    home = house([make("count", count, read_only=False)])
    session = home.session()
    first = await home.call(session, 1, "count", arguments={"a": 1})
    again = home.submit(session, 1, "count", {"a": 1})
    assert isinstance(again, ToolResult)
    assert (again.outputs, again.structured, again.metadata.replayed) == (first.outputs, {"run": 1}, True)
    assert first.metadata.replayed is None
    assert home.submit(session, 1, "count", {"a": 2}).error.code == "REQUEST_ID_CONFLICT"
    assert runs == [1]
    assert len(home.recorder.ended_calls) == 1


async def test_a_result_that_is_not_kept_any_more_is_expired_and_not_run_again(house: Any, make: Any) -> None:
    """A write is never repeated because its answer is gone; a local call may be."""
    home = house([make("write", say, read_only=False), make("say", say)], max_kept_bytes=1)
    session = home.session()
    for request_id, name in ((1, "write"), (2, "say")):
        await home.call(session, request_id, name)
    expired = home.submit(session, 1, "write")
    assert (expired.error.code, expired.error.executed, expired.error.retryable) == ("RESULT_EXPIRED", "yes", False)
    assert (home.router.status_of(session, 1), home.router.status_of(session, 2)) == ("expired", "unknown")
    del home.port.answers[2]
    assert (await home.call(session, 2, "say")).ok


async def test_failed_calls_are_replayed_as_failed(house: Any, make: Any) -> None:
    """An error is an answer like any other: the same id gets it again."""
    home = house([make("bad", raising(ValueError("x")))])
    session = home.session()
    await home.call(session, 1, "bad")
    again = home.submit(session, 1, "bad")
    assert (again.error.code, again.metadata.replayed) == ("TOOL_EXECUTION_ERROR", True)


async def test_two_sessions_with_the_same_request_id_get_their_own_results(house: Any, make: Any) -> None:
    """An id means something within its session only."""
    home = house([make("say", say)])
    ports = [type(home.port)() for _ in range(2)]
    for port, label in zip(ports, ("one", "two"), strict=True):
        home.submit(home.session(label), "same", "say", {"text": label}, port=port)
    await home.answered()
    assert [port.answers["same"].outputs[0].text for port in ports] == ["one", "two"]


async def test_a_session_may_have_only_so_many_calls(house: Any, make: Any) -> None:
    """Past the bound the caller is told at once, and when to come again; another session is not concerned."""
    home = house([make("hang", hang), make("say", say)], max_accepted_per_session=3)
    session = home.session()
    calls = [home.submit(session, number, "hang") for number in range(3)]
    refusal = home.submit(session, 3, "say")
    assert refusal.error.code == "OVER_CAPACITY"
    assert refusal.error.retry_after_ms
    assert (await home.call(home.session("other"), 3, "say")).ok
    for running in calls:
        home.router.cancel(session, running.key)
    await home.answered()
    assert (await home.call(session, 3, "say")).ok


async def test_only_so_many_calls_may_wait(house: Any, make: Any) -> None:
    """Past the bound a call that would wait is refused and leaves no trace in its session."""
    home = house([make("hang", hang), make("say", say)], max_running=1, max_waiting=2)
    session = home.session()
    running = [home.submit(session, 0, "hang")]
    await asyncio.sleep(0)
    running += [home.submit(session, number, "hang") for number in (1, 2)]
    refusal = home.submit(session, 3, "say")
    assert refusal.error.code == "OVER_CAPACITY"
    assert home.router.status_of(session, 3) == "unknown"
    for call in running:
        home.router.cancel(session, call.key)
    await home.answered()


async def test_an_unmetered_tool_answers_when_everything_is_busy(house: Any, make: Any) -> None:
    """Status takes no permit."""
    home = house([make("hang", hang), make("status", say, unmetered=True)], max_running=1, max_waiting=1)
    session = home.session(running=1)
    calls = [home.submit(session, number, "hang") for number in range(2)]
    await asyncio.sleep(0)
    home.submit(session, "s", "status")
    while "s" not in home.port.answers:
        await asyncio.sleep(0.001)
    assert home.port.answers["s"].ok
    for running in calls:
        home.router.cancel(session, running.key)
    await home.answered()


async def test_a_long_call_is_heard_of_on_every_beat(house: Any, make: Any) -> None:
    """Running and waiting calls of one port are told of together."""
    home = house([make("hang", hang)], max_running=1, progress_interval_s=0.04)
    session = home.session()
    calls = [home.submit(session, number, "hang") for number in range(2)]
    beat = asyncio.create_task(home.router.send_heartbeats())
    while home.port.beats < 3:
        await asyncio.sleep(0.001)
    beat.cancel()
    messages = {request_id: progress.message for request_id, progress in home.port.heard}
    assert "running" in messages[0]
    assert "waiting" in messages[1]
    for running in calls:
        home.router.cancel(session, running.key)
    await home.answered()


async def test_a_closing_daemon_answers_everything_and_takes_nothing(house: Any, make: Any) -> None:
    """What finishes in time is answered; local calls may be sent again, others have an unknown outcome."""
    home = house([make("hang", hang), make("write", hang, read_only=False), make("say", say)])
    session = home.session()
    home.submit(session, "local", "hang")
    home.submit(session, "write", "write")
    await asyncio.sleep(0)
    home.submit(session, "quick", "say")
    await home.router.close("The daemon stops.", 0.05)
    assert home.port.answers["quick"].ok
    assert home.port.answers["local"].error.code == "SERVICE_UNAVAILABLE"
    assert home.port.answers["write"].error.code == "OUTCOME_UNKNOWN"
    refusal = home.submit(session, "late", "say")
    assert (refusal.error.code, refusal.error.executed) == ("SERVICE_UNAVAILABLE", "no")
    assert set(home.counts().values()) == {0}


async def test_the_operator_ends_a_call_by_its_own_id(house: Any, make: Any) -> None:
    """Whoever made it learns who ended it; an id that does not run ends nothing."""
    home = house([make("hang", hang)])
    running = home.submit(home.session(), 1, "hang")
    await asyncio.sleep(0)
    assert [one.id for one in home.router.calls] == [running.id]
    assert not home.router.cancel_by_operator(f"{running.id}x")
    assert home.router.cancel_by_operator(running.id)
    await home.answered()
    error = home.port.answers[1].error
    assert error.code == "CANCELLED"
    assert "operator" in error.message


async def test_a_closing_daemon_still_tells_what_it_knows(house: Any, make: Any) -> None:
    """Only new calls are refused: a repeat gets its stored result."""
    home = house([make("say", say)])
    session = home.session()
    await home.call(session, 1, "say")
    await home.router.close("The daemon stops.", 0)
    replay = home.submit(session, 1, "say")
    assert (replay.ok, replay.metadata.replayed) == (True, True)
    assert home.submit(session, 2, "say").error.code == "SERVICE_UNAVAILABLE"
    assert home.router.status_of(session, 2) == "unknown"


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
async def test_what_becomes_of_a_call_when_its_connection_ends(
    house: Any, make: Any, key: str | None, read_only: bool, on_disconnect: Any, ends: bool
) -> None:
    """As its caller said; else what its client may come back for goes on, and so does what may write."""
    go_on = asyncio.Event()

    async def wait(arguments: Any, context: Any) -> Any:
        await go_on.wait()

    home = house([make("wait", wait, read_only=read_only)])
    session = home.session(key=key)
    running = home.submit(session, 1, "wait", on_disconnect=on_disconnect)
    await home.until(lambda: running.entered)
    home.router.disconnect(session, home.port)
    go_on.set()
    await home.answered()
    assert home.port.answers == {}
    assert home.away.answers[1].outcome == ("CANCELLED" if ends else "ok")


async def test_who_takes_over_gets_the_answers_of_what_runs(house: Any, make: Any) -> None:
    """Through the new port only; that the old connection ends later means nothing any more."""
    home = house([make("hang", hang, read_only=False)])
    session = home.session(key="key")
    running = home.submit(session, 1, "hang", on_disconnect="cancel")
    await home.until(lambda: running.entered)
    back = await home.resume("key")
    assert (back.session, back.superseded, back.missed) == (session, home.port, {})
    assert [request_id for request_id, _ in back.port.heard] == [1]
    home.router.disconnect(session, home.port)
    assert running.end_reason is None
    home.router.cancel(session, running.key)
    await home.answered()
    assert (home.port.answers, back.port.answers[1].outcome) == ({}, "CANCELLED")


async def test_an_answer_goes_to_who_takes_over_while_the_disk_has_it_written(house: Any, make: Any) -> None:
    """The call is running until its result is on the disk; who comes before is told, who comes after finds it kept."""

    async def write(arguments: Any, context: Any) -> Any:
        home.journal.ready.clear()
        return "written"

    home = house([make("write", write, read_only=False)])
    session = home.session(key="key")
    home.submit(session, 1, "write")
    await home.until(lambda: home.journal.asked["end"])
    back = await home.resume("key")
    assert back.missed == {}
    home.journal.ready.set()
    await home.answered()
    assert (home.port.answers, back.port.answers[1].ok) == ({}, True)


async def test_an_answer_that_hangs_on_its_way_to_the_old_connection_is_among_the_kept(house: Any, make: Any) -> None:
    """Whether it arrived nobody knows, so it is told again; the call counts until the old way is given up."""
    home = house([make("write", say, read_only=False)])
    session = home.session(key="key")
    home.port.reading.clear()
    home.submit(session, 1, "write")
    await home.until(lambda: home.router.status_of(session, 1) == "done")
    back = await home.resume("key")
    assert (back.missed[1].ok, home.port.answers, len(session.calls)) == (True, {}, 1)
    home.port.reading.set()
    await home.answered()
    assert (back.port.answers, len(session.calls)) == ({}, 0)


async def test_a_report_is_told_again_within_its_window_only(house: Any, make: Any) -> None:
    """Who comes back later is told how long the call has run, not what it said long ago."""

    async def reports(arguments: Any, context: Any) -> Any:
        context.progress("half")
        await asyncio.Event().wait()

    home = house([make("reports", reports)])
    session = home.session(key="key")
    running = home.submit(session, 1, "reports")
    await home.until(lambda: home.port.heard)
    soon = await home.resume("key")
    running.last_progress_at -= home.router.limits.progress_window_s + 1
    late = await home.resume("key")
    assert [progress.message for _, progress in soon.port.heard] == ["half"]
    assert ["half" in progress.message for _, progress in late.port.heard] == [False]
    home.router.cancel(session, running.key)
    await home.answered()


async def test_what_a_client_forgets_is_forgotten_on_the_disk_too(house: Any, make: Any) -> None:
    """Of a session that can be come back to; of others the disk has nothing to tell."""
    home = house([make("write", say, read_only=False)])
    lasting, plain = home.session("lasting", key="key"), home.session("plain")
    for session, request_id in ((lasting, 1), (plain, 2)):
        await home.call(session, request_id, "write")
        home.router.acknowledge(session, [request_id, "never heard of"])
    assert [event for event in home.journal.events if event[0] == "forget"] == [("forget", "n1")]
    assert home.router.status_of(lasting, 1) == "expired"


async def test_the_daemon_says_whether_results_reach_the_disk(house: Any) -> None:
    """As the journal finds it at that moment."""
    home = house()
    assert home.router.durable
    home.journal.refuses = True
    assert not home.router.durable
