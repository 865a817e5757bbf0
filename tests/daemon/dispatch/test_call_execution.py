"""Running calls: each gets exactly one answer, persisted before it is sent, whatever its tool does."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs
from toold.daemon.dispatch import call_execution
from toold.protocol.error_codes import PermissionDeniedError, ToolExecutionError
from toold.protocol.tool_call import ToolResult
from toold.providers import CompletionRequest, Delta, OnDelta
from toold.tools.builtin.echo import echo

from .scripted_tools import hang, raising, say


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
    make_harness: Any, make_tool: Any, error: BaseException, code: str, word: str
) -> None:
    """A tool cannot crash the daemon; neither the exception's text nor a traceback is sent."""
    harness = make_harness([make_tool("bad", raising(error)), make_tool("say", say)])
    session = harness.session()
    result = await harness.call(session, 1, "bad")
    assert result.error.code == code
    assert word in result.error.message
    assert "Traceback" not in result.error.message
    assert "/harness" not in result.error.message
    assert (await harness.call(session, 2, "say")).ok
    assert set(harness.counts().values()) == {0}


async def test_a_hanging_tool_is_answered_for_at_its_deadline(make_harness: Any, make_tool: Any) -> None:
    """TIMEOUT contains the seconds, and says that a read-only tool took no effect and may be called again."""
    harness = make_harness([make_tool("hang", hang)])
    running = harness.submit(harness.session(), 1, "hang", timeout_ms=25_000)
    await harness.until(lambda: running.entered)
    error = (await harness.expire(running)).error
    assert (error.code, error.executed) == ("TIMEOUT", "no")
    assert "25 s" in error.message
    assert error.retryable


async def test_a_write_that_timed_out_is_not_retryable(make_harness: Any, make_tool: Any) -> None:
    """Only a read-only or idempotent tool may be called again after it may have run."""
    harness = make_harness([make_tool("write", hang, read_only=False)])
    running = harness.submit(harness.session(), 1, "write")
    await harness.until(lambda: running.entered)
    error = (await harness.expire(running)).error
    assert (error.executed, error.retryable) == ("maybe", False)


async def test_a_call_that_timed_out_in_the_queue_was_not_executed(make_harness: Any, make_tool: Any) -> None:
    """Waiting counts towards the timeout, and the answer says that nothing was done."""
    harness = make_harness([make_tool("hang", hang)], max_running=1)
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
async def test_a_call_that_cannot_be_recorded_is_answered(make_harness: Any, make_tool: Any, read_only: bool) -> None:
    """A bug in the journal or the audit does not affect the caller; it is logged."""

    def fail(*_: Any) -> None:
        raise RuntimeError("a mistake")

    harness = make_harness([make_tool("say", say, read_only=read_only)])
    harness.recorder.call_ended = fail  # the tests' journal uses it too
    with capture_logs() as lines:
        assert (await harness.call(harness.session(key="key"), 1, "say")).ok
    assert [line["event"] for line in lines] == ["call could not be recorded"]


async def test_a_tool_that_swallows_its_cancellation_is_answered_for(
    make_harness: Any, make_tool: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps its permit, but its caller does not wait for it."""
    monkeypatch.setattr(call_execution, "STUCK_S", 0.1)
    release = asyncio.Event()

    async def stubborn(arguments: Any, context: Any) -> Any:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "too late"

    harness = make_harness([make_tool("stubborn", stubborn)], progress_interval_s=0.2)
    heartbeats = asyncio.create_task(harness.router.heartbeats.run())
    running = harness.submit(harness.session(), 1, "stubborn")
    await harness.until(lambda: running.entered)
    result = await harness.expire(running)
    assert result.error.code == "TIMEOUT"
    assert harness.router.permits.in_use == 1
    release.set()
    while harness.router.permits.in_use:
        await asyncio.sleep(0.001)
    assert len(harness.recorder.ended_calls) == 1
    heartbeats.cancel()


@pytest.mark.parametrize("value", [object(), {1, object()}, "\ud800", {"deep": {"set": object()}}])
async def test_a_result_that_is_not_json_is_an_addressed_error(
    make_harness: Any, make_tool: Any, value: object
) -> None:
    """The error blames the tool, and nothing else breaks."""

    async def function(arguments: Any, context: Any) -> Any:
        return value

    harness = make_harness([make_tool("odd", function)])
    error = (await harness.call(harness.session(), 1, "odd")).error
    assert (error.code, error.executed) == ("TOOL_EXECUTION_ERROR", "yes")
    assert "odd" in error.message


async def test_a_result_nested_too_deeply_is_an_addressed_error(make_harness: Any, make_tool: Any) -> None:
    """Nesting is limited by the JSON encoder."""

    async def function(arguments: Any, context: Any) -> Any:
        value: list[Any] = []
        for _ in range(200_000):  # Python 3.12 and later go deeper than the recursion limit in C
            value = [value]
        return value

    harness = make_harness([make_tool("deep", function)])
    assert (await harness.call(harness.session(), 1, "deep")).error.code == "TOOL_EXECUTION_ERROR"


async def test_progress_and_chunks_precede_the_answer(make_harness: Any, make_tool: Any) -> None:
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

    harness = make_harness([make_tool("reports", reports)], providers={"kimi": (script, 6)})
    session = harness.session(streaming=True)
    await harness.call(session, 1, "reports")
    await harness.call(session, 2, "ask")
    leaked[0].progress("too late")
    leaked[0].stream("too late")
    assert [(request_id, progress.message) for request_id, progress in harness.port.heard] == [(1, "half")]
    assert harness.port.chunks == [(2, "a"), (2, "b")]


async def test_clients_without_streaming_get_no_chunks(make_harness: Any, make_tool: Any) -> None:
    """Only clients with the feature get chunks."""

    async def streams(arguments: Any, context: Any) -> Any:
        context.stream("piece")
        return "whole"

    harness = make_harness([make_tool("streams", streams)])
    await harness.call(harness.session(), 1, "streams")
    assert harness.port.chunks == []


async def test_an_unread_answer_counts_as_accepted(make_harness: Any, make_tool: Any) -> None:
    """A call counts as accepted until its answer is sent, which bounds unsent answers."""
    harness = make_harness([make_tool("say", say)], max_accepted_per_session=2)
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
    make_harness: Any, make_tool: Any, steps: list[tuple[str, str, int, int]]
) -> None:
    """Success, error, timeout, cancel and disconnect in any order: one answer each, and all permits are released."""

    async def run() -> None:
        tools = [make_tool("say", say), make_tool("hang", hang), make_tool("bad", raising(ValueError("x")))]
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


async def test_an_acknowledged_id_can_be_reused_before_its_first_answer_is_sent(
    make_harness: Any, make_tool: Any
) -> None:
    """The client got the answer on another connection; each call is counted separately."""
    harness = make_harness([make_tool("say", say), make_tool("hang", hang)])
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


async def test_adapted_arguments_are_reported(make_harness: Any) -> None:
    """Each answer has the notices in its metadata; a session's first one also has them as a last text."""
    harness = make_harness([echo])
    session = harness.session()
    answers = [
        await harness.call(session, number, "echo", arguments={"text": "x", "delay_ms": delay})
        for number, delay in enumerate(["0", "0", 0])
    ]
    notice = 'delay_ms: "0" was read as 0.'
    assert [answer.metadata.argument_notices for answer in answers] == [(notice,), (notice,), ()]
    assert [[block.text for block in answer.outputs[1:]] for answer in answers] == [[f"Note: {notice}"], [], []]
