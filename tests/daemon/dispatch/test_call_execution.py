"""Running calls: each gets exactly one answer, persisted before it is sent, whatever its tool does."""

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
        (ValueError("/harness/operator/key"), "TOOL_EXECUTION_ERROR", "failed with ValueError"),
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
async def test_any_exception_of_a_tool_becomes_its_answer(
    make_harness: Any, make: Any, error: BaseException, code: str, word: str
) -> None:
    """A tool cannot crash the daemon; neither the exception's text nor a traceback is sent."""
    harness = make_harness([make("bad", raising(error)), make("say", say)])
    session = harness.session()
    result = await harness.call(session, 1, "bad")
    assert result.error.code == code
    assert word in result.error.message
    assert "Traceback" not in result.error.message
    assert "/harness" not in result.error.message
    assert (await harness.call(session, 2, "say")).ok
    assert set(harness.counts().values()) == {0}


async def test_a_hanging_tool_is_answered_for_at_its_deadline(make_harness: Any, make: Any) -> None:
    """TIMEOUT contains the seconds and says that the tool may have taken effect."""
    harness = make_harness([make("hang", hang)])
    error = (await harness.call(harness.session(), 1, "hang", timeout_ms=20)).error
    assert (error.code, error.executed) == ("TIMEOUT", "maybe")
    assert "0.02 s" in error.message
    assert error.retryable  # the tool is read-only


async def test_a_write_that_timed_out_is_not_retryable(make_harness: Any, make: Any) -> None:
    """Only a read-only or idempotent tool may be called again after it may have run."""
    harness = make_harness([make("write", hang, read_only=False)])
    error = (await harness.call(harness.session(), 1, "write", timeout_ms=20)).error
    assert (error.executed, error.retryable) == ("maybe", False)


async def test_a_call_that_timed_out_in_the_queue_was_not_executed(make_harness: Any, make: Any) -> None:
    """Waiting counts towards the timeout, and the answer says that nothing was done."""
    harness = make_harness([make("hang", hang)], max_running=1)
    session = harness.session()
    harness.submit(session, "first", "hang", timeout_ms=10_000)
    harness.submit(session, "second", "hang", timeout_ms=20)
    while "second" not in harness.port.answers:
        await asyncio.sleep(0.001)
    error = harness.port.answers["second"].error
    assert (error.code, error.executed, error.retryable) == ("TIMEOUT", "no", True)
    harness.router.cancel(session, "sfirst")
    await harness.answered()


@pytest.mark.parametrize("read_only", [True, False])
async def test_a_call_that_cannot_be_recorded_is_answered(make_harness: Any, make: Any, read_only: bool) -> None:
    """A bug in the journal or the audit does not affect the caller; it is logged."""

    def fail(*_: Any) -> None:
        raise RuntimeError("a mistake")

    harness = make_harness([make("say", say, read_only=read_only)])
    harness.recorder.call_ended = fail  # the tests' journal uses it too
    with capture_logs() as lines:
        assert (await harness.call(harness.session(key="key"), 1, "say")).ok
    assert [line["event"] for line in lines] == ["call could not be recorded"]


async def test_a_tool_that_swallows_its_cancellation_is_answered_for(make_harness: Any, make: Any) -> None:
    """It keeps its permit, but its caller does not wait for it."""
    release = asyncio.Event()

    async def stubborn(arguments: Any, context: Any) -> Any:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "too late"

    harness = make_harness([make("stubborn", stubborn)], progress_interval_s=0.2)
    heartbeats = asyncio.create_task(harness.router.send_heartbeats())
    result = await harness.call(harness.session(), 1, "stubborn", timeout_ms=20)
    assert result.error.code == "TIMEOUT"
    assert harness.router.permits.in_use == 1
    release.set()
    while harness.router.permits.in_use:
        await asyncio.sleep(0.001)
    assert len(harness.recorder.ended_calls) == 1
    heartbeats.cancel()


@pytest.mark.parametrize("value", [object(), {1, object()}, "\ud800", {"deep": {"set": object()}}])
async def test_a_result_that_is_not_json_is_an_addressed_error(make_harness: Any, make: Any, value: object) -> None:
    """The error blames the tool, and nothing else breaks."""

    async def function(arguments: Any, context: Any) -> Any:
        return value

    harness = make_harness([make("odd", function)])
    error = (await harness.call(harness.session(), 1, "odd")).error
    assert (error.code, error.executed) == ("TOOL_EXECUTION_ERROR", "yes")
    assert "odd" in error.message


async def test_a_result_nested_too_deeply_is_an_addressed_error(make_harness: Any, make: Any) -> None:
    """Nesting is limited by the JSON encoder."""

    async def function(arguments: Any, context: Any) -> Any:
        value: list[Any] = []
        for _ in range(200_000):  # Python 3.12 and later go deeper than the recursion limit in C
            value = [value]
        return value

    harness = make_harness([make("deep", function)])
    assert (await harness.call(harness.session(), 1, "deep")).error.code == "TOOL_EXECUTION_ERROR"


async def test_progress_and_chunks_precede_the_answer(make_harness: Any, make: Any) -> None:
    """A tool's reports are passed on; nothing follows the answer."""

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

    harness = make_harness([make("reports", reports)], providers={"kimi": (script, 6)})
    session = harness.session(streaming=True)
    await harness.call(session, 1, "reports")
    await harness.call(session, 2, "ask")
    leaked[0].progress("too late")
    leaked[0].stream("too late")
    assert [(request_id, progress.message) for request_id, progress in harness.port.heard] == [(1, "half")]
    assert harness.port.chunks == [(2, "a"), (2, "b")]


async def test_clients_without_streaming_get_no_chunks(make_harness: Any, make: Any) -> None:
    """Only clients with the feature get chunks."""

    async def streams(arguments: Any, context: Any) -> Any:
        context.stream("piece")
        return "whole"

    harness = make_harness([make("streams", streams)])
    await harness.call(harness.session(), 1, "streams")
    assert harness.port.chunks == []


async def test_an_unread_answer_counts_as_accepted(make_harness: Any, make: Any) -> None:
    """A call counts as accepted until its answer is sent, which bounds unsent answers."""
    harness = make_harness([make("say", say)], max_accepted_per_session=2)
    session = harness.session()
    harness.port.reading.clear()
    for number in range(2):
        harness.submit(session, number, "say")
    while harness.router.permits.in_use or len(harness.recorder.ended_calls) < 2:
        await asyncio.sleep(0.001)
    assert harness.submit(session, 2, "say").error.code == "OVER_CAPACITY"
    harness.port.reading.set()
    await harness.answered()
    assert (await harness.call(session, 2, "say")).ok


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


def submit_and_end(harness: Any, session: Any, number: int, name: str, end: str) -> Any:
    """One step: a call that may be refused, and how it is ended, if at all."""
    arguments = {"prompt": "hang"} if name == "ask-hung" else {}
    running = harness.submit(session, number, name.removesuffix("-hung"), arguments, timeout_ms=30)
    if isinstance(running, ToolResult):
        harness.port.answers[number] = running
    elif end == "cancel":
        harness.router.cancel(session, running.key)
    elif end == "leave":
        harness.router.disconnect(session, harness.port)


async def answers_or_hangs(request: CompletionRequest, on_delta: OnDelta | None) -> str:
    if request.messages[0].content == "hang":
        await asyncio.Event().wait()
    await asyncio.sleep(0)
    return "x"


@settings(max_examples=50, deadline=None)
@given(STEPS)
def test_any_mixture_of_ends_releases_all_permits(
    make_harness: Any, make: Any, steps: list[tuple[str, str, int, int]]
) -> None:
    """Success, error, timeout, cancel and disconnect in any order: one answer each, and all permits are released."""

    async def run() -> None:
        tools = [make("say", say), make("hang", hang), make("bad", raising(ValueError("x")))]
        providers = {"kimi": (answers_or_hangs, 2)}
        harness = make_harness(tools, providers=providers, max_running=3, max_waiting=6, max_accepted_per_session=6)
        sessions = [harness.session(str(number), running=2) for number in range(3)]
        for number, (name, end, who, pause) in enumerate(steps):
            submit_and_end(harness, sessions[who], number, name, end)
            for _ in range(pause):
                await asyncio.sleep(0)
        await harness.answered()
        assert harness.port.answers.keys() | harness.absent_port.answers.keys() == set(range(len(steps)))
        assert not harness.port.answers.keys() & harness.absent_port.answers.keys(), "a second answer"
        async with asyncio.timeout(10):
            while set(harness.counts().values()) != {0}:
                await asyncio.sleep(0.001)
        for session in sessions:
            assert (session.permits.in_use, session.permits.waiting, len(session.calls)) == (0, 0, 0)

    asyncio.run(run())


# --- the journal -----------------------------------------------------------------------------------------------------


def noting(runs: list[int]) -> Any:
    """The function of a tool that records its runs."""

    async def function(arguments: Any, context: Any) -> Any:
        runs.append(1)
        return "ran"

    return function


async def test_a_call_is_journalled_before_its_tool_is_entered(make_harness: Any, make: Any) -> None:
    """The tool does not run until the write succeeds."""
    runs: list[int] = []
    harness = make_harness([make("write", noting(runs), read_only=False)])
    harness.journal.ready.clear()
    harness.submit(harness.session(), 1, "write")
    await harness.until(lambda: harness.journal.asked["start"])
    for _ in range(5):
        await asyncio.sleep(0)
    assert (runs, harness.port.answers) == ([], {})
    harness.journal.ready.set()
    await harness.answered()
    assert runs == [1]
    assert harness.journal.events == [("start", "n1"), ("end", "n1")]


async def test_a_result_is_persisted_before_it_is_sent(make_harness: Any, make: Any) -> None:
    """While the write is pending the call's status is ``running``."""

    async def write(arguments: Any, context: Any) -> Any:
        harness.journal.ready.clear()
        return "written"

    harness = make_harness([make("write", write, read_only=False)])
    session = harness.session()
    harness.submit(session, 1, "write")
    await harness.until(lambda: harness.journal.asked["end"])
    assert (harness.port.answers, harness.router.status_of(session, 1)) == ({}, "running")
    harness.journal.ready.set()
    await harness.answered()
    assert harness.port.answers[1].ok
    assert harness.journal.calls[session.id, "n1"].state == "done"


async def test_a_call_that_cannot_be_journalled_does_not_run(make_harness: Any, make: Any) -> None:
    """It is answered SERVICE_UNAVAILABLE, not executed, and holds nothing; local calls still work."""
    runs: list[int] = []
    harness = make_harness([make("write", noting(runs), read_only=False), make("say", say)])
    harness.journal.refuses = True
    session = harness.session()
    error = (await harness.call(session, 1, "write")).error
    assert (error.code, error.executed, error.retryable) == ("SERVICE_UNAVAILABLE", "no", True)
    assert (await harness.call(session, 2, "say")).ok
    await harness.answered()
    assert (runs, harness.journal.events, len(session.calls)) == ([], [("end", "n1")], 0)
    assert len(harness.recorder.ended_calls) == 2
    harness.journal.refuses = False
    again = harness.submit(session, 1, "write")
    assert (again.error.code, again.metadata.replayed, runs) == ("SERVICE_UNAVAILABLE", True, [])
    assert set(harness.counts().values()) == {0}


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session has only its last call in memory."""
    monkeypatch.setattr("toold.protocol.session_calls.REMEMBERED_IDS", 1)


@pytest.mark.usefixtures("forgetful")
async def test_evicted_answers_are_replayed_from_the_journal(make_harness: Any, make: Any) -> None:
    """The same answer, as a replay: no second run, no second audit row, no new write."""
    runs: list[int] = []
    harness = make_harness([make("write", noting(runs), read_only=False)])
    session = harness.session()
    first = await harness.call(session, 1, "write")
    await harness.call(session, 2, "write")
    events, rows = list(harness.journal.events), len(harness.recorder.ended_calls)
    del harness.port.answers[1]
    again = await harness.call(session, 1, "write")
    assert (again.outputs, again.metadata.replayed) == (first.outputs, True)
    assert (runs, harness.journal.events, len(harness.recorder.ended_calls)) == ([1, 1], events, rows)
    assert harness.router.status_of(session, 1) == "done"
    assert harness.submit(session, 1, "write").metadata.replayed
    assert set(harness.counts().values()) == {0}


@pytest.mark.usefixtures("forgetful")
async def test_an_answer_from_the_journal_keeps_its_age(make_harness: Any, make: Any) -> None:
    """It expires at the original time, however often it is replayed."""
    harness = make_harness([make("write", say, read_only=False)], result_ttl_s=60.0)
    session = harness.session()
    for request_id in (1, 2):
        await harness.call(session, request_id, "write")
    known = harness.journal.calls[session.id, "n1"]
    harness.journal.calls[session.id, "n1"] = msgspec.structs.replace(known, at=known.at - 59.0)
    del harness.port.answers[1]
    assert (await harness.call(session, 1, "write")).metadata.replayed
    assert session.calls.status("n1", time.monotonic() + 2.0) == "expired"


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize(
    ("forgotten", "text", "code", "executed"),
    [(True, "x", "RESULT_EXPIRED", "yes"), (False, "other", "REQUEST_ID_CONFLICT", "no")],
    ids=["forgotten", "other"],
)
async def test_evicted_calls_do_not_run_again(
    make_harness: Any, make: Any, forgotten: bool, text: str, code: str, executed: str
) -> None:
    """Without its answer it is RESULT_EXPIRED, with other content a conflict; the stored call stays unchanged."""
    harness = make_harness([make("write", say, read_only=False)])
    session = harness.session(key="key")
    for request_id in (1, 2):
        await harness.call(session, request_id, "write", arguments={"text": "x"})
    if forgotten:
        harness.router.acknowledge(session, [1])
    del harness.port.answers[1]
    error = (await harness.call(session, 1, "write", arguments={"text": text})).error
    assert (error.code, error.executed) == (code, executed)
    states = await harness.router.statuses_of(session, [1, 2, 3])
    assert states == ["expired" if forgotten else "done", "done", "unknown"]
    assert [event for event in harness.journal.events if event[0] == "start"] == [("start", "n1"), ("start", "n2")]
    assert set(harness.counts().values()) == {0}


@pytest.mark.usefixtures("forgetful")
async def test_a_call_cancelled_during_its_lookup_may_have_been_executed(
    make_harness: Any, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal knows the id, so ``executed`` is ``maybe``: a second id could repeat the effect."""
    harness = make_harness([make("write", say, read_only=False)])
    session = harness.session()
    for request_id in (1, 2):
        await harness.call(session, request_id, "write")
    asked = asyncio.Event()

    async def hung(_: Any) -> None:
        asked.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(harness.journal, "earlier_call", hung)
    del harness.port.answers[1]
    running = harness.submit(session, 1, "write")
    await asked.wait()
    harness.router.cancel(session, running.key)
    await harness.until(lambda: 1 in harness.port.answers)
    error = harness.port.answers[1].error
    assert (error.code, error.executed) == ("CANCELLED", "maybe")
    assert set(harness.counts().values()) == {0}


@pytest.mark.usefixtures("forgetful")
async def test_a_local_call_of_a_long_session_reads_no_database(make_harness: Any, make: Any) -> None:
    """The database is read only for calls that would be journalled, and for status queries."""
    harness = make_harness([make("say", say), make("write", say, read_only=False)])
    session = harness.session()
    for request_id, name in enumerate(("write", "write", "say")):
        await harness.call(session, request_id, name)
    assert session.calls.incomplete
    assert harness.journal.asked == {"start": 2, "end": 2}
    assert await harness.router.statuses_of(session, [2]) == ["done"]
    assert not harness.journal.asked["call_states"]
    assert await harness.router.statuses_of(session, [0, 2, 9]) == ["done", "done", "unknown"]


@pytest.mark.parametrize(("timeout_ms", "code"), [(20, "TIMEOUT"), (None, "CANCELLED")])
async def test_a_call_that_ends_during_its_journal_write_does_not_run(
    make_harness: Any, make: Any, timeout_ms: float | None, code: str
) -> None:
    """It was not executed; since its start may be written, its end is written too."""
    runs: list[int] = []
    harness = make_harness([make("write", noting(runs), read_only=False)])
    session = harness.session()
    harness.journal.ready.clear()
    running = harness.submit(session, 1, "write", timeout_ms=timeout_ms)
    await harness.until(lambda: harness.journal.asked["start"])
    if timeout_ms is None:
        harness.router.cancel(session, running.key)
    await harness.until(lambda: running.answered)
    harness.journal.ready.set()
    await harness.answered()
    error = harness.port.answers[1].error
    assert (error.code, error.executed) == (code, "no")
    assert (runs, harness.journal.events) == ([], [("end", "n1")])
    assert set(harness.counts().values()) == {0}


@pytest.mark.parametrize(("timeout_ms", "code"), [(20, "TIMEOUT"), (None, "CANCELLED")])
async def test_the_answer_of_a_call_that_never_started_is_final(
    make_harness: Any, make: Any, timeout_ms: float | None, code: str
) -> None:
    """A repeat gets it again, also if it is retryable, and in the next process; without it the id is RESULT_EXPIRED,
    executed ``no``; other content is a conflict.
    """
    runs: list[int] = []
    harness = make_harness([make("hang", hang), make("write", noting(runs), read_only=False)], max_running=1)
    session = harness.session(key="key")
    first = harness.submit(session, 1, "hang")
    await harness.until(lambda: first.entered)
    waits = harness.submit(session, 2, "write", timeout_ms=timeout_ms)
    if timeout_ms is None:
        harness.router.cancel(session, waits.key)
    await harness.until(lambda: 2 in harness.port.answers)
    assert harness.journal.events == [("end", "n2")], "journalled before the answer is sent"
    harness.router.cancel(session, first.key)
    await harness.answered()

    after_crash = make_harness([make("write", noting(runs), read_only=False)], journal=harness.journal)
    for current, holder in ((harness, session), (after_crash, (await after_crash.resume("key")).session)):
        again = current.submit(holder, 2, "write")
        assert (again.error.code, again.error.executed, again.metadata.replayed) == (code, "no", True)
        assert current.submit(holder, 2, "write", {"other": 1}).error.code == "REQUEST_ID_CONFLICT"
        assert current.router.status_of(holder, 2) == "done"
        current.router.acknowledge(holder, [2])
        expired = current.submit(holder, 2, "write").error
        assert (expired.code, expired.executed) == ("RESULT_EXPIRED", "no")
        assert current.router.status_of(holder, 2) == "expired"
    assert runs == []


@pytest.mark.usefixtures("forgetful")
async def test_a_cancelled_repeat_of_an_evicted_call_gets_its_answer(make_harness: Any, make: Any) -> None:
    """The repeat ends before its start, but the id has an answer already."""
    harness = make_harness([make("write", say, read_only=False), make("hang", hang)], max_running=1)
    session = harness.session()
    for request_id in (1, 2):
        await harness.call(session, request_id, "write")
    del harness.port.answers[1]
    first = harness.submit(session, 3, "hang")
    await harness.until(lambda: first.entered)
    repeat = harness.submit(session, 1, "write")
    harness.router.cancel(session, repeat.key)
    await harness.until(lambda: 1 in harness.port.answers)
    answer = harness.port.answers[1]
    assert (answer.ok, answer.metadata.replayed) == (True, True)
    assert harness.submit(session, 1, "write").outputs == answer.outputs
    harness.router.cancel(session, first.key)
    await harness.answered()
    assert set(harness.counts().values()) == {0}


async def test_a_local_call_is_not_journalled(make_harness: Any, make: Any) -> None:
    """Neither before it runs nor before its answer is sent."""
    harness = make_harness([make("say", say)])
    harness.journal.ready.clear()
    session = harness.session(key="key")
    assert (await harness.call(session, 1, "say")).ok
    assert (harness.journal.events, session.journalled) == ([], False)


async def test_an_acknowledged_id_can_be_reused_before_its_first_answer_is_sent(make_harness: Any, make: Any) -> None:
    """The client got the answer on another connection; each call is counted separately."""
    harness = make_harness([make("say", say), make("hang", hang)])
    session = harness.session(key="key")
    harness.port.reading.clear()
    harness.submit(session, 1, "say")
    await harness.until(lambda: harness.router.status_of(session, 1) == "done")
    back = await harness.resume("key")
    harness.router.acknowledge(session, [1])
    running = harness.submit(session, 1, "hang", port=back.port)
    harness.port.reading.set()
    await harness.until(lambda: 1 in harness.port.answers)
    assert (harness.router.accepted, harness.router.status_of(session, 1)) == (1, "running")
    assert harness.router.cancel(session, running.key)
    await harness.answered()
    assert back.port.answers[1].error.code == "CANCELLED"
    assert (len(session.calls), set(harness.counts().values())) == (0, {0})
