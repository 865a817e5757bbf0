"""Tasks of A2A: their events, pages, messages and push notifications."""

import time
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace
from toold.store import (
    A2AEarlier,
    A2AEvent,
    A2AMessageRow,
    A2APushDeleted,
    A2APushProgress,
    A2APushRow,
    A2ATaskQuery,
    A2ATaskRow,
    Retention,
    Store,
)

OpenStore = Callable[..., Store]

DAY = 86400.0
BASE = float(round(time.time() - 10_000))
"""Tasks that ended in the distant past would be deleted at the first start."""


def task(number: int, *, ended: bool = False, **fields: Any) -> A2ATaskRow:
    state = "TASK_STATE_COMPLETED" if ended else "TASK_STATE_WORKING"
    plain: dict[str, Any] = {
        "id": f"t{number}",
        "principal": "local",
        "agent": "helper",
        "context_id": "c\0",
        "state": state,
        "changed_at": BASE + number,
        "ended": ended,
        "history": b"[]",
    }
    return A2ATaskRow(**plain | fields)


async def test_a_task_is_found_by_its_principal(open_again: OpenStore) -> None:
    """A task survives a restart, and another principal does not find it; an empty history leaves the stored one."""
    store = open_again()
    await store.a2a_tasks.save(task(1, history=b"[1]"))
    await store.a2a_tasks.save(task(1, ended=True, history=b"", last_event=4))
    await store.close()
    store = open_again()
    found = await store.a2a_tasks.find("t1", "local")
    assert found is not None
    assert replace(found, number=0) == task(1, ended=True, history=b"[1]", last_event=4)
    assert await store.a2a_tasks.find("t1", "another") is None
    assert await store.a2a_tasks.find("t\0", "local") is None
    await store.close()


async def test_pieces_are_deleted_with_the_end(store: Store) -> None:
    """The pieces of an answer are deleted once the task has ended."""
    pieces = (A2AEvent(1, b"{}", partial=True), A2AEvent(2, b"{}"))
    await store.a2a_tasks.save(task(1, last_event=2, new_events=pieces))
    assert await store.a2a_tasks.events("t1", 0) == list(pieces)
    await store.a2a_tasks.save(task(1, ended=True, last_event=3, new_events=(A2AEvent(3, b"{}"),)))
    assert [event.number for event in await store.a2a_tasks.events("t1", 0)] == [2, 3]
    assert await store.a2a_tasks.events("t1", 3) == []


async def test_a_look_at_events_is_bounded(store: Store) -> None:
    """A look has at most 100 events and 1 MiB, or one event that is larger; the next looks have the others."""
    bodies = [b"x" * 600_000, b"x" * 400_000, b"x" * 400_000, b"x" * 2_000_000, *([b"x"] * 120)]
    added = tuple(A2AEvent(number, body) for number, body in enumerate(bodies, 1))
    await store.a2a_tasks.save(task(1, ended=True, last_event=len(bodies), new_events=added))
    looks = []
    after = 0
    while events := await store.a2a_tasks.events("t1", after):
        looks.append(len(events))
        after = events[-1].number
    assert looks == [2, 1, 1, 100, 20]


async def test_pages_are_bounded_in_rows_and_bytes(store: Store) -> None:
    """Pages have the newest tasks first, up to a number and the bytes of their histories, but at least one."""
    history = b"[" + b" " * 98 + b"]"
    for number in range(5):
        await store.a2a_tasks.save(task(number, ended=True, history=history))
    await store.a2a_tasks.save(task(9, agent="another"))
    query = A2ATaskQuery(principal="local", agent="helper", limit=4, max_bytes=250)
    first = await store.a2a_tasks.page(query)
    assert ([row.id for row in first.rows], first.total, first.more) == (["t4", "t3"], 5, True)
    last = first.rows[-1]
    rest = await store.a2a_tasks.page(replace(query, before=(last.changed_at, last.number), max_bytes=300))
    assert ([row.id for row in rest.rows], rest.more) == (["t2", "t1", "t0"], False)
    single = await store.a2a_tasks.page(replace(query, max_bytes=1))
    assert ([row.id for row in single.rows], single.more) == (["t4"], True)
    without = await store.a2a_tasks.page(replace(query, max_bytes=10, with_history=False))
    assert ([row.history for row in without.rows], without.more) == ([b"[]"] * 4, True)
    some = replace(query, context_id="c\0", state="TASK_STATE_COMPLETED", changed_after=BASE + 3)
    assert [row.id for row in (await store.a2a_tasks.page(some)).rows] == ["t4", "t3"]
    assert (await store.a2a_tasks.page(replace(query, context_id="c"))).total == 0


async def test_unfinished_tasks_are_listed_without_history(open_again: OpenStore) -> None:
    """The next process finds the tasks that have not ended, in the order of their creation."""
    store = open_again()
    for number in (3, 1, 2):
        await store.a2a_tasks.save(task(number, ended=number == 1, history=b"[1]"))
    await store.close()
    store = open_again()
    assert [(row.id, row.history) for row in await store.a2a_tasks.unfinished()] == [("t3", b""), ("t2", b"")]
    await store.close()


async def test_a_repeated_message_leads_to_its_task(store: Store) -> None:
    """A message leads to the task that it began, as long as the message is known; and a conversation is known."""
    message = A2AMessageRow(key=b"k", content=b"what it says")
    await store.a2a_tasks.save(task(1, message=message))
    assert await store.a2a_tasks.earlier(b"k", "c", "local") == A2AEarlier("t1", b"what it says", conversation=False)
    assert await store.a2a_tasks.earlier(b"other", "c\0", "local") == A2AEarlier(None, b"", conversation=False)


async def test_ended_tasks_expire_and_their_messages_later(store: Store) -> None:
    """Tasks that ended before the age of results are deleted with their events, unfinished ones never; a message stays
    known for a week.
    """
    now = time.time()
    old: dict[str, Any] = {"changed_at": now - 2 * DAY, "new_events": (A2AEvent(1, b"{}"),)}
    await store.a2a_tasks.save(task(1, message=A2AMessageRow(key=b"k", content=b""), **old))
    await store.a2a_tasks.save(task(2, message=A2AMessageRow(key=b"l", content=b""), changed_at=now - 9 * DAY))
    for number in (1, 2):
        await store.a2a_tasks.save(task(number, ended=True, changed_at=now - 2 * DAY))
    await store.a2a_tasks.save(task(3, changed_at=now - 9 * DAY))
    store.apply(lambda _: None, Retention(result_ttl_s=DAY))
    while await store.a2a_tasks.find("t2", "local") is not None:
        await store.sync()
    assert await store.a2a_tasks.find("t1", "local") is None
    assert await store.a2a_tasks.find("t3", "local") is not None
    assert await store.a2a_tasks.events("t1", 0) == []
    assert (await store.a2a_tasks.earlier(b"k", "c", "local")).task_id == "t1"
    assert (await store.a2a_tasks.earlier(b"l", "c", "local")).task_id is None


async def test_a_push_configuration_waits_for_events(store: Store) -> None:
    """A configuration has something to send while its task has events after those that were sent."""
    await store.a2a_tasks.save(task(1))
    await store.a2a_tasks.save(task(2, principal="ann", last_event=1, new_events=(A2AEvent(1, b"{}"),)))
    one = A2APushRow("t1", "p", "https://hook.example/", "1.0", b"\0secret", 0)
    two = A2APushRow("t2", "q", "https://hook.example/", "1.0", b"", 0)
    await store.a2a_tasks.write_push(one)
    await store.a2a_tasks.write_push(two)
    assert await store.a2a_tasks.pushes_of("t1") == [one]
    assert await store.a2a_tasks.pending_pushes(9) == [(two, "ann", "helper")]
    await store.a2a_tasks.save(task(1, last_event=2, new_events=(A2AEvent(1, b"{}"), A2AEvent(2, b"{}"))))
    await store.a2a_tasks.write_push(A2APushProgress("t2", "q", 1, 0, 0.0))
    await store.a2a_tasks.write_push(A2APushProgress("t1", "p", 1, 3, 7.5))
    pending = one._replace(sent=1, attempts=3, next_at=7.5)
    assert await store.a2a_tasks.pending_pushes(9) == [(pending, "local", "helper")]
    assert (await store.a2a_tasks.push_count("local"), await store.a2a_tasks.push_count("ann")) == (1, 1)
    await store.a2a_tasks.save(task(2, principal="ann", ended=True, last_event=1))
    assert await store.a2a_tasks.push_count("ann") == 0
    await store.a2a_tasks.write_push(A2APushDeleted("t1", "p"))
    assert await store.a2a_tasks.pending_pushes(9) == []
