"""Audit rows, their sums, searches and outbox."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from toold.store import AuditOutboxState, CallFilter, CallRow, Retention, SettledCalls, Store, day_of

MakeRow = Callable[..., CallRow]
OpenStore = Callable[..., Store]

BASE = float(round(time.time() - 10_000))
"""Rows of the distant past would be deleted at the first start."""


async def record(store: Store, *rows: CallRow) -> None:
    for row in rows:
        store.audit.record(row)
    await store.flush()
    assert store.problem is None


async def ids_after_retention(store: Store, retention: Retention, left: int) -> list[str]:
    """The ids of the calls, newest first, after retention has left ``left`` of them."""
    store.apply(lambda _: None, retention)
    while len(rows := await store.audit.recent(100)) > left:
        await store.sync()
    return [row.id for row in rows]


async def test_rows_are_read_back_unchanged(store: Store, row: MakeRow) -> None:
    """Every field of a row is read back, the newest row first; texts may have any characters."""
    rows = [
        row(id="c-1"),
        row(
            id="c-2", message="a\0b\x01c\x02 ü", session_label="\x01E", executed="maybe", arguments={"n": [1, "x"]},
            arguments_bytes=9, result_bytes=2**40, queue_ms=0.25, tool_ms=1.0, provider_ms=0.5, provider="kimi",
            model="k2", simulated=True, input_tokens=7, output_tokens=8, cost_amount=0.125, cost_currency="USD",
        ),
    ]  # fmt: skip
    await record(store, *rows)
    assert await store.audit.recent(10) == rows[::-1]
    assert await store.audit.find_call("c-2", "local") == rows[1]
    assert await store.audit.find_call("c-2", "another") is None
    assert await store.audit.find_call("c-\0", "local") is None


async def test_sums_are_grouped_and_survive_a_restart(open_again: OpenStore, row: MakeRow) -> None:
    """Sums are grouped by tool, outcome and model; simulated calls cost nothing; unknown tools share one sum."""
    store = open_again()
    priced: dict[str, Any] = {"provider": "kimi", "model": "k", "cost_currency": "USD", "input_tokens": 5}
    await record(
        store,
        row(tool="chat", started_at=BASE + 5, cost_amount=0.25, **priced),
        row(tool="chat", started_at=BASE + 3, cost_amount=0.5, outcome="TIMEOUT", **priced),
        row(tool="chat", started_at=BASE + 4, cost_amount=9.0, simulated=True, **priced),
        row(tool="cht", started_at=BASE + 6, outcome="TOOL_NOT_FOUND", principal="ann"),
    )
    await store.close()
    store = open_again()
    await record(store, row(tool="chat", started_at=BASE + 7, cost_amount=0.125, **priced))
    totals = await store.audit.totals()
    assert (totals.since, totals.all.calls, totals.all.errors, totals.all.input_tokens) == (BASE + 3, 5, 2, 20)
    assert totals.all.cost == {"USD": 0.875}
    assert {tool: sums.calls for tool, sums in totals.by_tool.items()} == {"unknown": 1, "chat": 4}
    assert totals.by_outcome == {"TOOL_NOT_FOUND": 1, "TIMEOUT": 1, "ok": 3}
    assert {(part.model, part.simulated): part.calls for part in totals.by_model} == {("k", False): 3, ("k", True): 1}
    assert (await store.audit.totals("ann")).all.calls == 1
    assert (await store.audit.totals("nobody")).since is None
    await store.close()


async def test_calls_are_filtered_by_principal_tool_and_outcome(store: Store, row: MakeRow) -> None:
    """A principal's last calls can be limited to a tool, an error code or all errors."""
    await record(
        store,
        row(id="1", tool="chat"),
        row(id="2", tool="chat", outcome="TIMEOUT"),
        row(id="3", outcome="CANCELLED"),
        row(id="4", principal="ann"),
    )

    async def ids(**wanted: Any) -> list[str]:
        return [call.id for call in await store.audit.ended_calls("local", 10, **wanted)]

    assert await ids() == ["3", "2", "1"]
    assert await ids(tool="chat") == ["2", "1"]
    assert await ids(outcome="error") == ["3", "2"]
    assert await ids(tool="chat", outcome="TIMEOUT") == ["2"]
    assert await ids(tool="c\0hat") == []


@pytest.mark.parametrize(
    ("fields", "ids"),
    [
        ({}, ["5", "4", "3", "2", "1"]),
        ({"principal": "ann"}, ["2"]),
        ({"tool": "chat"}, ["3"]),
        ({"outcome": "error"}, ["4"]),
        ({"session": "base"}, ["4", "3", "2", "1"]),
        ({"session": "s-1"}, ["5", "4", "3", "2", "1"]),
        ({"text": "DISK"}, ["4"]),
        ({"text": "FILES"}, ["5"]),
        ({"text": "100%"}, []),
        ({"since": BASE + 2, "until": BASE + 4}, ["3", "2"]),
    ],
)
async def test_a_search_returns_the_calls_of_a_filter(
    store: Store, row: MakeRow, fields: dict[str, Any], ids: list[str]
) -> None:
    """Each condition of a filter is applied; of ASCII letters the case is ignored."""
    await record(
        store,
        row(id="1", started_at=BASE + 1),
        row(id="2", started_at=BASE + 2, principal="ann"),
        row(id="3", started_at=BASE + 3, tool="chat"),
        row(id="4", started_at=BASE + 4, outcome="INTERNAL_ERROR", message="The disk is full"),
        row(id="5", started_at=BASE + 5, session_label="other", arguments={"files": "a"}),
    )
    page = await store.audit.search(CallFilter(**fields), None, 10)
    assert [call.id for call in page.calls] == ids
    assert (page.searched_to, page.before) == (BASE + 1, None)


async def test_pages_of_a_search_continue(store: Store, row: MakeRow) -> None:
    """The next page begins where the last one ended; a call that ended meanwhile is on no later page."""
    await record(store, *(row(id=str(number)) for number in range(5)))
    first = await store.audit.search(CallFilter(), None, 2)
    await record(store, row(id="new"))
    second = await store.audit.search(CallFilter(), first.before, 2)
    third = await store.audit.search(CallFilter(), second.before, 2)
    pages = [[call.id for call in page.calls] for page in (first, second, third)]
    assert pages == [["4", "3"], ["2", "1"], ["0"]]
    assert third.before is None


async def test_a_tree_has_all_descendants(store: Store, row: MakeRow) -> None:
    """A call's tree has the call and its descendants, in the order in which they started."""
    names = {"e-1": BASE, "e-1/b#1": BASE + 2, "e-1/a#1": BASE + 1, "e-1/a#1/c#1": BASE + 3, "e-11": BASE}
    await record(store, *(row(id=name, started_at=at) for name, at in names.items()))
    tree = await store.audit.call_tree("e-1", None)
    assert [call.id for call in tree] == ["e-1", "e-1/a#1", "e-1/b#1", "e-1/a#1/c#1"]
    assert await store.audit.call_tree("e-1", "ann") == []


async def test_calls_of_a_day_leave_out_failures_without_effect(store: Store, row: MakeRow) -> None:
    """A day's calls are counted by principal and tool, without those that failed and had no effect."""
    day = (BASE // 86400 - 1) * 86400
    await record(
        store,
        row(started_at=day),
        row(started_at=day + 86399.0),
        row(started_at=day + 86400.0),
        row(started_at=day, outcome="TIMEOUT", executed="maybe", tool="chat"),
        row(started_at=day, outcome="OVER_CAPACITY", executed="no"),
    )
    assert await store.audit.calls_of_day(day_of(day)) == {("local", "echo"): 2, ("local", "chat"): 1}


async def test_the_outbox_knows_what_is_settled(open_again: OpenStore, row: MakeRow) -> None:
    """Sent, refused and dropped calls are counted, also after a restart; a late settlement changes nothing back."""
    store = open_again()
    nothing = AuditOutboxState(settled_seq=0, backlog=0, sent=0, refused=0, dropped=0, last_sent_at=None)
    assert await store.audit.outbox_state() == nothing
    rows = [row(id=name) for name in "abcdef"]
    await record(store, *rows)
    unsent = await store.audit.unsent_calls(1, 2)
    assert [(call.seq, call.call) for call in unsent] == [(2, rows[1]), (3, rows[2])]
    assert len({call.mac for call in unsent}) == 2
    (began,) = await store.audit.unsent_checkpoints(10)
    assert (began.kind, began.calls) == ("began", 0)
    store.audit.settle(SettledCalls(up_to=3, at=10.0, sent=2, refused={2: "no"}, checkpoints=(began,)))
    store.audit.settle(SettledCalls(up_to=4, at=11.0, dropped=1))
    store.audit.settle(SettledCalls(up_to=2, at=9.0))
    await store.flush()
    assert [checkpoint.kind for checkpoint in await store.audit.unsent_checkpoints(10)] == ["refused"]
    await store.close()
    store = open_again()
    expected = AuditOutboxState(settled_seq=4, backlog=2, sent=2, refused=1, dropped=1, last_sent_at=10.0)
    assert await store.audit.outbox_state() == expected
    await record(store, row(id="g"))
    assert [call.seq for call in await store.audit.unsent_calls(5, 10)] == [6, 7]
    await store.close()


async def test_old_rows_are_deleted_and_their_numbers_stay_used(store: Store, row: MakeRow) -> None:
    """Rows beyond the age are deleted from the first on; rows of the future go with the old rows after them."""
    old, now = time.time() - 9 * 86400, time.time()
    await record(
        store, row(id="1", started_at=old), row(id="2", started_at=now + 1e6), row(id="3", started_at=old),
        row(id="4", started_at=now), row(id="5", started_at=old),
    )  # fmt: skip
    assert await ids_after_retention(store, Retention(days=8), 2) == ["5", "4"]
    assert (await store.audit.outbox_state()).backlog == 2
    await record(store, row(id="6"))
    assert [call.seq for call in await store.audit.unsent_calls(0, 10)] == [4, 5, 6]
    kinds = [(found.kind, found.calls) for found in await store.audit.unsent_checkpoints(10)]
    assert kinds == [("began", 0), ("expired", 3), ("unsent", 3)]
    assert (await store.audit.totals()).all.calls == 6


async def test_rows_beyond_the_size_limit_are_deleted(store: Store, row: MakeRow) -> None:
    """Beyond the size of all rows, the oldest are deleted, and only as many as necessary."""
    await record(store, *(row(id=str(number), message="x" * 10_000) for number in range(10)))
    assert await ids_after_retention(store, Retention(bytes=35_000), 3) == ["9", "8", "7"]
