"""The SQL of ended calls on a separate connection."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toold.store import KEY_BYTES, CallRow
from toold.store.audit_rows import audit_values
from toold.store.sqlite import audit_sql
from toold.store.sqlite.chain_writer import ChainWriter
from toold.store.sqlite.store_schema import STEPS
from toold.store.store_limits import SEARCHED_ROWS
from toold.store.store_rows import Sums

MakeRow = Callable[..., CallRow]
KEY = b"k" * KEY_BYTES


def add(connection: sqlite3.Connection, *rows: CallRow) -> None:
    with ChainWriter(KEY).extending(connection) as chain:
        audit_sql.add(connection, chain, [audit_values(row, None) for row in rows])


def forget(connection: sqlite3.Connection, *, before: float = 2.0, keep_bytes: int = 2**40) -> int:
    with ChainWriter(KEY).extending(connection) as chain:
        return audit_sql.delete_expired(connection, chain, before=before, now=1e9, max_bytes=keep_bytes)


def test_group_insert_is_atomic(connection: sqlite3.Connection, row: MakeRow) -> None:
    """If one row is rejected, neither the other rows of its group nor their sums are stored."""
    with pytest.raises(OverflowError):
        add(connection, row(), row(input_tokens=2**70))
    assert audit_sql.recent(connection, 5) == []
    assert audit_sql.totals(connection).all == Sums()
    add(connection, row())
    assert audit_sql.totals(connection).all.calls == 1


def test_unknown_tools_share_one_sum(connection: sqlite3.Connection, row: MakeRow) -> None:
    """All unknown tool names share one sum; their rows keep the names."""
    add(connection, *(row(tool=f"tool-{number}", outcome="TOOL_NOT_FOUND") for number in range(50)))
    assert connection.execute("SELECT count(*) FROM call_total").fetchone() == (1,)
    assert audit_sql.totals(connection).by_tool == {"unknown": Sums(calls=50, errors=50)}
    assert audit_sql.recent(connection, 1)[0].tool == "tool-49"


def test_sums_are_separate_by_principal(connection: sqlite3.Connection, row: MakeRow) -> None:
    """Those of one principal, and those of all; a principal without calls has none."""
    add(connection, row(principal="ann"), row(principal="ann", outcome="TIMEOUT"), row(principal="bob"))
    assert [audit_sql.totals(connection, name).all.calls for name in ("ann", "bob", "eve", None)] == [2, 1, 0, 3]
    assert audit_sql.totals(connection, "ann").by_outcome == {"ok": 1, "TIMEOUT": 1}


def test_old_sums_of_principals_are_merged(connection: sqlite3.Connection, row: MakeRow) -> None:
    """Principals without a call since a time lose their own sums; the sums of all stay the same."""
    add(connection, *(row(principal=f"p{number}", started_at=1.0) for number in range(5)))
    add(connection, row(principal="p1", started_at=9.0), row(principal="p7", started_at=9.0))
    before = audit_sql.totals(connection)
    for _ in range(2):
        audit_sql.merge_old_totals(connection, 5.0)
        assert audit_sql.totals(connection) == before
    names = [name for (name,) in connection.execute("SELECT DISTINCT principal FROM call_total ORDER BY 1")]
    assert names == ["", "p1", "p7"]
    assert audit_sql.totals(connection, "p1").all.calls == 2


def test_deletion_stops_after_a_slice(connection: sqlite3.Connection, row: MakeRow) -> None:
    """One step deletes at most a slice, so that the writer soon returns to its queue."""
    add(connection, *(row(started_at=1.0) for _ in range(audit_sql.SLICE + 10)))
    steps = [forget(connection) for _ in range(3)]
    assert steps == [audit_sql.SLICE, 10, 0]


def test_step_duration_is_independent_of_table_size(connection: sqlite3.Connection, row: MakeRow) -> None:
    """Deleting a row takes about as many SQLite steps in a large table as in a small one."""

    def steps_beside(rows: int) -> int:
        steps = 0

        def count() -> None:
            nonlocal steps
            steps += 1

        add(connection, row(started_at=1.0), *(row(started_at=5.0) for _ in range(rows)))
        connection.set_progress_handler(count, 1)
        assert forget(connection) == 1
        connection.set_progress_handler(None, 0)
        forget(connection, keep_bytes=0)
        return steps

    few = steps_beside(audit_sql.SLICE - 1)
    while forget(connection, keep_bytes=0):
        pass
    assert steps_beside(8 * audit_sql.SLICE) < 1.5 * few


def test_wrong_clock_does_not_block_retention(connection: sqlite3.Connection, row: MakeRow) -> None:
    """Rows with a time in the future do not keep older rows behind them from being deleted."""
    add(connection, *(row(id="future", started_at=9e9) for _ in range(audit_sql.SLICE)), row(id="old", started_at=1.0))
    add(connection, row(id="young", started_at=5.0), row(id="future", started_at=9e9))
    assert [forget(connection) for _ in range(3)] == [audit_sql.SLICE, 1, 0]
    assert [item.id for item in audit_sql.recent(connection, 5)] == ["future", "young"]


def test_only_the_beginning_is_deleted(connection: sqlite3.Connection, row: MakeRow) -> None:
    """An old row stays as long as a younger row precedes it, so that the chain has no holes."""
    add(connection, *(row(id=str(at), started_at=float(at)) for at in (1, 5, 1, 5)))
    assert forget(connection) == 1
    assert [item.id for item in audit_sql.recent(connection, 5)] == ["5", "1", "5"]


def test_nothing_is_deleted_within_the_limits(connection: sqlite3.Connection, row: MakeRow) -> None:
    """Retention deletes no row within the limits."""
    add(connection, row())
    assert forget(connection, before=0.0) == 0
    assert len(audit_sql.recent(connection, 5)) == 1


def test_only_as_many_rows_as_necessary_are_deleted(connection: sqlite3.Connection, row: MakeRow) -> None:
    """Retention deletes only as many rows as the size limit requires, sent or not."""
    add(connection, *(row(id=f"{number:03}", started_at=5.0) for number in range(100)))
    size = audit_sql.stored_bytes(connection) // 100
    assert forget(connection, keep_bytes=90 * size) == 10
    assert audit_sql.stored_bytes(connection) == 90 * size
    assert forget(connection, keep_bytes=90 * size) == 0
    assert audit_sql.recent(connection, 100)[-1].id == "010"


def test_size_limit_is_enforced_slice_by_slice(connection: sqlite3.Connection, row: MakeRow) -> None:
    """One step deletes at most a slice, however far the rows exceed the limit."""
    add(connection, *(row(started_at=5.0) for _ in range(audit_sql.SLICE + 10)))
    assert [forget(connection, keep_bytes=0) for _ in range(3)] == [audit_sql.SLICE, 10, 0]
    assert audit_sql.stored_bytes(connection) == 0


@pytest.mark.parametrize("text", ["", "word " * 100, "\N{CJK UNIFIED IDEOGRAPH-4E2D}" * 300])
def test_stored_bytes_match_the_file_size(connection: sqlite3.Connection, row: MakeRow, text: str) -> None:
    """The calculated size of the rows is within 20 % of the growth of the database's used pages."""

    def used() -> int:
        pages, size = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        return int(pages * size)

    before = used()
    names = dict.fromkeys(("id", "session_id", "request_id"), "0" * 32)
    times = dict.fromkeys(("latency_ms", "queue_ms", "tool_ms", "provider_ms"), 123.4)
    usual = {**names, **times, "client": "toold-client 1.0", "model": "kimi-k2-0905-preview", "cost_amount": 0.0012}
    with ChainWriter(KEY).extending(connection) as chain:
        audit_sql.add(
            connection, chain, [audit_values(row(**usual, message=text), '{"a": "int"}') for _ in range(3000)]
        )
    assert audit_sql.stored_bytes(connection) == pytest.approx(used() - before, rel=0.2)


OUTCOMES = st.sampled_from(["ok", "TIMEOUT", "TOOL_NOT_FOUND"])
CALLS = st.tuples(st.sampled_from(["echo", "chat"]), OUTCOMES, st.sampled_from([None, "k2"]), st.integers(0, 10**9))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.lists(CALLS, min_size=1, max_size=5), max_size=5))
def test_sums_are_those_of_the_rows(groups: list[list[tuple[str, str, str | None, int]]]) -> None:
    """The sums equal those of the rows, independent of how calls are grouped."""
    fixed: dict[str, Any] = dict.fromkeys(
        ("id", "transport", "principal", "session_id", "session_label", "client", "request_id"), "x"
    )
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(";".join(STEPS))
        for group in groups:
            add(
                connection,
                *(
                    CallRow(
                        **fixed, started_at=1.0, latency_ms=1, tool=tool, outcome=how, model=model, input_tokens=used
                    )
                    for tool, how, model, used in group
                ),
            )
        totals = audit_sql.totals(connection)
    everything = [call for group in groups for call in group]
    assert totals.all.calls == len(everything)
    assert totals.all.errors == sum(how != "ok" for _, how, _, _ in everything)
    assert totals.all.input_tokens == sum(used for *_, used in everything)
    assert sum(sums.calls for sums in totals.by_tool.values()) == len(everything)
    assert sum(sums.calls for sums in totals.by_model) == sum(model is not None for _, _, model, _ in everything)


def test_calls_are_filtered_by_principal_tool_and_outcome(connection: sqlite3.Connection, row: MakeRow) -> None:
    """A principal's calls are returned newest first, filtered and limited; ``error`` matches every outcome except
    ok."""
    rows = [("1", "echo", "ok"), ("2", "chat", "TIMEOUT"), ("3", "chat", "ok"), ("4", "echo", "CANCELLED")]
    add(connection, *(row(id=id_, tool=tool, outcome=outcome) for id_, tool, outcome in rows))
    add(connection, row(id="other", principal="ann"))

    def ids(
        limit: int = 10, tool: str | None = None, outcome: str | None = None, principal: str = "local"
    ) -> list[str]:
        return [ended_call.id for ended_call in audit_sql.ended_calls(connection, principal, limit, tool, outcome)]

    assert ids() == ["4", "3", "2", "1"]
    assert (ids(2), ids(tool="chat"), ids(outcome="ok")) == (["4", "3"], ["3", "2"], ["3", "1"])
    assert (ids(outcome="error"), ids(tool="chat", outcome="TIMEOUT")) == (["4", "2"], ["2"])
    assert (ids(principal="ann"), ids(principal="bob")) == (["other"], [])


def test_only_the_newest_calls_are_searched(connection: sqlite3.Connection, row: MakeRow) -> None:
    """The search is limited to the newest calls, so that a filter without matches is fast in a large trail."""
    add(connection, row(id="old", tool="rare"), *(row() for _ in range(SEARCHED_ROWS)))
    assert audit_sql.ended_calls(connection, "local", 5, "rare", None) == []
