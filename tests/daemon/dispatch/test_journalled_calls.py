"""Calls that are journalled: when their start and end are written, and repeats of calls that only the journal has."""

import asyncio
import time
from typing import Any

import msgspec
import pytest

from .scripted_tools import hang, say


def recording_runs(runs: list[int]) -> Any:
    """The function of a tool that records its runs."""

    async def function(arguments: Any, context: Any) -> Any:
        runs.append(1)
        return "ran"

    return function


async def test_a_call_is_journalled_before_its_tool_is_entered(make_harness: Any, make_tool: Any) -> None:
    """The tool does not run until the write succeeds."""
    runs: list[int] = []
    harness = make_harness([make_tool("write", recording_runs(runs), read_only=False)])
    harness.journal.ready.clear()
    harness.submit(harness.session(), 1, "write")
    await harness.until(lambda: harness.journal.method_calls["start"])
    for _ in range(5):
        await asyncio.sleep(0)
    assert (runs, harness.port.answers) == ([], {})
    harness.journal.ready.set()
    await harness.answered()
    assert runs == [1]
    assert harness.journal.events == [("start", "n1"), ("end", "n1")]


async def test_a_result_is_persisted_before_it_is_sent(make_harness: Any, make_tool: Any) -> None:
    """While the write is pending the call's status is ``running``."""

    async def write(arguments: Any, context: Any) -> Any:
        harness.journal.ready.clear()
        return "written"

    harness = make_harness([make_tool("write", write, read_only=False)])
    session = harness.session()
    harness.submit(session, 1, "write")
    await harness.until(lambda: harness.journal.method_calls["end"])
    assert (harness.port.answers, harness.router.status_of(session, 1)) == ({}, "running")
    harness.journal.ready.set()
    await harness.answered()
    assert harness.port.answers[1].ok
    assert harness.journal.calls[session.id, "n1"].state == "done"


async def test_a_call_that_cannot_be_journalled_does_not_run(make_harness: Any, make_tool: Any) -> None:
    """It is answered SERVICE_UNAVAILABLE, not executed, and holds nothing; local calls still work."""
    runs: list[int] = []
    harness = make_harness([make_tool("write", recording_runs(runs), read_only=False), make_tool("say", say)])
    harness.journal.refuses = True
    session = harness.session()
    error = (await harness.call(session, 1, "write")).error
    assert (error.code, error.executed, error.retryable) == ("SERVICE_UNAVAILABLE", "no", True)
    assert (await harness.call(session, 2, "say")).ok
    await harness.answered()
    assert (runs, harness.journal.events, len(session.calls)) == ([], [("end", "n1")], 0)
    assert len(harness.recorder.ended_calls) == 2
    harness.journal.refuses = False
    repeat = harness.submit(session, 1, "write")
    assert (repeat.error.code, repeat.metadata.replayed, runs) == ("SERVICE_UNAVAILABLE", True, [])
    assert set(harness.counts().values()) == {0}


@pytest.fixture
def one_remembered_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session has only its last call in memory."""
    monkeypatch.setattr("toold.protocol.session_calls.REMEMBERED_IDS", 1)


@pytest.mark.usefixtures("one_remembered_id")
async def test_evicted_answers_are_replayed_from_the_journal(make_harness: Any, make_tool: Any) -> None:
    """The same answer, as a replay: no second run, no second audit row, no new write."""
    runs: list[int] = []
    harness = make_harness([make_tool("write", recording_runs(runs), read_only=False)])
    session = harness.session()
    first = await harness.call(session, 1, "write")
    await harness.call(session, 2, "write")
    events, rows = list(harness.journal.events), len(harness.recorder.ended_calls)
    del harness.port.answers[1]
    repeat = await harness.call(session, 1, "write")
    assert (repeat.outputs, repeat.metadata.replayed) == (first.outputs, True)
    assert (runs, harness.journal.events, len(harness.recorder.ended_calls)) == ([1, 1], events, rows)
    assert harness.router.status_of(session, 1) == "done"
    assert harness.submit(session, 1, "write").metadata.replayed
    assert set(harness.counts().values()) == {0}


@pytest.mark.usefixtures("one_remembered_id")
async def test_an_answer_from_the_journal_keeps_its_age(make_harness: Any, make_tool: Any) -> None:
    """It expires at the original time, however often it is replayed."""
    harness = make_harness([make_tool("write", say, read_only=False)], result_ttl_s=60.0)
    session = harness.session()
    for request_id in (1, 2):
        await harness.call(session, request_id, "write")
    known = harness.journal.calls[session.id, "n1"]
    harness.journal.calls[session.id, "n1"] = msgspec.structs.replace(known, at=known.at - 59.0)
    del harness.port.answers[1]
    assert (await harness.call(session, 1, "write")).metadata.replayed
    assert session.calls.status("n1", time.monotonic() + 2.0) == "expired"


@pytest.mark.usefixtures("one_remembered_id")
@pytest.mark.parametrize(
    ("forgotten", "text", "code", "executed"),
    [(True, "x", "RESULT_EXPIRED", "yes"), (False, "other", "REQUEST_ID_CONFLICT", "no")],
    ids=["forgotten", "other"],
)
async def test_evicted_calls_do_not_run_again(
    make_harness: Any, make_tool: Any, forgotten: bool, text: str, code: str, executed: str
) -> None:
    """Without its answer it is RESULT_EXPIRED, with other content a conflict; the stored call stays unchanged."""
    harness = make_harness([make_tool("write", say, read_only=False)])
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


@pytest.mark.usefixtures("one_remembered_id")
async def test_a_call_cancelled_during_its_lookup_may_have_been_executed(
    make_harness: Any, make_tool: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal knows the id, so ``executed`` is ``maybe``: a second id could repeat the effect."""
    harness = make_harness([make_tool("write", say, read_only=False)])
    session = harness.session()
    for request_id in (1, 2):
        await harness.call(session, request_id, "write")
    event = asyncio.Event()

    async def hung(_: Any) -> None:
        event.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(harness.journal, "earlier_call", hung)
    del harness.port.answers[1]
    running = harness.submit(session, 1, "write")
    await event.wait()
    harness.router.cancel(session, running.key)
    await harness.until(lambda: 1 in harness.port.answers)
    error = harness.port.answers[1].error
    assert (error.code, error.executed) == ("CANCELLED", "maybe")
    assert set(harness.counts().values()) == {0}


@pytest.mark.usefixtures("one_remembered_id")
async def test_a_local_call_of_a_long_session_reads_no_database(make_harness: Any, make_tool: Any) -> None:
    """The database is read only for calls that would be journalled, and for status queries."""
    harness = make_harness([make_tool("say", say), make_tool("write", say, read_only=False)])
    session = harness.session()
    for request_id, name in enumerate(("write", "write", "say")):
        await harness.call(session, request_id, name)
    assert session.calls.incomplete
    assert harness.journal.method_calls == {"start": 2, "end": 2}
    assert await harness.router.statuses_of(session, [2]) == ["done"]
    assert not harness.journal.method_calls["call_states"]
    assert await harness.router.statuses_of(session, [0, 2, 9]) == ["done", "done", "unknown"]


@pytest.mark.parametrize(("timeout_ms", "code"), [(20, "TIMEOUT"), (None, "CANCELLED")])
async def test_a_call_that_ends_during_its_journal_write_does_not_run(
    make_harness: Any, make_tool: Any, timeout_ms: float | None, code: str
) -> None:
    """It was not executed; since its start may be written, its end is written too."""
    runs: list[int] = []
    harness = make_harness([make_tool("write", recording_runs(runs), read_only=False)])
    session = harness.session()
    harness.journal.ready.clear()
    running = harness.submit(session, 1, "write", timeout_ms=timeout_ms)
    await harness.until(lambda: harness.journal.method_calls["start"])
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
    make_harness: Any, make_tool: Any, timeout_ms: float | None, code: str
) -> None:
    """A repeat gets it again, also if it is retryable, and in the next process; without it the id is RESULT_EXPIRED,
    executed ``no``; other content is a conflict.
    """
    runs: list[int] = []
    harness = make_harness(
        [make_tool("hang", hang), make_tool("write", recording_runs(runs), read_only=False)], max_running=1
    )
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

    after_crash = make_harness([make_tool("write", recording_runs(runs), read_only=False)], journal=harness.journal)
    for current, holder in ((harness, session), (after_crash, (await after_crash.resume("key")).session)):
        repeat = current.submit(holder, 2, "write")
        assert (repeat.error.code, repeat.error.executed, repeat.metadata.replayed) == (code, "no", True)
        assert current.submit(holder, 2, "write", {"other": 1}).error.code == "REQUEST_ID_CONFLICT"
        assert current.router.status_of(holder, 2) == "done"
        current.router.acknowledge(holder, [2])
        expired = current.submit(holder, 2, "write").error
        assert (expired.code, expired.executed) == ("RESULT_EXPIRED", "no")
        assert current.router.status_of(holder, 2) == "expired"
    assert runs == []


@pytest.mark.usefixtures("one_remembered_id")
async def test_a_cancelled_repeat_of_an_evicted_call_gets_its_answer(make_harness: Any, make_tool: Any) -> None:
    """The repeat ends before its start, but the id has an answer already."""
    harness = make_harness([make_tool("write", say, read_only=False), make_tool("hang", hang)], max_running=1)
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


async def test_a_local_call_is_not_journalled(make_harness: Any, make_tool: Any) -> None:
    """Neither before it runs nor before its answer is sent."""
    harness = make_harness([make_tool("say", say)])
    harness.journal.ready.clear()
    session = harness.session(key="key")
    assert (await harness.call(session, 1, "say")).ok
    assert (harness.journal.events, session.journalled) == ([], False)
