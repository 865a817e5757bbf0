"""The road of a call: exactly one terminal answer, whatever the tool and the caller do."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toold.protocol.calls import TextContent, ToolResult
from toold.protocol.errors import PermissionDeniedError, ToolExecutionError
from toold.providers import CompletionRequest, Delta, OnDelta


async def say(arguments: Any, context: Any) -> Any:
    return arguments.get("text", "said")


async def hang(arguments: Any, context: Any) -> Any:
    await asyncio.Event().wait()


async def data(arguments: Any, context: Any) -> Any:
    return arguments.get("value")


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
    assert [(running.call.request_id, result.ok) for running, result, _ in home.recorder.ended_calls] == [(1, True)]
    assert [(call.request_id, result.ok) for call, result in home.recorder.refused_calls] == [(2, False)]


async def test_an_unknown_tool_is_refused_with_a_suggestion(house: Any, make: Any) -> None:
    """Nothing was accepted, nothing executed."""
    home = house([make("codereview", say)])
    refusal = home.submit(home.session(), 1, "codereveiw")
    assert isinstance(refusal, ToolResult)
    assert refusal.error is not None
    assert (refusal.error.code, refusal.error.executed) == ("TOOL_NOT_FOUND", "no")
    assert "codereview" in refusal.error.message


@pytest.mark.parametrize(
    ("error", "code", "word"),
    [
        (ValueError("/home/operator/key"), "TOOL_EXECUTION_ERROR", "failed with ValueError"),
        (SystemExit(3), "TOOL_EXECUTION_ERROR", "SystemExit"),
        (KeyboardInterrupt(), "TOOL_EXECUTION_ERROR", "KeyboardInterrupt"),
        (asyncio.CancelledError(), "TOOL_EXECUTION_ERROR", "CancelledError"),
        (TimeoutError("its own"), "TOOL_EXECUTION_ERROR", "TimeoutError"),
        (RecursionError(), "TOOL_EXECUTION_ERROR", "RecursionError"),
        (PermissionDeniedError("Not this file."), "PERMISSION_DENIED", "Not this file."),
        (ToolExecutionError("Broken.", executed="yes"), "TOOL_EXECUTION_ERROR", "Broken."),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
async def test_whatever_a_tool_raises_becomes_its_answer(
    house: Any, make: Any, error: BaseException, code: str, word: str
) -> None:
    """A tool cannot take the daemon, or its caller, down; no text of its own and no traceback goes out."""
    home = house([make("bad", raising(error)), make("say", say)])
    session = home.session()
    result = await home.call(session, 1, "bad")
    assert result.error.code == code
    assert word in result.error.message
    assert "Traceback" not in result.error.message
    assert "/home" not in result.error.message
    assert (await home.call(session, 2, "say")).ok
    assert set(home.counts().values()) == {0}


async def test_a_tool_that_hangs_is_answered_for_at_its_deadline(house: Any, make: Any) -> None:
    """TIMEOUT says how long was waited and that the tool may have had its effect."""
    home = house([make("hang", hang)])
    error = (await home.call(home.session(), 1, "hang", timeout_ms=20)).error
    assert (error.code, error.executed) == ("TIMEOUT", "maybe")
    assert "0.02 s" in error.message
    assert error.retryable  # the tool is read-only


async def test_a_write_that_timed_out_is_not_called_retryable(house: Any, make: Any) -> None:
    """Only a tool that is read-only or idempotent may be called again when it may have run."""
    home = house([make("write", hang, read_only=False)])
    error = (await home.call(home.session(), 1, "write", timeout_ms=20)).error
    assert (error.executed, error.retryable) == ("maybe", False)


async def test_a_call_that_never_got_its_turn_was_not_executed(house: Any, make: Any) -> None:
    """The time spent waiting counts, and the answer says that nothing was done."""
    home = house([make("hang", hang)], max_running=1)
    session = home.session()
    home.submit(session, "first", "hang", timeout_ms=10_000)
    home.submit(session, "second", "hang", timeout_ms=20)
    while "second" not in home.port.answers:
        await asyncio.sleep(0.001)
    error = home.port.answers["second"].error
    assert (error.code, error.executed, error.retryable) == ("TIMEOUT", "no", True)
    home.router.cancel(session, "sfirst")
    await home.answered()


async def test_a_tool_that_ignores_its_end_is_answered_for(house: Any, make: Any) -> None:
    """A tool that swallows its cancellation keeps its permit, but not its caller waiting."""
    let_go = asyncio.Event()

    async def stubborn(arguments: Any, context: Any) -> Any:
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue
        return "too late"

    home = house([make("stubborn", stubborn)], progress_interval_s=0.2)
    beat = asyncio.create_task(home.router.keep_beat())
    result = await home.call(home.session(), 1, "stubborn", timeout_ms=20)
    assert result.error.code == "TIMEOUT"
    assert home.router.permits.in_use == 1
    let_go.set()
    while home.router.permits.in_use:
        await asyncio.sleep(0.001)
    assert len(home.recorder.ended_calls) == 1
    beat.cancel()


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


@pytest.mark.parametrize("value", [object(), {1, object()}, "\ud800", {"deep": {"set": object()}}])
async def test_what_json_cannot_hold_is_an_addressed_error(house: Any, make: Any, value: object) -> None:
    """The tool is at fault, and that is said; nothing breaks."""

    async def function(arguments: Any, context: Any) -> Any:
        return value

    home = house([make("odd", function)])
    error = (await home.call(home.session(), 1, "odd")).error
    assert (error.code, error.executed) == ("TOOL_EXECUTION_ERROR", "yes")
    assert "odd" in error.message


async def test_a_result_nested_too_deeply_is_an_addressed_error(house: Any, make: Any) -> None:
    """Recursion is bounded by what can be written."""

    async def function(arguments: Any, context: Any) -> Any:
        value: list[Any] = []
        for _ in range(200_000):  # Python 3.12 and later go deeper than the recursion limit in C
            value = [value]
        return value

    home = house([make("deep", function)])
    assert (await home.call(home.session(), 1, "deep")).error.code == "TOOL_EXECUTION_ERROR"


async def test_a_result_over_the_frame_limit_is_refused_with_the_numbers(house: Any, make: Any) -> None:
    """The answer says how large it was and how much fits."""

    async def function(arguments: Any, context: Any) -> Any:
        return "x" * 200_000

    home = house([make("big", function)])
    error = (await home.call(home.session(), 1, "big")).error
    assert (error.code, error.executed) == ("RESULT_TOO_LARGE", "yes")
    assert "100000" in error.message


async def test_progress_and_pieces_reach_the_caller_before_the_answer(house: Any, make: Any) -> None:
    """What a tool reports is passed on; after the answer nothing follows."""

    async def script(request: CompletionRequest, on_delta: OnDelta | None) -> str:
        if on_delta is not None:
            on_delta(Delta("a"))
            on_delta(Delta("b"))
        return "ab"

    leaked: list[Any] = []

    async def reports(arguments: Any, context: Any) -> Any:
        context.progress("half", 1, 2)
        leaked.append(context)
        return "done"

    home = house([make("reports", reports)], providers={"kimi": (script, 6)})
    session = home.session(streaming=True)
    await home.call(session, 1, "reports")
    await home.call(session, 2, "ask")
    leaked[0].progress("too late")
    leaked[0].stream("too late")
    assert [(request_id, progress.message) for request_id, progress in home.port.heard] == [(1, "half")]
    assert home.port.chunks == [(2, "a"), (2, "b")]


async def test_a_caller_that_does_not_stream_is_sent_no_pieces(house: Any, make: Any) -> None:
    """Pieces go to clients with the feature only."""

    async def streams(arguments: Any, context: Any) -> Any:
        context.stream("piece")
        return "whole"

    home = house([make("streams", streams)])
    await home.call(home.session(), 1, "streams")
    assert home.port.chunks == []


async def test_a_long_call_is_heard_of_on_every_beat(house: Any, make: Any) -> None:
    """Running and waiting calls of one port are told of together."""
    home = house([make("hang", hang)], max_running=1, progress_interval_s=0.04)
    session = home.session()
    calls = [home.submit(session, number, "hang") for number in range(2)]
    beat = asyncio.create_task(home.router.keep_beat())
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


async def test_a_reader_that_does_not_take_its_answer_holds_its_place(house: Any, make: Any) -> None:
    """A call counts as accepted until its answer is sent, so that unsent answers are bounded."""
    home = house([make("say", say)], max_accepted_per_session=2)
    session = home.session()
    home.port.reading.clear()
    for number in range(2):
        home.submit(session, number, "say")
    while home.router.permits.in_use or len(home.recorder.ended_calls) < 2:
        await asyncio.sleep(0.001)
    assert home.submit(session, 2, "say").error.code == "OVER_CAPACITY"
    home.port.reading.set()
    await home.answered()
    assert (await home.call(session, 2, "say")).ok


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["say", "hang", "bad", "ask", "ask-hung", "unknown"]),
        st.sampled_from(["", "cancel", "leave"]),
        st.integers(0, 2),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=14,
)


def submit_and_end(home: Any, session: Any, number: int, name: str, end: str) -> Any:
    """One step: a call that may be refused, and how it is ended, if it is."""
    arguments = {"prompt": "hang"} if name == "ask-hung" else {}
    running = home.submit(session, number, name.removesuffix("-hung"), arguments, timeout_ms=30)
    if isinstance(running, ToolResult):
        home.port.answers[number] = running
    elif end == "cancel":
        home.router.cancel(session, running.key)
    elif end == "leave":
        home.router.leave(session, home.port)


async def answers_or_hangs(request: CompletionRequest, on_delta: OnDelta | None) -> str:
    if request.messages[0].content == "hang":
        await asyncio.Event().wait()
    await asyncio.sleep(0)
    return "x"


@settings(max_examples=50, deadline=None)
@given(STEPS)
def test_after_any_mixture_of_ends_every_count_is_at_its_limit(
    house: Any, make: Any, steps: list[tuple[str, str, int, int]]
) -> None:
    """Success, error, time-out, cancel and disconnect in any order: one answer each, and every permit is back."""

    async def run() -> None:
        tools = [make("say", say), make("hang", hang), make("bad", raising(ValueError("x")))]
        providers = {"kimi": (answers_or_hangs, 2)}
        home = house(tools, providers=providers, max_running=3, max_waiting=6, max_accepted_per_session=6)
        sessions = [home.session(str(number), running=2) for number in range(3)]
        for number, (name, end, who, pause) in enumerate(steps):
            submit_and_end(home, sessions[who], number, name, end)
            for _ in range(pause):
                await asyncio.sleep(0)
        await home.answered()
        assert home.port.answers.keys() | home.away.answers.keys() == set(range(len(steps)))
        assert not home.port.answers.keys() & home.away.answers.keys(), "a second answer"
        async with asyncio.timeout(10):
            while set(home.counts().values()) != {0}:
                await asyncio.sleep(0.001)
        for session in sessions:
            assert (session.permits.in_use, session.permits.waiting, len(session.calls)) == (0, 0, 0)

    asyncio.run(run())


async def test_the_operator_ends_a_call_by_its_own_id(house: Any, make: Any) -> None:
    """Whoever made it learns who ended it; an id that does not run ends nothing."""
    home = house([make("hang", hang)])
    running = home.submit(home.session(), 1, "hang")
    await asyncio.sleep(0)
    assert [one.id for one in home.router.running] == [running.id]
    assert not home.router.end_for_operator(f"{running.id}x")
    assert home.router.end_for_operator(running.id)
    await home.answered()
    error = home.port.answers[1].error
    assert error.code == "CANCELLED"
    assert "operator" in error.message
