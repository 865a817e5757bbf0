"""The SQL of runs and of their children in the journal, on a separate connection."""

import sqlite3
import time
from collections.abc import Callable

import pytest
from msgspec.structs import replace
from toold.store import CallEnd, CallRow, CallStart, DetachedRequest, Store, StoredCall
from toold.store.sqlite import interrupted_sql, journal_sql, run_sql, session_sql
from toold.store.store_limits import ID_TTL_S

DAY = 86400.0
NO_LIMIT_BYTES = 2**30

MakeRow = Callable[..., CallRow]


@pytest.fixture
def parent(row: MakeRow) -> CallStart:
    """An orchestration call of a session."""
    started = row(id="e-1", tool="execute_pipeline", principal="ann", started_at=10.0)
    return CallStart(
        session_id="s", request_key="n1", echo_id=False, arguments_hash=b"h", row=started, orchestration=True
    )


@pytest.fixture
def child(row: MakeRow) -> Callable[..., CallStart]:
    def make(name: str = "step", *, replace: bool = False, orchestration: bool = False) -> CallStart:
        started = row(id=f"e-1/{name}", tool="write", principal="ann", started_at=11.0)
        return CallStart(
            session_id="e-1", request_key=name, echo_id=False, arguments_hash=b"h", row=started, child=True,
            orchestration=orchestration, replace=replace,
        )  # fmt: skip

    return make


def ended(started: CallStart, at: float = 12.0) -> CallEnd:
    return CallEnd(session_id=started.session_id, request_key=started.request_key, result=b"{}", at=at, row=started.row)


def known(
    connection: sqlite3.Connection, name: str = "step", principal: str = "ann", since: float = 0
) -> StoredCall | None:
    return session_sql.child_call(connection, "e-1", name, principal, results_since=since)


def test_run_is_found_by_its_tool_and_principal(connection: sqlite3.Connection, parent: CallStart) -> None:
    """A run is found only by its own principal and tool."""
    journal_sql.start(connection, [parent])
    assert run_sql.find_run(connection, "e-1", "ann", "execute_pipeline") == "e-1"
    assert run_sql.find_run(connection, "e-1", "bob", "execute_pipeline") is None
    assert run_sql.find_run(connection, "e-1", "ann", "execute_batch") is None
    assert run_sql.find_run(connection, "e-2", "ann", "execute_pipeline") is None


def test_child_call_has_no_run(connection: sqlite3.Connection, child: Callable[..., CallStart]) -> None:
    """A child call belongs to the run of its parent and cannot itself be resumed."""
    journal_sql.start(connection, [child(orchestration=True)])
    assert run_sql.find_run(connection, "e-1/step", "ann", "write") is None


def test_resumed_run_is_found_by_the_later_call(
    connection: sqlite3.Connection, parent: CallStart, row: MakeRow
) -> None:
    """A third run finds the children of the first through the second."""
    journal_sql.start(connection, [parent])
    repeat = row(id="e-2", tool="execute_pipeline", principal="ann")
    second = CallStart(
        session_id="s", request_key="n2", echo_id=False, arguments_hash=b"h", row=repeat, orchestration=True
    )
    journal_sql.start(connection, [second])
    run_sql.resume(connection, "e-2", "e-1")
    assert run_sql.find_run(connection, "e-2", "ann", "execute_pipeline") == "e-1"


def test_child_call_is_found_with_its_result(connection: sqlite3.Connection, child: Callable[..., CallStart]) -> None:
    """A child is found by its principal only; one that did not end is interrupted, one with an old result expired."""
    journal_sql.start(connection, [child("step"), child("cut off")])
    journal_sql.end(connection, [ended(child("step"))], max_bytes=NO_LIMIT_BYTES)
    result = known(connection)
    assert result is not None
    assert (result.state, result.result, result.tool, result.arguments_hash) == ("done", b"{}", "write", b"h")
    assert known(connection, principal="bob") is None
    assert known(connection, "other") is None
    cut_off = known(connection, "cut off")
    assert (cut_off and cut_off.state, cut_off and cut_off.result) == ("interrupted", None)
    assert known(connection, since=13.0) == result  # the run has not ended
    run_sql.finish(connection, ["e-1"])
    too_old = known(connection, since=13.0)
    assert (too_old and too_old.state, too_old and too_old.result) == ("expired", None)


def test_call_of_a_session_is_not_a_child(connection: sqlite3.Connection, parent: CallStart) -> None:
    """A client's request id never matches a child's name."""
    journal_sql.start(connection, [parent])
    assert session_sql.child_call(connection, "s", "n1", "ann", results_since=0) is None


@pytest.mark.parametrize("state", ["interrupted", "done"])
def test_only_interrupted_or_expired_children_rerun(
    connection: sqlite3.Connection, child: Callable[..., CallStart], state: str
) -> None:
    """A child that ended keeps its result even if its start asks for replacement."""
    journal_sql.start(connection, [child()])
    if state == "done":
        journal_sql.end(connection, [ended(child())], max_bytes=NO_LIMIT_BYTES)
    else:
        journal_sql.end(connection, interrupted_sql.interrupted_calls(connection, 12.0), max_bytes=NO_LIMIT_BYTES)
    assert journal_sql.start(connection, [child()]) == [False]
    assert journal_sql.start(connection, [child(replace=True)]) == [state == "interrupted"]


def test_an_orchestration_child_that_is_done_can_resume(
    connection: sqlite3.Connection, child: Callable[..., CallStart]
) -> None:
    """Its earlier result is deleted, and it ends with the new one; while it runs it cannot be replaced."""
    journal_sql.start(connection, [child(orchestration=True)])
    assert journal_sql.start(connection, [child(orchestration=True, replace=True)]) == [False]
    journal_sql.end(connection, [ended(child())], max_bytes=NO_LIMIT_BYTES)
    assert journal_sql.start(connection, [child(orchestration=True, replace=True)]) == [True]
    assert connection.execute("SELECT count(*) FROM result").fetchone() == (0,)


def test_child_calls_survive_their_session(
    connection: sqlite3.Connection, parent: CallStart, child: Callable[..., CallStart]
) -> None:
    """A plain client's run can be resumed from its next connection and after a restart."""
    journal_sql.start(connection, [parent, child()])
    journal_sql.end(connection, [ended(parent), ended(child())], max_bytes=NO_LIMIT_BYTES)
    assert session_sql.has_orphaned_calls(connection)
    session_sql.close_session(connection, "s")
    assert not session_sql.has_orphaned_calls(connection)
    session_sql.delete_orphaned_calls(connection)
    assert known(connection) is not None


def test_runs_expire_with_their_children(
    connection: sqlite3.Connection, parent: CallStart, child: Callable[..., CallStart]
) -> None:
    """A run expires with its last child."""
    journal_sql.start(connection, [parent, child()])
    journal_sql.end(connection, [ended(parent), ended(child(), at=2 * DAY)], max_bytes=NO_LIMIT_BYTES)
    run_sql.finish(connection, ["e-1"])
    journal_sql.delete_expired(connection, ID_TTL_S + DAY, result_ttl_s=1)
    assert run_sql.find_run(connection, "e-1", "ann", "execute_pipeline") == "e-1"
    journal_sql.delete_expired(connection, ID_TTL_S + 3 * DAY, result_ttl_s=1)
    journal_sql.delete_expired(connection, ID_TTL_S + 3 * DAY, result_ttl_s=1)
    assert run_sql.find_run(connection, "e-1", "ann", "execute_pipeline") is None
    assert known(connection) is None


async def test_store_finds_runs_and_children(
    open_store: Callable[..., Store], parent: CallStart, child: Callable[..., CallStart]
) -> None:
    """The store finds runs and children right after they are written and after it is reopened."""
    store = open_store()
    await store.journal.start(replace(parent, row=replace(parent.row, started_at=time.time())))
    await store.journal.start(child())
    result = await store.journal.child_call("e-1", "step", "ann")
    assert result is not None
    await store.journal.resume_run("e-1", "e-0")
    await store.close()
    later = open_store()
    repeat = await later.journal.child_call("e-1", "step", "ann")
    assert (result.state, repeat and repeat.state) == ("interrupted", "interrupted")
    assert await later.journal.find_run("e-1", "ann", "execute_pipeline") == "e-0"
    await later.close()


def test_the_creator_of_a_detached_call_has_its_run(
    connection: sqlite3.Connection, parent: CallStart, child: Callable[..., CallStart]
) -> None:
    """Also if the detached call continues an earlier run, and also if a child call created it."""
    journal_sql.start(connection, [parent])
    for number, creator in enumerate(["e-1", "e-1/step"]):
        order = DetachedRequest(arguments=b"{}", client=b"{}", deadline_at=99.0, creator=creator)
        started = replace(parent.row, id=f"d-{number}")
        call = replace(parent, session_id=f"d-{number}", row=started, detached=order)
        assert journal_sql.start(connection, [call]) == [True]
        assert run_sql.find_run(connection, creator, "ann", "execute_pipeline") == f"d-{number}"
        run_sql.resume(connection, f"d-{number}", "earlier")
        assert run_sql.find_run(connection, creator, "ann", "execute_pipeline") == "earlier"
        assert run_sql.find_run(connection, creator, "eve", "execute_pipeline") is None
