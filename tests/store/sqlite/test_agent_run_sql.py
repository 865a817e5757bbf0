"""The list of the runs of agents, from the journal."""

import sqlite3
from collections.abc import Callable

import pytest
from toold.store import CallRow, CallStart
from toold.store.sqlite import agent_run_sql, journal_sql, run_sql

MakeRow = Callable[..., CallRow]


@pytest.fixture
def begun(connection: sqlite3.Connection, row: MakeRow) -> Callable[..., None]:
    """A function that begins a run: an orchestration call, and by default its snapshot."""

    def begin(call_id: str, *, principal: str = "ann", at: float = 100.0, snapshot: bool = True) -> None:
        for session, key, tool in [("s", call_id, "desk"), (call_id, "snapshot", "agent_snapshot")][: 1 + snapshot]:
            call = row(id=call_id, tool=tool, principal=principal, started_at=at)
            entry = CallStart(
                session_id=session, request_key=key, echo_id=False, arguments_hash=b"h", row=call,
                child=session != "s", orchestration=True,
            )  # fmt: skip
            journal_sql.start(connection, [entry])

    return begin


def test_a_run_that_a_crash_ended_has_failed(connection: sqlite3.Connection, begun: Callable[..., None]) -> None:
    """A run has ended if its call has, or if the daemon has restarted since and does not resume it; then its outcome is
    unknown. Other orchestration calls are not runs of agents."""
    begun("e-1", at=101.0)
    begun("e-2", at=102.0)
    begun("e-3", at=103.0, snapshot=False)
    running = agent_run_sql.list_runs(connection, "ann", limit=5)
    assert [(run.run_id, run.state) for run in running] == [("e-2", "running"), ("e-1", "running")]
    agent_run_sql.set_outcome(connection, "e-1", "ok", "max_turns")
    run_sql.finish_all(connection)
    crashed, finished = agent_run_sql.list_runs(connection, "ann", limit=5)
    assert (crashed.state, crashed.error) == ("failed", "OUTCOME_UNKNOWN")
    assert (finished.state, finished.error, finished.stopped_by) == ("finished", None, "max_turns")


def test_runs_are_selected(connection: sqlite3.Connection, begun: Callable[..., None]) -> None:
    """A principal has its own runs; the newest come first, and a state is searched beyond the newest ones."""
    for number in range(4):
        begun(f"e-{number}", at=100.0 + number)
    begun("e-9", principal="ben", at=109.0)
    agent_run_sql.set_outcome(connection, "e-1", "TIMEOUT", "")
    assert [run.run_id for run in agent_run_sql.list_runs(connection, "ann", limit=2)] == ["e-3", "e-2"]
    assert agent_run_sql.list_runs(connection, None, limit=1)[0].principal == "ben"
    assert [run.run_id for run in agent_run_sql.list_runs(connection, "ann", states=["failed"], limit=1)] == ["e-1"]
    assert agent_run_sql.list_runs(connection, "ann", agent="other", limit=5) == []
