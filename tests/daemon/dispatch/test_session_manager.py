"""Sessions outlive their connections, and are resumed from memory or disk with all answers."""

import asyncio
from typing import Annotated, Any

import msgspec
import pytest
from toold.daemon.dispatch import session_manager
from toold.protocol.error_codes import ServiceUnavailableError
from toold.protocol.tool_call import Principal
from toold.tools import Arguments, ToolContext, tool
from toold.tools.former_arguments import FormerNames

from .scripted_tools import hang, say


def tools(make_tool: Any) -> list[Any]:
    """A local tool, one that writes, and one that writes and does not return."""
    return [make_tool("say", say), make_tool("write", say, read_only=False), make_tool("hang", hang, read_only=False)]


async def left_for_long(harness: Any, session: Any) -> None:
    """No connection holds the session; runs the unloading task until it finds the session idle for long enough."""
    harness.router.disconnect(session, harness.port)
    unload_task = asyncio.create_task(harness.router.sessions.unload_idle())
    await harness.until(lambda: not len(harness.router.sessions))
    unload_task.cancel()


async def test_an_unloaded_session_is_restored_with_its_answers(make_harness: Any, make_tool: Any) -> None:
    """Local answers too, in order, each with its kind; the session uses no memory until then."""
    harness = make_harness(tools(make_tool), progress_window_s=0.02)
    session = harness.session(key="key")
    for request_id, name in ((1, "write"), ("two", "say"), (3, "write")):
        await harness.call(session, request_id, name, arguments={"text": str(request_id)})
    harness.router.acknowledge(session, [3])
    await left_for_long(harness, session)
    back = await harness.resume("key")
    assert back.session is not session
    assert (back.session.id, back.session.label) == (session.id, "test")
    assert {request_id: result.outputs[0].text for request_id, result in back.missed.items()} == {1: "1", "two": "two"}
    assert [harness.router.status_of(back.session, item) for item in (1, "two", 3)] == ["done", "done", "expired"]
    assert harness.submit(back.session, 1, "write", {"text": "1"}).metadata.replayed
    assert harness.submit(back.session, 1, "write", {"text": "other"}).error.code == "REQUEST_ID_CONFLICT"
    assert harness.submit(back.session, 3, "write", {"text": "3"}).error.code == "RESULT_EXPIRED"


async def test_many_answers_are_persisted_in_several_turns(
    make_harness: Any, make_tool: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Encoding and hashing all of them at once would stop the event loop. Between the turns, other things happen."""
    monkeypatch.setattr(session_manager, "_PART_BYTES", 1)
    harness = make_harness(tools(make_tool), progress_window_s=0.02)
    session = harness.session(key="key")
    for number in range(3):
        await harness.call(session, number, "say", arguments={"text": str(number)})
    parts: list[int] = []
    turns: list[int] = []
    persist = harness.journal.persist_local_results

    def recording(results: Any) -> Any:
        parts.append(len(results))
        asyncio.get_running_loop().call_soon(lambda: turns.append(len(parts)))
        return persist(results)

    monkeypatch.setattr(harness.journal, "persist_local_results", recording)
    await left_for_long(harness, session)
    assert parts == [1, 1, 1]
    assert turns == [1, 2, 3]
    back = await harness.resume("key")
    assert {request_id: result.outputs[0].text for request_id, result in back.missed.items()} == {
        0: "0",
        1: "1",
        2: "2",
    }


async def test_a_session_keeps_its_toolset(make_harness: Any, make_tool: Any) -> None:
    """Also after it is restored from disk: a resume cannot widen its tools."""
    harness = make_harness(tools(make_tool), progress_window_s=0.02)
    session = harness.session(key="key", toolset="lean")
    await harness.call(session, 1, "say", arguments={"text": "a"})
    await left_for_long(harness, session)
    assert (await harness.resume("key")).session.toolset == "lean"


async def test_the_answer_of_an_unstarted_call_is_persisted_too(make_harness: Any, make_tool: Any) -> None:
    """It was accepted, so its client finds its answer, although the journal has no start of it."""
    harness = make_harness(tools(make_tool), max_running=1, progress_window_s=0.02)
    session = harness.session(key="key")
    first = harness.submit(session, 1, "hang")
    await harness.until(lambda: first.entered)
    harness.submit(session, 2, "write", timeout_ms=1)
    harness.router.disconnect(session, harness.port)
    await harness.until(lambda: 2 in harness.absent_port.answers)
    harness.router.cancel(session, first.key)
    await harness.answered()
    await left_for_long(harness, session)
    back = await harness.resume("key")
    assert {request_id: result.error.code for request_id, result in back.missed.items()} == {
        1: "CANCELLED",
        2: "TIMEOUT",
    }


async def test_a_session_with_running_calls_stays_in_memory(make_harness: Any, make_tool: Any) -> None:
    """However long no connection holds it: its calls continue, and their answers wait."""
    harness = make_harness(tools(make_tool), progress_window_s=0.02)
    session = harness.session(key="key")
    running = harness.submit(session, 1, "hang")
    await harness.until(lambda: running.entered)
    harness.router.disconnect(session, harness.port)
    session.detached_at -= 1000
    missing = harness.session("gone", key="other")
    unload_task = asyncio.create_task(harness.router.sessions.unload_idle())
    harness.router.disconnect(missing, harness.port)
    await harness.until(lambda: len(harness.router.sessions) == 1)
    unload_task.cancel()
    back = await harness.resume("key")
    assert back.session is session
    harness.router.cancel(session, running.key)
    await harness.answered()
    assert back.port.answers[1].outcome == "CANCELLED"


async def test_failed_writes_leave_sessions_in_memory(make_harness: Any, make_tool: Any) -> None:
    """Data held only in memory is not dropped; once writes succeed the session is unloaded."""
    harness = make_harness(tools(make_tool), progress_window_s=0.02)
    session = harness.session(key="key")
    await harness.call(session, 1, "say")
    harness.journal.refuses = True
    harness.router.disconnect(session, harness.port)
    unload_task = asyncio.create_task(harness.router.sessions.unload_idle())
    await harness.until(lambda: harness.journal.method_calls["persist_local_results"] >= 2)
    assert len(harness.router.sessions) == 1
    harness.journal.refuses = False
    await harness.until(lambda: not len(harness.router.sessions))
    unload_task.cancel()
    assert (await harness.resume("key")).missed[1].ok


async def test_a_result_sent_before_it_was_persisted_stays_in_memory(make_harness: Any, make_tool: Any) -> None:
    """Writes began to fail while the call ran: its client still finds the result much later."""
    harness = make_harness([make_tool("write", say, read_only=False)], progress_window_s=0.02)
    session = harness.session(key="key")
    harness.journal.loses_ends = True
    await harness.call(session, 1, "write")
    harness.journal.refuses = True
    harness.router.disconnect(session, harness.port)
    unload_task = asyncio.create_task(harness.router.sessions.unload_idle())
    await harness.until(lambda: harness.journal.method_calls["writable"] >= 2)
    assert (await harness.resume("key")).missed[1].ok
    unload_task.cancel()


async def test_a_session_resumed_during_its_unload_stays(make_harness: Any, make_tool: Any) -> None:
    """The write takes time, and meanwhile a connection holds the session again."""
    harness = make_harness(tools(make_tool), progress_window_s=0.02)
    session = harness.session(key="key")
    await harness.call(session, 1, "say")
    harness.journal.ready.clear()
    harness.router.disconnect(session, harness.port)
    unload_task = asyncio.create_task(harness.router.sessions.unload_idle())
    await harness.until(lambda: harness.journal.method_calls["persist_local_results"])
    back = await harness.resume("key")
    harness.journal.ready.set()
    other = harness.session("other", key="other")
    harness.router.disconnect(other, harness.port)
    await harness.until(lambda: other not in list(harness.router.sessions._sessions))
    unload_task.cancel()
    assert list(harness.router.sessions._sessions) == [session]
    assert (back.session, session.holder) == (session, back.port)


async def test_a_call_that_ends_during_an_unload_keeps_its_session(make_harness: Any, make_tool: Any) -> None:
    """Its answer came too late to be written with the others, so the session stays in memory."""
    proceed = asyncio.Event()

    async def wait(arguments: Any, context: Any) -> str:
        await proceed.wait()
        return "late"

    harness = make_harness([*tools(make_tool), make_tool("wait", wait)], progress_window_s=0.02)
    busy, idle = harness.session("busy", key="busy"), harness.session("idle", key="idle")
    await harness.call(idle, 1, "say")
    harness.submit(busy, 2, "wait")
    for session in (busy, idle):
        harness.router.disconnect(session, harness.port)
        session.detached_at -= 1000
    harness.journal.ready.clear()
    unload_task = asyncio.create_task(harness.router.sessions.unload_idle())
    await harness.until(lambda: harness.journal.method_calls["persist_local_results"])
    proceed.set()
    await harness.answered()
    harness.journal.ready.set()
    await harness.until(lambda: len(harness.router.sessions) < 2)
    assert (await harness.resume("busy")).missed[2].outputs[0].text == "late"
    unload_task.cancel()


async def test_after_a_crash_finished_and_interrupted_calls_are_restored(make_harness: Any, make_tool: Any) -> None:
    """Interrupted calls answer OUTCOME_UNKNOWN and do not run again; local ones are unknown and may."""
    before = make_harness(tools(make_tool))
    session = before.session(key="key")
    await before.call(session, 1, "write")
    await before.call(session, 2, "say")
    running = before.submit(session, 3, "hang")
    await before.until(lambda: running.entered)

    harness = make_harness(tools(make_tool), journal=before.journal)
    back = await harness.resume("key")
    assert back.session.id == session.id
    assert [harness.router.status_of(back.session, item) for item in (1, 2, 3)] == ["done", "unknown", "interrupted"]
    assert (back.missed.keys(), back.missed[1].outputs[0].text) == ({1, 3}, "said")
    error = back.missed[3].error
    assert (error.code, error.executed, error.retryable) == ("OUTCOME_UNKNOWN", "maybe", False)
    assert harness.submit(back.session, 3, "hang").error.code == "OUTCOME_UNKNOWN"
    assert harness.router.accepted == 0

    before.router.cancel(session, running.key)
    await before.answered()


async def test_the_old_answer_of_a_reused_id_is_not_restored(make_harness: Any, make_tool: Any) -> None:
    """It was on disk and evicted from memory; a crash restores neither it nor the new one."""
    before = make_harness(tools(make_tool), progress_window_s=0.02, max_cached_result_bytes=1500)
    session = before.session(key="key")
    await before.call(session, 1, "say", arguments={"text": "old"})
    await left_for_long(before, session)
    back = await before.resume("key")
    await before.call(back.session, 2, "say", arguments={"text": "x" * 1350})
    assert before.router.status_of(back.session, 1) == "unknown"
    before.submit(back.session, 1, "say", {"text": "new"}, port=back.port)
    await before.answered()
    assert back.port.answers[1].outputs[0].text == "new"

    harness = make_harness(tools(make_tool), journal=before.journal)
    assert (await harness.resume("key")).missed == {}


async def test_an_id_reused_during_the_write_of_its_old_answer(make_harness: Any, make_tool: Any) -> None:
    """The answer that is being written is deleted again."""
    harness = make_harness(tools(make_tool), progress_window_s=0.02, max_cached_result_bytes=1500)
    session = harness.session(key="key")
    await harness.call(session, 1, "say", arguments={"text": "old"})
    harness.journal.ready.clear()
    harness.router.disconnect(session, harness.port)
    unload_task = asyncio.create_task(harness.router.sessions.unload_idle())
    await harness.until(lambda: harness.journal.method_calls["persist_local_results"])
    back = await harness.resume("key")
    await harness.call(back.session, 2, "say", arguments={"text": "x" * 1350})
    harness.submit(back.session, 1, "say", {"text": "new"}, port=back.port)
    await harness.answered()
    unload_task.cancel()
    assert harness.journal.events == [("forget", "n1")]


async def test_a_graceful_shutdown_loses_no_answer(make_harness: Any, make_tool: Any) -> None:
    """Local answers are persisted too, nothing is written twice, and plain sessions leave nothing."""
    before = make_harness(tools(make_tool))
    session, plain = before.session(key="key"), before.session("plain")
    await before.call(session, 1, "write")
    await before.call(session, 2, "say")
    await before.call(plain, 3, "say")
    await before.router.close("The daemon stops.", 0)
    assert [event for event in before.journal.events if event[0] in {"keep", "seen"}] == [
        ("seen", "test"),
        ("keep", "n2"),
    ]
    back = await make_harness(tools(make_tool), journal=before.journal).resume("key")
    assert (back.missed.keys(), all(result.ok for result in back.missed.values())) == ({1, 2}, True)


async def test_a_hanging_disk_cannot_delay_shutdown(
    make_harness: Any, make_tool: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last write is waited for as long as configured."""
    monkeypatch.setattr("toold.daemon.dispatch.session_manager._LAST_WRITE_S", 0.01)
    harness = make_harness(tools(make_tool))
    await harness.call(harness.session(key="key"), 1, "say")
    harness.journal.ready.clear()
    async with asyncio.timeout(20):
        await harness.router.close("The daemon stops.", 0)
    assert harness.journal.method_calls["persist_local_results"] == 1


async def test_a_stored_result_keeps_its_age(make_harness: Any, make_tool: Any) -> None:
    """A restart does not extend its retention."""
    before = make_harness(tools(make_tool))
    session = before.session(key="key")
    await before.call(session, 1, "write")
    stored = before.journal.calls[session.id, "n1"]
    aged = msgspec.structs.replace(stored, at=stored.at - before.router.limits.result_ttl_s)
    before.journal.calls[session.id, "n1"] = aged
    harness = make_harness(tools(make_tool), journal=before.journal)
    back = await harness.resume("key")
    assert back.missed == {}
    assert harness.router.status_of(back.session, 1) == "expired"


async def test_an_undecodable_result_counts_as_expired(make_harness: Any, make_tool: Any) -> None:
    """The rest of its session is restored."""
    before = make_harness(tools(make_tool))
    session = before.session(key="key")
    for request_id in (1, 2):
        await before.call(session, request_id, "write")
    stored = before.journal.calls[session.id, "n1"]
    before.journal.calls[session.id, "n1"] = msgspec.structs.replace(stored, result=b"{")
    harness = make_harness(tools(make_tool), journal=before.journal)
    back = await harness.resume("key")
    assert back.missed.keys() == {2}
    assert harness.router.status_of(back.session, 1) == "expired"


async def test_a_resume_key_is_bound_to_its_principal(make_harness: Any, make_tool: Any) -> None:
    """Both in memory and on disk; the owner still finds everything."""
    before = make_harness(tools(make_tool))
    await before.call(before.session(key="key"), 1, "write")
    mallory = Principal("mallory")
    harness = make_harness(tools(make_tool), journal=before.journal)
    assert await before.resume("key", mallory) is None
    assert await harness.resume("key", mallory) is None
    assert await harness.resume("made up") is None
    assert len(harness.router.sessions) == 0
    assert (await harness.resume("key")).missed.keys() == {1}
    assert await harness.resume("key", mallory) is None


async def test_two_concurrent_resumes_get_one_session(make_harness: Any, make_tool: Any) -> None:
    """It is loaded once, and the later connection takes it over."""
    before = make_harness(tools(make_tool))
    await before.call(before.session(key="key"), 1, "write")
    harness = make_harness(tools(make_tool), journal=before.journal)
    harness.journal.ready.clear()
    both = [asyncio.create_task(harness.resume("key")) for _ in range(2)]
    await harness.until(lambda: harness.journal.method_calls["find_session"])
    harness.journal.ready.set()
    first, second = [await item for item in both]
    assert first.session is second.session
    assert (first.superseded, second.superseded) == (None, first.port)
    assert (len(harness.router.sessions), harness.journal.method_calls["find_session"]) == (1, 1)


async def test_an_unreadable_database_opens_no_new_session(make_harness: Any, make_tool: Any) -> None:
    """The client is asked to retry, instead of silently losing its session."""
    before = make_harness(tools(make_tool))
    before.session(key="key")
    harness = make_harness(tools(make_tool), journal=before.journal)
    harness.journal.refuses = True
    with pytest.raises(ServiceUnavailableError):
        await harness.resume("key")
    harness.journal.refuses = False
    assert await harness.resume("key") is not None


async def test_a_session_in_memory_resumes_without_waiting_for_the_disk(make_harness: Any, make_tool: Any) -> None:
    """A hanging disk delays only sessions that are not in memory."""
    harness = make_harness(tools(make_tool))
    session = harness.session(key="key")
    harness.journal.ready.clear()
    waiting = asyncio.create_task(harness.resume("unknown"))
    await harness.until(lambda: harness.journal.method_calls["find_session"])
    async with asyncio.timeout(20):
        assert (await harness.resume("key")).session is session
    harness.journal.ready.set()
    assert await waiting is None


async def test_only_resumable_sessions_are_persisted(make_harness: Any, make_tool: Any) -> None:
    """A plain session is deleted from the journal when it ends; its calls continue."""
    harness = make_harness(tools(make_tool))
    wrote, talked, lasting = harness.session("wrote"), harness.session("talked"), harness.session("lasting", key="key")
    await harness.call(wrote, 1, "write")
    await harness.call(talked, 2, "say")
    await harness.call(lasting, 3, "write")
    for session in (wrote, talked, lasting):
        harness.router.disconnect(session, harness.port)
    assert [row.label for row in harness.journal.sessions.values()] == ["lasting"]
    assert [event for event in harness.journal.events if event[0] == "close"] == [("close", "wrote")]
    assert [session.label for session in harness.router.sessions._sessions] == ["lasting"]


async def test_results_share_their_principals_limit(make_harness: Any, make_tool: Any) -> None:
    """Another session of the same principal evicts the oldest; the limit is in bytes."""
    harness = make_harness(tools(make_tool), max_cached_result_bytes=250)
    first, other = harness.session("one"), harness.session("other")
    await harness.call(first, 1, "say", arguments={"text": "x" * 30})
    assert harness.router.status_of(first, 1) == "done"
    await harness.call(other, 2, "say", arguments={"text": "x" * 30})
    assert (harness.router.status_of(first, 1), harness.router.status_of(other, 2)) == ("unknown", "done")


async def test_a_write_of_a_disconnected_plain_client_is_closed_when_it_ends(make_harness: Any, make_tool: Any) -> None:
    """It cannot be resumed, so the journal need not keep it."""
    harness = make_harness([make_tool("hang", hang), make_tool("write", say, read_only=False)], max_running=1)
    session = harness.session()
    blocker = harness.submit(harness.session("other"), 1, "hang")
    harness.submit(session, 2, "write")
    harness.router.disconnect(session, harness.port)
    assert ("close", session.label) not in harness.journal.events
    await harness.router.cancel_by_operator(blocker.id)
    await harness.answered()
    assert harness.journal.events[-2:] == [("end", "n2"), ("close", session.label)]


class Words(Arguments):
    """Has an argument that an earlier server named otherwise."""

    text: Annotated[str, FormerNames("said")]


@tool("repeat", read_only=True, open_world=False)
async def repeat(arguments: Words, _context: ToolContext) -> str:
    """Say it back."""
    return arguments.text


async def test_a_session_of_an_old_client_stays_one(make_harness: Any) -> None:
    """After a restart its answers still have the form of earlier servers, without another former name."""
    before = make_harness([repeat])
    await before.call(before.session(key="old"), 1, "repeat", arguments={"said": "a"})
    await before.call(before.session("new", key="new"), 1, "repeat", arguments={"text": "a"})
    after = make_harness([repeat], journal=before.journal)
    assert (await after.resume("old")).session.former is True
    assert (await after.resume("new")).session.former is False
