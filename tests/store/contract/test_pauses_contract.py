"""Paused calls and decisions on their requests, on each database."""

import time

from tests.store.contract.conftest import OpenStore
from tests.store.contract.stored_calls import Calls
from toold.protocol.input_request import InputDecision, InputRequest
from toold.store import CallPause, InputDecided, Store, decision_hash

YES = InputDecision("answer", text="yes")


def paused(key: str, *requests: str, kind: str = "question", expires_s: float = 100.0) -> CallPause:
    now = time.time()
    return CallPause(
        call_id=f"e0-{key}",
        requests=tuple(InputRequest(id=name, kind=kind, text="?") for name in requests),  # type: ignore[arg-type]
        expires_at=now + expires_s,
        drops_at=now + 1000.0,
        remaining_s=30.0,
    )


def decided(call: Calls, key: str, request: str) -> InputDecided:
    row = call.row(f"{key}-{request}", tool="decide")
    return InputDecided(call_id=f"e0-{key}", request_id=request, decision=YES, at=time.time(), row=row)


async def test_a_call_is_paused_until_its_last_decision(store: Store, call: Calls) -> None:
    """Then it has the rest of its time, and a process may continue it; decisions have audit rows."""
    store.sessions.open(call.session)
    await store.journal.start(call.detached("d"))
    await store.journal.pause(paused("d", "q", "r"))
    assert await store.journal.detached_calls() == []
    (waiting,) = await store.journal.paused_calls("ann")
    assert waiting.expires_at is not None
    assert abs(waiting.expires_at - time.time() - 100) < 5
    await store.journal.decide([decided(call, "d", "q")])
    assert await store.journal.paused_count("ann") == 1
    before = time.time()
    await store.journal.decide([decided(call, "d", "r")])
    assert await store.journal.paused_calls(None) == []
    assert await store.journal.paused_count("ann") == 0
    (continued,) = await store.journal.adopt_detached(call_id="e0-d")
    assert before + 29 < continued.deadline_at < time.time() + 31
    assert [(each.request.id, each.decision) for each in continued.requests] == [("q", YES), ("r", YES)]


async def test_a_later_decision_changes_nothing(store: Store, call: Calls) -> None:
    """The first decision on a request counts, in one commit too."""
    store.sessions.open(call.session)
    await store.journal.start(call.detached("d"))
    await store.journal.pause(paused("d", "q"))
    no = InputDecision("answer", text="no")
    second = InputDecided(call_id="e0-d", request_id="q", decision=no, at=time.time(), row=call.row("x"))
    await store.journal.decide([decided(call, "d", "q"), second])
    found = await store.journal.find_detached("e0-d", "ann")
    assert found is not None
    assert [each.decision for each in found.requests] == [YES]


async def test_decisions_are_known_after_the_end_without_their_content(store: Store, call: Calls) -> None:
    """For the call's principal."""
    store.sessions.open(call.session)
    await store.journal.start(call.detached("d"))
    await store.journal.pause(paused("d", "q"))
    await store.journal.decide([decided(call, "d", "q")])
    await store.journal.end(call.ends("d"))
    assert await store.journal.find_detached("e0-d", "ann") is None
    assert await store.journal.decision_hashes("e0-d", "ann") == {"q": decision_hash(YES)}
    assert await store.journal.decision_hashes("e0-d", "bob") == {}


async def test_requests_expire_in_order(store: Store, call: Calls) -> None:
    """The next expiry is known; a call whose requests have expired is due."""
    store.sessions.open(call.session)
    assert await store.journal.next_expiry_s() is None
    for key, expires_s in (("late", 500.0), ("due", -1.0), ("soon", 50.0)):
        await store.journal.start(call.detached(key))
        await store.journal.pause(paused(key, "q", expires_s=expires_s))
    assert [due.call_id for due in await store.journal.due_calls()] == ["e0-due"]
    await store.journal.end(call.ends("due"))
    next_s = await store.journal.next_expiry_s()
    assert next_s is not None
    assert 40 < next_s <= 50
    assert await store.journal.due_calls() == []


async def test_calls_that_wait_for_credentials_are_found(store: Store, call: Calls) -> None:
    """Beyond one page, and no others."""
    store.sessions.open(call.session)
    for number in range(103):
        kind = "question" if number == 50 else "credential"
        await store.journal.start(call.starts(f"d{number}", detached=call.detached().detached, orchestration=True))
        await store.journal.pause(paused(f"d{number}", "q", kind=kind))
    waiting = await store.journal.waiting_for_credentials()
    assert [each.call_id for each in waiting] == [f"e0-d{number}" for number in range(103) if number != 50]
    assert len(await store.journal.paused_calls("ann")) == 100
    assert await store.journal.paused_count("ann") == 103


async def test_a_paused_call_stays_paused_when_its_process_ends(open_again: OpenStore, call: Calls) -> None:
    """It is found by the run that it continues; a call that begins paused too."""
    store = open_again()
    store.sessions.open(call.session)
    begins = call.detached("d", run="e0-a")
    await store.journal.start(call.starts("d", detached=begins.detached, orchestration=True, pause=paused("d", "q")))
    await store.close()
    store = open_again()
    assert await store.journal.detached_calls() == []
    assert await store.journal.paused_on("e0-a") == "e0-d"
    assert await store.journal.paused_on("e0-d") is None
    (waiting,) = await store.journal.paused_calls("ann")
    assert (waiting.run, waiting.tool) == ("e0-a", "chat")
    await store.close()
