"""Connections, as the router sees them: which calls end with them, and which port gets the answers."""

import asyncio
from typing import Any

import pytest

from .scripted_tools import hang, say


async def test_long_calls_send_heartbeats(make_harness: Any, make_tool: Any) -> None:
    """Running and waiting calls of one port are reported together."""
    harness = make_harness([make_tool("hang", hang)], max_running=1, progress_interval_s=0.04)
    session = harness.session()
    calls = [harness.submit(session, number, "hang") for number in range(2)]
    heartbeats = asyncio.create_task(harness.router.heartbeats.run())
    while harness.port.heartbeats < 3:
        await asyncio.sleep(0.001)
    heartbeats.cancel()
    messages = {request_id: progress.message for request_id, progress in harness.port.heard}
    assert "running" in messages[0]
    assert "waiting" in messages[1]
    for running in calls:
        harness.router.cancel(session, running.key)
    await harness.answered()


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
    make_harness: Any, make_tool: Any, key: str | None, read_only: bool, on_disconnect: Any, ends: bool
) -> None:
    """The caller decides; by default calls continue if the session can be resumed or they may write."""
    proceed = asyncio.Event()

    async def wait(arguments: Any, context: Any) -> Any:
        await proceed.wait()

    harness = make_harness([make_tool("wait", wait, read_only=read_only)])
    session = harness.session(key=key)
    running = harness.submit(session, 1, "wait", on_disconnect=on_disconnect)
    await harness.until(lambda: running.entered)
    harness.router.disconnect(session, harness.port)
    proceed.set()
    await harness.answered()
    assert harness.port.answers == {}
    assert harness.absent_port.answers[1].outcome == ("CANCELLED" if ends else "ok")


async def test_a_takeover_receives_the_answers_of_running_calls(make_harness: Any, make_tool: Any) -> None:
    """Only the new port gets them; the later end of the old connection has no effect."""
    harness = make_harness([make_tool("hang", hang, read_only=False)])
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


async def test_a_takeover_during_the_journal_write_receives_the_answer(make_harness: Any, make_tool: Any) -> None:
    """The call is running until its result is persisted; a later connection finds it cached."""

    async def write(arguments: Any, context: Any) -> Any:
        harness.journal.ready.clear()
        return "written"

    harness = make_harness([make_tool("write", write, read_only=False)])
    session = harness.session(key="key")
    harness.submit(session, 1, "write")
    await harness.until(lambda: harness.journal.method_calls["end"])
    back = await harness.resume("key")
    assert back.missed == {}
    harness.journal.ready.set()
    await harness.answered()
    assert (harness.port.answers, back.port.answers[1].ok) == ({}, True)


async def test_an_answer_stuck_on_the_old_connection_is_redelivered(make_harness: Any, make_tool: Any) -> None:
    """The daemon cannot know whether it arrived; the call counts until the old delivery is abandoned."""
    harness = make_harness([make_tool("write", say, read_only=False)])
    session = harness.session(key="key")
    harness.port.reading.clear()
    harness.submit(session, 1, "write")
    await harness.until(lambda: harness.router.status_of(session, 1) == "done")
    back = await harness.resume("key")
    assert (back.missed[1].ok, harness.port.answers, len(session.calls)) == (True, {}, 1)
    harness.port.reading.set()
    await harness.answered()
    assert (back.port.answers, len(session.calls)) == ({}, 0)


async def test_a_report_is_repeated_within_its_window_only(make_harness: Any, make_tool: Any) -> None:
    """After a later reconnect, the client gets the duration of the call instead of an old report."""

    async def reports(arguments: Any, context: Any) -> Any:
        context.progress("half")
        await asyncio.Event().wait()

    harness = make_harness([make_tool("reports", reports)])
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


async def test_acknowledged_results_are_deleted_from_disk_too(make_harness: Any, make_tool: Any) -> None:
    """This applies to resumable sessions; others have no results on disk."""
    harness = make_harness([make_tool("write", say, read_only=False)])
    lasting, plain = harness.session("lasting", key="key"), harness.session("plain")
    for session, request_id in ((lasting, 1), (plain, 2)):
        await harness.call(session, request_id, "write")
        harness.router.acknowledge(session, [request_id, "never heard of"])
    assert [event for event in harness.journal.events if event[0] == "forget"] == [("forget", "n1")]
    assert harness.router.status_of(lasting, 1) == "expired"
