"""Spending by day: written with the ends of calls, kept across restarts and crashes, never counted twice."""

import datetime as dt
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from toold.protocol.tool_call import Cost, ModelUsage, Usage
from toold.store import CallRow, DailyUsage, Store, day_of
from toold.store.daily_usage import by_day
from toold.store.sqlite import spending_sql
from toold.store.sqlite.store_schema import STEPS, open_database
from toold.store.store_limits import MAX_COUNT, RETENTION_DAYS

Call = Any  # conftest.Journalled
MakeRow = Callable[..., CallRow]
NOON = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC).timestamp()
DOLLAR = ModelUsage("kimi", "k2", 1, Usage(100, 20, cached_tokens=30), Cost(1.0, "USD"))
YUAN = ModelUsage("glm", "g", 2, Usage(5, 5, estimated=True), Cost(0.5, "CNY", estimated=True))


def test_days_are_utc() -> None:
    """Days are counted in UTC, independent of the machine's time zone."""
    assert day_of(dt.datetime(2026, 5, 1, 23, 59, 59, tzinfo=dt.UTC).timestamp()) == "2026-05-01"
    assert day_of(dt.datetime(2026, 5, 2, tzinfo=dt.UTC).timestamp()) == "2026-05-02"


def test_models_of_a_call_are_counted_separately(row: MakeRow) -> None:
    """A call's models are counted per principal and tool, each in its currency; a model without a price has tokens
    only."""
    free = ModelUsage("glm", "free", 1, Usage(1, 1))
    result = by_day(row(tool="consensus", principal="ann"), [DOLLAR, YUAN, free], NOON)
    assert [(item.model, item.completions, item.currency, item.cost, item.estimated) for item in result] == [
        ("k2", 1, "USD", 1.0, 0),
        ("g", 2, "CNY", 0.5, 1),
        ("free", 1, "", 0.0, 0),
    ]
    assert {(item.day, item.principal, item.tool) for item in result} == {("2026-05-01", "ann", "consensus")}
    assert (result[0].input_tokens, result[0].output_tokens, result[0].cached_tokens) == (100, 20, 30)


def test_sums_are_added_up(database: Path, row: MakeRow) -> None:
    """Sums share a row per tool, model and day; the newest day comes first."""
    with closing(open_database(database)) as connection:
        for at in (NOON, NOON + 60, NOON + 86400):
            spending_sql.add(connection, by_day(row(), [DOLLAR], at))
        result = spending_sql.since(connection, "2026-05-01")
        assert [(item.day, item.completions, item.input_tokens, item.cost) for item in result] == [
            ("2026-05-02", 1, 100, 1.0),
            ("2026-05-01", 2, 200, 2.0),
        ]
        assert [item.day for item in spending_sql.since(connection, "2026-05-02")] == ["2026-05-02"]


def test_excessive_count_is_capped(database: Path, row: MakeRow) -> None:
    """An excessive count from a vendor is capped and does not fail the commit."""
    mad = ModelUsage("kimi", "k2", 1, Usage(2**70, 0))
    with closing(open_database(database)) as connection:
        spending_sql.add(connection, by_day(row(), [mad], NOON))
        assert spending_sql.since(connection, "2026-05-01")[0].input_tokens == MAX_COUNT


def test_old_days_are_deleted(database: Path, row: MakeRow) -> None:
    """Days older than ``RETENTION_DAYS`` are deleted."""
    with closing(open_database(database)) as connection:
        for days in (0, RETENTION_DAYS - 1, RETENTION_DAYS):
            spending_sql.add(connection, by_day(row(), [DOLLAR], NOON - days * 86400))
        spending_sql.delete_expired(connection, NOON)
        assert len(spending_sql.since(connection, "")) == 2


async def spent_of(open_store: Callable[..., Store]) -> list[DailyUsage]:
    store = open_store()
    try:
        return await store.audit.usage_since("")
    finally:
        await store.close()


async def test_spending_is_written_with_the_end(open_store: Callable[..., Store], call: Call) -> None:
    """Spending is written once, with the end of the call, and survives a restart."""
    store = open_store()
    await store.journal.start(call.starts())
    assert await store.audit.usage_since("") == []
    await store.journal.end(call.ends(usage_by_model=(DOLLAR,)))
    assert [item.completions for item in await store.audit.usage_since("")] == [1]
    await store.close()
    for _ in range(2):
        (result,) = await spent_of(open_store)
        assert (result.tool, result.model, result.completions, result.cost) == ("chat", "k2", 1, 1.0)


async def test_interrupted_call_adds_no_spending(open_store: Callable[..., Store], call: Call) -> None:
    """An interrupted call adds no spending, and earlier spending is not added again."""
    store = open_store()
    await store.journal.start(call.starts("1"))
    await store.journal.start(call.starts("2"))
    await store.journal.end(call.ends("1", usage_by_model=(DOLLAR,)))
    await store.close()  # call 2 is still started, as after a crash
    for _ in range(2):
        assert [item.completions for item in await spent_of(open_store)] == [1]


async def test_retried_end_counts_once(
    open_store: Callable[..., Store], call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An end that failed is retried with its spending and counted once."""
    store, refusals = open_store(), [1]
    add = spending_sql.add

    def refuse_once(connection: sqlite3.Connection, sums: Any) -> None:
        add(connection, sums)
        if sums and refusals:
            refusals.pop()
            raise sqlite3.OperationalError("disk I/O error")

    await store.journal.start(call.starts())
    monkeypatch.setattr(spending_sql, "add", refuse_once)
    with pytest.raises(Exception, match="disk I/O error"):
        await store.journal.end(call.ends(usage_by_model=(DOLLAR,)))
    await store.flush()
    await store.close()
    assert [item.completions for item in await spent_of(open_store)] == [1]


def test_migration_derives_days_from_calls(database: Path) -> None:
    """The migration derives the spending of each day and model from the stored calls."""
    with closing(open_database(database, STEPS[:6])) as connection:
        names = [name for _, name, *_ in connection.execute("PRAGMA table_info(call)")][1:]
        for model, tokens in (("k2", 10), ("k2", 5), (None, 0)):
            plain: dict[str, Any] = dict.fromkeys(names, 0) | {"mac": None}
            plain |= {"started_at": NOON, "tool": "chat", "provider": model and "kimi", "model": model}
            plain |= {"principal": "local", "input_tokens": tokens, "cost_amount": 0.25, "cost_currency": "USD"}
            holes = ", ".join("?" * len(names))
            connection.execute(f"INSERT INTO call ({', '.join(names)}) VALUES ({holes})", tuple(plain.values()))  # noqa: S608 - our own names
    with closing(open_database(database)) as connection:
        (result,) = spending_sql.since(connection, "")
    assert (result.day, result.tool, result.model, result.completions) == ("2026-05-01", "chat", "k2", 2)
    assert (result.input_tokens, result.currency, result.cost) == (15, "USD", 0.5)
