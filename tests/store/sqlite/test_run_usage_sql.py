"""What runs and agents spent, from the audit rows of their calls."""

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest
from toold.protocol.tool_call import Cost, ModelUsage, Usage
from toold.store import KEY_BYTES, CallRow, CallStart, day_of
from toold.store.audit_rows import audit_values
from toold.store.sqlite import audit_sql, journal_sql, run_sql
from toold.store.sqlite.chain_writer import ChainWriter
from toold.store.sqlite.run_usage_sql import spent_by_tool, usage_of_run

MakeRow = Callable[..., CallRow]
DAY = 86400.0


@pytest.fixture
def ended(connection: sqlite3.Connection, row: MakeRow) -> Callable[..., None]:
    """A function that adds the audit row of an ended call of ``ann``."""

    def add(call_id: str, cost: float | None, currency: str = "USD", **fields: Any) -> None:
        values = {"principal": "ann", "provider": "kimi", "model": "k", "input_tokens": 10, "output_tokens": 5}
        money = {"cost_amount": cost, "cost_currency": None if cost is None else currency}
        ended = row(id=call_id, **{**values, "simulated": False, **money, **fields})
        with ChainWriter(b"k" * KEY_BYTES).extending(connection) as chain:
            audit_sql.add(connection, chain, [audit_values(ended, None)])

    return add


@pytest.fixture
def started(connection: sqlite3.Connection, row: MakeRow) -> Callable[..., None]:
    """A function that starts an orchestration call of ``ann``; with ``of``, as a child of that run."""

    def start(call_id: str, tool: str, of: str | None = None) -> None:
        session, key = (of, call_id.rpartition("/")[2]) if of else ("s", call_id)
        call = row(id=call_id, tool=tool, principal="ann", started_at=100.0)
        entry = CallStart(
            session_id=session, request_key=key, echo_id=False, arguments_hash=b"h", row=call, child=of is not None,
            orchestration=True,
        )  # fmt: skip
        journal_sql.start(connection, [entry])

    return start


def test_a_run_is_its_calls_and_those_that_resumed_it(
    connection: sqlite3.Connection, started: Callable[..., None], ended: Callable[..., None]
) -> None:
    """Calls at any depth count, after a restart too, whatever their suffixes; other runs, principals and calls without
    tokens do not.
    """
    for root in ("e-1", "e-10", "e-2"):
        started(root, "desk")
    run_sql.resume(connection, "e-2", "e-1")
    ended("e-1/t1", 1.0, started_at=101.0)
    ended("e-1/inner~2/t1~2", 2.0, started_at=102.0)
    ended("e-1/inner/t0", None, started_at=102.0, simulated=True)
    ended("e-2/inner/t2", 4.0, "CNY", started_at=103.0)
    ended("e-10/t1", 8.0, started_at=101.0)
    ended("e-1/t1", 16.0, started_at=101.0, principal="bob")
    ended("e-1/free", None, started_at=101.0, input_tokens=0, output_tokens=0)
    ended("e-1/innermost/t1", 32.0, started_at=101.0)

    def costs(run: str) -> list[float | None]:
        return [row.usage.cost.amount if row.usage.cost else None for row in usage_of_run(connection, run, "ann")]

    assert sorted(costs("e-1"), key=lambda cost: cost or 0) == [None, 1.0, 2.0, 4.0, 32.0]
    assert sorted(costs("e-1/inner"), key=lambda cost: cost or 0) == [None, 2.0, 4.0]
    assert (costs("e-3"), usage_of_run(connection, "e-1", "eve")) == ([], [])
    first = next(row for row in usage_of_run(connection, "e-1", "ann") if row.usage.cost == Cost(1.0, "USD"))
    assert (first.simulated, first.usage) == (False, ModelUsage("kimi", "k", 1, Usage(10, 5), Cost(1.0, "USD")))


def test_an_agent_spends_with_all_its_descendants(
    connection: sqlite3.Connection, started: Callable[..., None], ended: Callable[..., None]
) -> None:
    """On the day on which they ended, once each, also in an agent that another one called, and for all principals."""
    started("e-1", "desk")
    started("e-1/i", "helper", of="e-1")
    started("e-1/i/again", "helper", of="e-1/i")
    ended("e-1/t1", 1.0, started_at=5 * DAY, latency_ms=1000)
    ended("e-1/i~3/t1", 2.0, started_at=5 * DAY - 1, latency_ms=2000)
    ended("e-1/i/again/t1", 4.0, "CNY", started_at=5 * DAY)
    ended("e-1/i/t0", 8.0, started_at=5 * DAY - 2, latency_ms=1000)
    ended("e-9", 16.0, started_at=5 * DAY)
    day = day_of(5 * DAY)
    assert spent_by_tool(connection, "helper", day) == {"USD": 2.0, "CNY": 4.0}
    assert spent_by_tool(connection, "desk", day) == {"USD": 3.0, "CNY": 4.0}
    assert spent_by_tool(connection, "pays", day) == {}
