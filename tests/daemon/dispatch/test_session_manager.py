"""Sessions outlive their connections, and come back from memory or the disk to their principal, with all answers."""

import asyncio
from typing import Any

import msgspec
import pytest
from toold.protocol.error_codes import ServiceUnavailableError
from toold.protocol.tool_call import Principal


async def say(arguments: Any, context: Any) -> Any:
    return arguments.get("text", "said")


async def hang(arguments: Any, context: Any) -> Any:
    await asyncio.Event().wait()


def tools(make: Any) -> list[Any]:
    """One that is local, one that writes, and one that writes and does not end."""
    return [make("say", say), make("write", say, read_only=False), make("hang", hang, read_only=False)]


async def left_for_long(home: Any, session: Any) -> None:
    """Nobody holds the session, and the keeper of sessions looks, until it finds it left for long enough."""
    home.router.disconnect(session, home.port)
    keeper = asyncio.create_task(home.router.sessions.unload_idle())
    await home.until(lambda: not len(home.router.sessions))
    keeper.cancel()


async def test_a_session_that_was_put_away_comes_back_with_its_answers(house: Any, make: Any) -> None:
    """Local answers too, in the order in which they came, each for what it was; and only then does it cost memory."""
    home = house(tools(make), progress_window_s=0.02)
    session = home.session(key="key")
    for request_id, name in ((1, "write"), ("two", "say"), (3, "write")):
        await home.call(session, request_id, name, arguments={"text": str(request_id)})
    home.router.acknowledge(session, [3])
    await left_for_long(home, session)
    back = await home.resume("key")
    assert back.session is not session
    assert (back.session.id, back.session.label) == (session.id, "test")
    assert {request_id: result.outputs[0].text for request_id, result in back.missed.items()} == {1: "1", "two": "two"}
    assert [home.router.status_of(back.session, one) for one in (1, "two", 3)] == ["done", "done", "expired"]
    assert home.submit(back.session, 1, "write", {"text": "1"}).metadata.replayed
    assert home.submit(back.session, 1, "write", {"text": "other"}).error.code == "REQUEST_ID_CONFLICT"
    assert home.submit(back.session, 3, "write", {"text": "3"}).error.code == "RESULT_EXPIRED"


async def test_a_session_keeps_its_toolset(house: Any, make: Any) -> None:
    """Also where it comes back from the disk: a resume lets nobody out of what bounded them."""
    home = house(tools(make), progress_window_s=0.02)
    session = home.session(key="key", toolset="lean")
    await home.call(session, 1, "say", arguments={"text": "a"})
    await left_for_long(home, session)
    assert (await home.resume("key")).session.toolset == "lean"


async def test_an_answer_of_a_call_that_never_started_outlives_memory_too(house: Any, make: Any) -> None:
    """It was accepted, so its client finds its answer, though the journal never heard of the call."""
    home = house(tools(make), max_running=1, progress_window_s=0.02)
    session = home.session(key="key")
    first = home.submit(session, 1, "hang")
    await home.until(lambda: first.entered)
    home.submit(session, 2, "write", timeout_ms=1)
    home.router.disconnect(session, home.port)
    await home.until(lambda: 2 in home.away.answers)
    home.router.cancel(session, first.key)
    await home.answered()
    await left_for_long(home, session)
    back = await home.resume("key")
    assert {request_id: result.error.code for request_id, result in back.missed.items()} == {
        1: "CANCELLED",
        2: "TIMEOUT",
    }


async def test_a_session_with_calls_under_way_stays_in_memory(house: Any, make: Any) -> None:
    """However long nobody is there: its calls go on, and their answers wait."""
    home = house(tools(make), progress_window_s=0.02)
    session = home.session(key="key")
    running = home.submit(session, 1, "hang")
    await home.until(lambda: running.entered)
    home.router.disconnect(session, home.port)
    session.detached_at -= 1000
    gone = home.session("gone", key="other")
    keeper = asyncio.create_task(home.router.sessions.unload_idle())
    home.router.disconnect(gone, home.port)
    await home.until(lambda: len(home.router.sessions) == 1)
    keeper.cancel()
    back = await home.resume("key")
    assert back.session is session
    home.router.cancel(session, running.key)
    await home.answered()
    assert back.port.answers[1].outcome == "CANCELLED"


async def test_a_disk_that_refuses_leaves_sessions_in_memory(house: Any, make: Any) -> None:
    """What only memory has is not dropped; once the disk takes it again, the session is put away."""
    home = house(tools(make), progress_window_s=0.02)
    session = home.session(key="key")
    await home.call(session, 1, "say")
    home.journal.refuses = True
    home.router.disconnect(session, home.port)
    keeper = asyncio.create_task(home.router.sessions.unload_idle())
    await home.until(lambda: home.journal.asked["persist_local_results"] >= 2)
    assert len(home.router.sessions) == 1
    home.journal.refuses = False
    await home.until(lambda: not len(home.router.sessions))
    keeper.cancel()
    assert (await home.resume("key")).missed[1].ok


async def test_a_result_that_was_told_before_it_was_written_stays_in_memory(house: Any, make: Any) -> None:
    """The disk began to refuse while the call ran: its client is away for long, and still finds what became of it."""
    home = house([make("write", say, read_only=False)], progress_window_s=0.02)
    session = home.session(key="key")
    home.journal.loses_ends = True
    await home.call(session, 1, "write")
    home.journal.refuses = True
    home.router.disconnect(session, home.port)
    keeper = asyncio.create_task(home.router.sessions.unload_idle())
    await home.until(lambda: home.journal.asked["writable"] >= 2)
    assert (await home.resume("key")).missed[1].ok
    keeper.cancel()


async def test_who_comes_back_while_its_session_is_put_away_keeps_it(house: Any, make: Any) -> None:
    """The disk takes its time, and meanwhile the session is held again: it stays."""
    home = house(tools(make), progress_window_s=0.02)
    session = home.session(key="key")
    await home.call(session, 1, "say")
    home.journal.ready.clear()
    home.router.disconnect(session, home.port)
    keeper = asyncio.create_task(home.router.sessions.unload_idle())
    await home.until(lambda: home.journal.asked["persist_local_results"])
    back = await home.resume("key")
    home.journal.ready.set()
    other = home.session("other", key="other")
    home.router.disconnect(other, home.port)
    await home.until(lambda: other not in list(home.router.sessions._sessions))
    keeper.cancel()
    assert list(home.router.sessions._sessions) == [session]
    assert (back.session, session.holder) == (session, back.port)


async def test_a_call_that_ends_while_others_are_put_away_keeps_its_session(house: Any, make: Any) -> None:
    """Its answer came too late to be written with theirs, so memory has to keep it."""
    go_on = asyncio.Event()

    async def wait(arguments: Any, context: Any) -> str:
        await go_on.wait()
        return "late"

    home = house([*tools(make), make("wait", wait)], progress_window_s=0.02)
    busy, idle = home.session("busy", key="busy"), home.session("idle", key="idle")
    await home.call(idle, 1, "say")
    home.submit(busy, 2, "wait")
    for session in (busy, idle):
        home.router.disconnect(session, home.port)
        session.detached_at -= 1000
    home.journal.ready.clear()
    keeper = asyncio.create_task(home.router.sessions.unload_idle())
    await home.until(lambda: home.journal.asked["persist_local_results"])
    go_on.set()
    await home.answered()
    home.journal.ready.set()
    await home.until(lambda: len(home.router.sessions) < 2)
    assert (await home.resume("busy")).missed[2].outputs[0].text == "late"
    keeper.cancel()


async def test_after_a_crash_the_disk_tells_what_was_done_and_what_was_interrupted(house: Any, make: Any) -> None:
    """Interrupted calls answer OUTCOME_UNKNOWN and are not run again; local ones are unknown, and may be."""
    before = house(tools(make))
    session = before.session(key="key")
    await before.call(session, 1, "write")
    await before.call(session, 2, "say")
    running = before.submit(session, 3, "hang")
    await before.until(lambda: running.entered)

    home = house(tools(make), journal=before.journal)
    back = await home.resume("key")
    assert back.session.id == session.id
    assert [home.router.status_of(back.session, one) for one in (1, 2, 3)] == ["done", "unknown", "interrupted"]
    assert (back.missed.keys(), back.missed[1].outputs[0].text) == ({1, 3}, "said")
    error = back.missed[3].error
    assert (error.code, error.executed, error.retryable) == ("OUTCOME_UNKNOWN", "maybe", False)
    assert home.submit(back.session, 3, "hang").error.code == "OUTCOME_UNKNOWN"
    assert home.router.accepted == 0

    before.router.cancel(session, running.key)
    await before.answered()


async def test_an_answer_whose_id_has_another_call_now_does_not_come_back(house: Any, make: Any) -> None:
    """It was on the disk, and memory had no room for it any more: a crash brings back neither it nor the new one."""
    before = house(tools(make), progress_window_s=0.02, max_kept_bytes=1500)
    session = before.session(key="key")
    await before.call(session, 1, "say", arguments={"text": "old"})
    await left_for_long(before, session)
    back = await before.resume("key")
    await before.call(back.session, 2, "say", arguments={"text": "x" * 1350})
    assert before.router.status_of(back.session, 1) == "unknown"
    before.submit(back.session, 1, "say", {"text": "new"}, port=back.port)
    await before.answered()
    assert back.port.answers[1].outputs[0].text == "new"

    home = house(tools(make), journal=before.journal)
    assert (await home.resume("key")).missed == {}


async def test_a_call_that_takes_an_id_while_its_answer_is_stored(house: Any, make: Any) -> None:
    """The answer that is on its way to the disk is to be forgotten there, too."""
    home = house(tools(make), progress_window_s=0.02, max_kept_bytes=1500)
    session = home.session(key="key")
    await home.call(session, 1, "say", arguments={"text": "old"})
    home.journal.ready.clear()
    home.router.disconnect(session, home.port)
    keeper = asyncio.create_task(home.router.sessions.unload_idle())
    await home.until(lambda: home.journal.asked["persist_local_results"])
    back = await home.resume("key")
    await home.call(back.session, 2, "say", arguments={"text": "x" * 1350})
    home.submit(back.session, 1, "say", {"text": "new"}, port=back.port)
    await home.answered()
    keeper.cancel()
    assert home.journal.events == [("forget", "n1")]


async def test_an_orderly_stop_loses_no_answer(house: Any, make: Any) -> None:
    """Local answers go to the disk as well; what was on it is not written twice, and plain sessions leave nothing."""
    before = house(tools(make))
    session, plain = before.session(key="key"), before.session("plain")
    await before.call(session, 1, "write")
    await before.call(session, 2, "say")
    await before.call(plain, 3, "say")
    await before.router.close("The daemon stops.", 0)
    assert [event for event in before.journal.events if event[0] in {"keep", "seen"}] == [
        ("seen", "test"),
        ("keep", "n2"),
    ]
    back = await house(tools(make), journal=before.journal).resume("key")
    assert (back.missed.keys(), all(result.ok for result in back.missed.values())) == ({1, 2}, True)


async def test_a_disk_that_does_not_answer_cannot_hold_up_the_end(
    house: Any, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in memory alone is waited for as long as is said, and no longer."""
    monkeypatch.setattr("toold.daemon.dispatch.session_manager._LAST_WRITE_S", 0.01)
    home = house(tools(make))
    await home.call(home.session(key="key"), 1, "say")
    home.journal.ready.clear()
    async with asyncio.timeout(20):
        await home.router.close("The daemon stops.", 0)
    assert home.journal.asked["persist_local_results"] == 1


async def test_a_result_is_as_old_on_the_disk_as_it_is(house: Any, make: Any) -> None:
    """A restart gives it no second life."""
    before = house(tools(make))
    session = before.session(key="key")
    await before.call(session, 1, "write")
    kept = before.journal.calls[session.id, "n1"]
    aged = msgspec.structs.replace(kept, at=kept.at - before.router.limits.result_ttl_s)
    before.journal.calls[session.id, "n1"] = aged
    home = house(tools(make), journal=before.journal)
    back = await home.resume("key")
    assert back.missed == {}
    assert home.router.status_of(back.session, 1) == "expired"


async def test_a_result_that_cannot_be_read_counts_as_expired(house: Any, make: Any) -> None:
    """The rest of its session is there all the same."""
    before = house(tools(make))
    session = before.session(key="key")
    for request_id in (1, 2):
        await before.call(session, request_id, "write")
    kept = before.journal.calls[session.id, "n1"]
    before.journal.calls[session.id, "n1"] = msgspec.structs.replace(kept, result=b"{")
    home = house(tools(make), journal=before.journal)
    back = await home.resume("key")
    assert back.missed.keys() == {2}
    assert home.router.status_of(back.session, 1) == "expired"


async def test_a_key_is_worth_nothing_to_another_principal(house: Any, make: Any) -> None:
    """Neither while its session is in memory nor once only the disk has it; its owner still has all."""
    before = house(tools(make))
    await before.call(before.session(key="key"), 1, "write")
    mallory = Principal("mallory")
    home = house(tools(make), journal=before.journal)
    assert await before.resume("key", mallory) is None
    assert await home.resume("key", mallory) is None
    assert await home.resume("made up") is None
    assert len(home.router.sessions) == 0
    assert (await home.resume("key")).missed.keys() == {1}
    assert await home.resume("key", mallory) is None


async def test_two_who_bring_a_key_at_once_get_one_session(house: Any, make: Any) -> None:
    """It is brought into memory once, and the later takes it over from the earlier."""
    before = house(tools(make))
    await before.call(before.session(key="key"), 1, "write")
    home = house(tools(make), journal=before.journal)
    home.journal.ready.clear()
    both = [asyncio.create_task(home.resume("key")) for _ in range(2)]
    await home.until(lambda: home.journal.asked["find_session"])
    home.journal.ready.set()
    first, second = [await one for one in both]
    assert first.session is second.session
    assert (first.superseded, second.superseded) == (None, first.port)
    assert (len(home.router.sessions), home.journal.asked["find_session"]) == (1, 1)


async def test_a_disk_that_does_not_say_is_no_reason_for_a_new_session(house: Any, make: Any) -> None:
    """The client is told to come again, instead of silently losing what it left."""
    before = house(tools(make))
    before.session(key="key")
    home = house(tools(make), journal=before.journal)
    home.journal.refuses = True
    with pytest.raises(ServiceUnavailableError):
        await home.resume("key")
    home.journal.refuses = False
    assert await home.resume("key") is not None


async def test_who_is_in_memory_comes_back_past_those_who_wait_for_the_disk(house: Any, make: Any) -> None:
    """A disk that does not answer holds up only those whose session is nowhere else."""
    home = house(tools(make))
    session = home.session(key="key")
    home.journal.ready.clear()
    waiting = asyncio.create_task(home.resume("unknown"))
    await home.until(lambda: home.journal.asked["find_session"])
    async with asyncio.timeout(20):
        assert (await home.resume("key")).session is session
    home.journal.ready.set()
    assert await waiting is None


async def test_only_what_a_client_may_come_back_to_is_written_down(house: Any, make: Any) -> None:
    """A plain session is told to the disk when it ends, if the journal has calls of it; its calls go on."""
    home = house(tools(make))
    wrote, talked, lasting = home.session("wrote"), home.session("talked"), home.session("lasting", key="key")
    await home.call(wrote, 1, "write")
    await home.call(talked, 2, "say")
    await home.call(lasting, 3, "write")
    for session in (wrote, talked, lasting):
        home.router.disconnect(session, home.port)
    assert [row.label for row in home.journal.sessions.values()] == ["lasting"]
    assert [event for event in home.journal.events if event[0] == "close"] == [("close", "wrote")]
    assert [session.label for session in home.router.sessions._sessions] == ["lasting"]


async def test_results_are_one_principals_and_share_its_room(house: Any, make: Any) -> None:
    """Another session of the same principal pushes the oldest out; the bound is in bytes."""
    home = house(tools(make), max_kept_bytes=250)
    one, other = home.session("one"), home.session("other")
    await home.call(one, 1, "say", arguments={"text": "x" * 30})
    assert home.router.status_of(one, 1) == "done"
    await home.call(other, 2, "say", arguments={"text": "x" * 30})
    assert (home.router.status_of(one, 1), home.router.status_of(other, 2)) == ("unknown", "done")


async def test_a_write_that_starts_after_its_plain_client_left_is_closed_when_it_ends(house: Any, make: Any) -> None:
    """Nobody can come back for it, so that the journal need not remember it."""
    home = house([make("hang", hang), make("write", say, read_only=False)], max_running=1)
    session = home.session()
    blocker = home.submit(home.session("other"), 1, "hang")
    home.submit(session, 2, "write")
    home.router.disconnect(session, home.port)
    assert ("close", session.label) not in home.journal.events
    home.router.cancel_by_operator(blocker.id)
    await home.answered()
    assert home.journal.events[-2:] == [("end", "n2"), ("close", session.label)]
