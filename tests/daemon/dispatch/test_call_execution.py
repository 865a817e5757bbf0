"""The calls under way: each gets exactly one terminal answer, on the disk before it is told, whatever its tool does."""

import asyncio
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs
from toold.protocol.error_codes import PermissionDeniedError, ToolExecutionError
from toold.protocol.tool_call import ToolResult
from toold.providers import CompletionRequest, Delta, OnDelta


async def say(arguments: Any, context: Any) -> Any:
    return arguments.get("text", "said")


async def hang(arguments: Any, context: Any) -> Any:
    await asyncio.Event().wait()


def raising(error: BaseException) -> Any:
    async def function(arguments: Any, context: Any) -> Any:
        raise error

    return function


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


@pytest.mark.parametrize("read_only", [True, False])
async def test_what_cannot_be_written_down_is_still_answered(house: Any, make: Any, read_only: bool) -> None:
    """A mistake in the journal or in the audit costs the caller nothing; the log has it."""

    def fail(*_: Any) -> None:
        raise RuntimeError("a mistake")

    home = house([make("say", say, read_only=read_only)])
    home.recorder.call_ended = fail  # the journal of these tests tells it of its calls
    with capture_logs() as lines:
        assert (await home.call(home.session(key="key"), 1, "say")).ok
    assert [line["event"] for line in lines] == ["call could not be recorded"]


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
    beat = asyncio.create_task(home.router.send_heartbeats())
    result = await home.call(home.session(), 1, "stubborn", timeout_ms=20)
    assert result.error.code == "TIMEOUT"
    assert home.router.permits.in_use == 1
    let_go.set()
    while home.router.permits.in_use:
        await asyncio.sleep(0.001)
    assert len(home.recorder.ended_calls) == 1
    beat.cancel()


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
        home.router.disconnect(session, home.port)


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


# --- the journal -----------------------------------------------------------------------------------------------------


def noting(runs: list[int]) -> Any:
    """The function of a tool that notes that it ran."""

    async def function(arguments: Any, context: Any) -> Any:
        runs.append(1)
        return "ran"

    return function


async def test_a_call_is_on_the_disk_before_its_tool_is_entered(house: Any, make: Any) -> None:
    """As long as the disk has not said so, nothing runs."""
    runs: list[int] = []
    home = house([make("write", noting(runs), read_only=False)])
    home.journal.ready.clear()
    home.submit(home.session(), 1, "write")
    await home.until(lambda: home.journal.asked["start"])
    for _ in range(5):
        await asyncio.sleep(0)
    assert (runs, home.port.answers) == ([], {})
    home.journal.ready.set()
    await home.answered()
    assert runs == [1]
    assert home.journal.events == [("start", "n1"), ("end", "n1")]


async def test_a_result_is_on_the_disk_before_it_is_told(house: Any, make: Any) -> None:
    """While the disk takes its time the call is running, for whoever asks."""

    async def write(arguments: Any, context: Any) -> Any:
        home.journal.ready.clear()
        return "written"

    home = house([make("write", write, read_only=False)])
    session = home.session()
    home.submit(session, 1, "write")
    await home.until(lambda: home.journal.asked["end"])
    assert (home.port.answers, home.router.status_of(session, 1)) == ({}, "running")
    home.journal.ready.set()
    await home.answered()
    assert home.port.answers[1].ok
    assert home.journal.calls[session.id, "n1"].state == "done"


async def test_a_call_that_cannot_be_journalled_does_not_run(house: Any, make: Any) -> None:
    """It is answered SERVICE_UNAVAILABLE, as never executed, and holds nothing; local calls go on."""
    runs: list[int] = []
    home = house([make("write", noting(runs), read_only=False), make("say", say)])
    home.journal.refuses = True
    session = home.session()
    error = (await home.call(session, 1, "write")).error
    assert (error.code, error.executed, error.retryable) == ("SERVICE_UNAVAILABLE", "no", True)
    assert (await home.call(session, 2, "say")).ok
    await home.answered()
    assert (runs, home.journal.events, len(session.calls)) == ([], [], 0)
    assert len(home.recorder.ended_calls) == 2
    assert set(home.counts().values()) == {0}


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session has its last call in memory, and no other."""
    monkeypatch.setattr("toold.protocol.session_calls.REMEMBERED_IDS", 1)


@pytest.mark.usefixtures("forgetful")
async def test_what_memory_has_let_go_of_is_answered_from_the_journal(house: Any, make: Any) -> None:
    """The same answer, as a replay: no second run, no second audit row, and nothing new on the disk."""
    runs: list[int] = []
    home = house([make("write", noting(runs), read_only=False)])
    session = home.session()
    first = await home.call(session, 1, "write")
    await home.call(session, 2, "write")
    events, rows = list(home.journal.events), len(home.recorder.ended_calls)
    del home.port.answers[1]
    again = await home.call(session, 1, "write")
    assert (again.outputs, again.metadata.replayed) == (first.outputs, True)
    assert (runs, home.journal.events, len(home.recorder.ended_calls)) == ([1, 1], events, rows)
    assert home.router.status_of(session, 1) == "done"
    assert home.submit(session, 1, "write").metadata.replayed
    assert set(home.counts().values()) == {0}


@pytest.mark.usefixtures("forgetful")
async def test_an_answer_of_the_journal_grows_no_younger_in_memory(house: Any, make: Any) -> None:
    """It expires when it would have, however often it is asked for."""
    home = house([make("write", say, read_only=False)], result_ttl_s=60.0)
    session = home.session()
    for request_id in (1, 2):
        await home.call(session, request_id, "write")
    known = home.journal.calls[session.id, "n1"]
    home.journal.calls[session.id, "n1"] = msgspec.structs.replace(known, at=known.at - 59.0)
    del home.port.answers[1]
    assert (await home.call(session, 1, "write")).metadata.replayed
    assert session.calls.status("n1", time.monotonic() + 2.0) == "expired"


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize(
    ("forgotten", "text", "code", "executed"),
    [(True, "x", "RESULT_EXPIRED", "yes"), (False, "other", "REQUEST_ID_CONFLICT", "no")],
    ids=["forgotten", "other"],
)
async def test_what_memory_has_let_go_of_does_not_run_again(
    house: Any, make: Any, forgotten: bool, text: str, code: str, executed: str
) -> None:
    """Without its answer it is RESULT_EXPIRED, with other content a conflict; what is known stays as it is."""
    home = house([make("write", say, read_only=False)])
    session = home.session(key="key")
    for request_id in (1, 2):
        await home.call(session, request_id, "write", arguments={"text": "x"})
    if forgotten:
        home.router.acknowledge(session, [1])
    del home.port.answers[1]
    error = (await home.call(session, 1, "write", arguments={"text": text})).error
    assert (error.code, error.executed) == (code, executed)
    states = await home.router.statuses_of(session, [1, 2, 3])
    assert states == ["expired" if forgotten else "done", "done", "unknown"]
    assert [event for event in home.journal.events if event[0] == "start"] == [("start", "n1"), ("start", "n2")]
    assert set(home.counts().values()) == {0}


@pytest.mark.usefixtures("forgetful")
async def test_what_is_cancelled_while_it_is_looked_up_may_have_been_done(
    house: Any, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal has said that the id ran; of whoever is told otherwise the same may be had twice, under two ids."""
    home = house([make("write", say, read_only=False)])
    session = home.session()
    for request_id in (1, 2):
        await home.call(session, request_id, "write")
    asked = asyncio.Event()

    async def hung(_: Any) -> None:
        asked.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(home.journal, "earlier_call", hung)
    del home.port.answers[1]
    running = home.submit(session, 1, "write")
    await asked.wait()
    home.router.cancel(session, running.key)
    await home.until(lambda: 1 in home.port.answers)
    error = home.port.answers[1].error
    assert (error.code, error.executed) == ("CANCELLED", "maybe")
    assert set(home.counts().values()) == {0}


@pytest.mark.usefixtures("forgetful")
async def test_a_local_call_of_a_long_session_asks_no_disk(house: Any, make: Any) -> None:
    """What memory has let go of is looked for where a call would be journalled, and for who asks what became of it."""
    home = house([make("say", say), make("write", say, read_only=False)])
    session = home.session()
    for request_id, name in enumerate(("write", "write", "say")):
        await home.call(session, request_id, name)
    assert session.calls.incomplete
    assert home.journal.asked == {"start": 2, "end": 2}
    assert await home.router.statuses_of(session, [2]) == ["done"]
    assert not home.journal.asked["call_states"]
    assert await home.router.statuses_of(session, [0, 2, 9]) == ["done", "done", "unknown"]


@pytest.mark.parametrize(("timeout_ms", "code"), [(20, "TIMEOUT"), (None, "CANCELLED")])
async def test_a_call_that_ends_while_the_disk_is_awaited_does_not_run(
    house: Any, make: Any, timeout_ms: float | None, code: str
) -> None:
    """It was not executed; as its start may have been written, its end is written too."""
    runs: list[int] = []
    home = house([make("write", noting(runs), read_only=False)])
    session = home.session()
    home.journal.ready.clear()
    running = home.submit(session, 1, "write", timeout_ms=timeout_ms)
    await home.until(lambda: home.journal.asked["start"])
    if timeout_ms is None:
        home.router.cancel(session, running.key)
    await home.until(lambda: running.answered)
    home.journal.ready.set()
    await home.answered()
    error = home.port.answers[1].error
    assert (error.code, error.executed) == (code, "no")
    assert (runs, home.journal.events) == ([], [("end", "n1")])
    assert set(home.counts().values()) == {0}


async def test_a_call_that_ends_before_its_turn_touches_no_disk(house: Any, make: Any) -> None:
    """There was nothing to write down, and its id may be used again once its answer is not kept any more."""
    home = house([make("write", hang, read_only=False)], max_running=1)
    session = home.session()
    first = home.submit(session, 1, "write")
    waits = home.submit(session, 2, "write")
    await home.until(lambda: first.entered)
    home.router.cancel(session, waits.key)
    await home.until(lambda: 2 in home.port.answers)
    assert home.port.answers[2].error.executed == "no"
    assert ("end", "n2") not in home.journal.events
    home.router.acknowledge(session, [2])
    assert home.router.status_of(session, 2) == "unknown"
    home.router.cancel(session, first.key)
    await home.answered()


async def test_a_local_call_touches_no_disk(house: Any, make: Any) -> None:
    """Neither before it runs nor before its answer is told."""
    home = house([make("say", say)])
    home.journal.ready.clear()
    session = home.session(key="key")
    assert (await home.call(session, 1, "say")).ok
    assert (home.journal.events, session.journalled) == ([], False)


async def test_an_id_may_be_used_again_while_its_first_answer_is_still_on_its_way(house: Any, make: Any) -> None:
    """The client got it on another connection, say, and forgot it; each of the calls is counted for itself."""
    home = house([make("say", say), make("hang", hang)])
    session = home.session(key="key")
    home.port.reading.clear()
    home.submit(session, 1, "say")
    await home.until(lambda: home.router.status_of(session, 1) == "done")
    back = await home.resume("key")
    home.router.acknowledge(session, [1])
    running = home.submit(session, 1, "hang", port=back.port)
    home.port.reading.set()
    await home.until(lambda: 1 in home.port.answers)
    assert (home.router.accepted, home.router.status_of(session, 1)) == (1, "running")
    assert home.router.cancel(session, running.key)
    await home.answered()
    assert back.port.answers[1].error.code == "CANCELLED"
    assert (len(session.calls), set(home.counts().values())) == (0, {0})
