"""The SQL of the journal on a separate connection."""

import sqlite3
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.store.sqlite.journal_entries import (
    DAY,
    NO_LIMIT_BYTES,
    ROW,
    answer,
    ending,
    kept_bytes,
    results,
    run,
    session_row,
    starting,
    states,
)
from toold.protocol.session_calls import REMEMBERED_IDS
from toold.store import CallEnd, StoredCall, UnstartedCall
from toold.store.commit_entries import InterruptedCall
from toold.store.sqlite import interrupted_sql, journal_sql, session_sql
from toold.store.sqlite.audit_sql import SLICE
from toold.store.sqlite.store_schema import STEPS
from toold.store.store_limits import ID_TTL_S, ROWS_PER_STATEMENT

# --- states of a call ------------------------------------------------------------------------------------------------


def test_call_is_read_back_unchanged(connection: sqlite3.Connection) -> None:
    """A session is found by its key's hash, with everything needed to replay its calls."""
    session_sql.open_session(connection, session_row(at=3.0))
    run(connection, ending("a", b"[1]"))
    session = session_sql.load_session(connection, b"s", results_since=0.0)
    assert session
    assert session.row == session_row(at=3.0)
    assert session.calls == [
        StoredCall(
            session_id="s",
            request_key="a",
            echo_id=False,
            tool="chat",
            arguments_hash=b"a",
            local=False,
            state="done",
            result=b"[1]",
            at=10.0,
        )
    ]
    assert session_sql.load_session(connection, b"other", results_since=0.0) is None


@pytest.mark.parametrize("end", [None, ending("a"), ending("a", None)])
def test_known_id_is_refused(connection: sqlite3.Connection, end: CallEnd | None) -> None:
    """An id that is started, done or expired is refused and its record stays unchanged; another session may use it."""
    session_sql.open_session(connection, session_row())
    assert journal_sql.start(connection, starting("a")) == [True]
    journal_sql.end(connection, [end] if end else [], max_bytes=NO_LIMIT_BYTES)
    before = connection.execute("SELECT * FROM journal").fetchall()
    assert journal_sql.start(connection, starting("a", "b")) == [False, True]
    assert connection.execute("SELECT * FROM journal WHERE request_key = 'a'").fetchall() == before
    assert journal_sql.start(connection, starting("a", session="t")) == [True]


def test_first_of_two_starts_with_one_id_may_run(connection: sqlite3.Connection) -> None:
    """An id that appears twice in one group may start once."""
    assert journal_sql.start(connection, starting("a", "b", "a")) == [True, True, False]


def test_start_and_end_of_many_calls(connection: sqlite3.Connection) -> None:
    """More calls than fit in one statement can start and end together."""
    keys = [str(number) for number in range(2 * ROWS_PER_STATEMENT + 1)]
    assert all(journal_sql.start(connection, starting(*keys)))
    journal_sql.end(connection, [ending(key, key.encode()) for key in keys], max_bytes=NO_LIMIT_BYTES)
    session_sql.open_session(connection, session_row())
    assert results(connection) == {key: ("done", key.encode()) for key in keys}


def test_ended_call_has_no_template(connection: sqlite3.Connection) -> None:
    """The template of the audit row for a crash exists only while the call runs."""
    journal_sql.start(connection, starting("a"))
    assert interrupted_sql.interrupted_calls(connection, 7.0) == [
        InterruptedCall(session_id="s", request_key="a", at=7.0, row=ROW)
    ]
    journal_sql.end(connection, [ending("a")], max_bytes=NO_LIMIT_BYTES)
    assert interrupted_sql.interrupted_calls(connection, 7.0) == []
    assert connection.execute("SELECT * FROM template").fetchall() == []


def test_stored_id_takes_little_space(connection: sqlite3.Connection) -> None:
    """After its result is deleted, an id takes less than 300 bytes of the database."""
    many = 2000
    (empty,) = connection.execute("PRAGMA page_count").fetchone()  # the tables of other rows
    for number in range(many):
        run(connection, ending(f"{number:032}", b"x" * 700))
    assert journal_sql.delete_expired(connection, 10.0 + DAY, result_ttl_s=DAY - 1) == SLICE
    while journal_sql.delete_expired(connection, 10.0 + DAY, result_ttl_s=DAY - 1):
        pass
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    assert (pages - free - empty) * size < many * 300


def test_undecodable_template_is_skipped(connection: sqlite3.Connection) -> None:
    """A call with an undecodable template is found interrupted without an audit row; others are found with theirs."""
    journal_sql.start(connection, starting("a", "b", "c", "d", "e"))
    for number, damaged in enumerate(["{", "{}", b'"\xff"'], start=1):
        connection.execute("UPDATE template SET audit_row = CAST(? AS TEXT) WHERE number = ?", (damaged, number))
    connection.execute("DELETE FROM template WHERE number = 4")
    result = {call.request_key: call.row for call in interrupted_sql.interrupted_calls(connection, 7.0)}
    assert result == {"a": None, "b": None, "c": None, "d": None, "e": ROW}


def test_call_ends_once(connection: sqlite3.Connection) -> None:
    """A second end of a call, or the end of a call that never started, changes nothing."""
    session_sql.open_session(connection, session_row())
    run(connection, ending("a", b"first"))
    journal_sql.end(connection, [ending("a", b"second"), ending("never")], max_bytes=NO_LIMIT_BYTES)
    assert results(connection) == {"a": ("done", b"first")}


def test_missing_or_oversized_result_is_stored_as_expired(connection: sqlite3.Connection) -> None:
    """A call without a result, or with one over the limit, is stored as expired."""
    session_sql.open_session(connection, session_row())
    journal_sql.start(connection, starting("none", "large", "fits"))
    ends = [ending("none", None), ending("large", b"123"), ending("fits", b"12")]
    journal_sql.end(connection, ends, max_bytes=2)
    assert results(connection) == {"none": ("expired", None), "large": ("expired", None), "fits": ("done", b"12")}


def test_call_that_ended_before_its_start_keeps_its_id(connection: sqlite3.Connection) -> None:
    """Its end is written with or without its start, over a local result, but not over an earlier call with its id; a
    later start of the id is refused.
    """
    session_sql.open_session(connection, session_row())
    journal_sql.start(connection, starting("started"))
    run(connection, ending("earlier", b"earlier"))
    journal_sql.persist_local_results(connection, [answer("local", b"local")], max_bytes=NO_LIMIT_BYTES)
    keys = ("new", "started", "local", "earlier", "large")
    content = UnstartedCall(echo_id=True, arguments_hash=b"content")
    ends = [(ending(key, b"12345" if key == "large" else b"no"), content) for key in keys]
    assert journal_sql.end_unstarted(connection, ends, max_bytes=4) == [True, True, True, False, True]
    session = session_sql.load_session(connection, b"s", results_since=0.0)
    assert session is not None
    assert {(call.request_key, call.state, call.result, call.started, call.local) for call in session.calls} == {
        ("new", "done", b"no", False, False),
        ("started", "done", b"no", False, False),
        ("local", "done", b"no", False, False),
        ("earlier", "done", b"earlier", True, False),
        ("large", "expired", None, False, False),
    }
    assert {call.arguments_hash for call in session.calls} == {b"content", b"earlier"}
    assert connection.execute("SELECT count(*) FROM template").fetchone() == (0,)
    assert journal_sql.start(connection, starting(*keys)) == [False] * 5
    journal_sql.acknowledge(connection, "s", keys)
    assert set(states(connection).values()) == {"expired"}


def test_interrupted_call_is_stored_as_such(connection: sqlite3.Connection) -> None:
    """A call that a crash left started becomes interrupted, without a result."""
    session_sql.open_session(connection, session_row())
    journal_sql.start(connection, starting("a"))
    journal_sql.end(connection, interrupted_sql.interrupted_calls(connection, 7.0), max_bytes=NO_LIMIT_BYTES)
    session = session_sql.load_session(connection, b"s", results_since=100.0)
    assert session
    assert [(call.state, call.result, call.at) for call in session.calls] == [("interrupted", None, 7.0)]


def test_calls_are_returned_in_order_of_their_ends(connection: sqlite3.Connection) -> None:
    """Ended calls are ordered by their end, not by their start; running calls are omitted."""
    session_sql.open_session(connection, session_row())
    journal_sql.start(connection, starting("a", "b", "c", "runs"))
    journal_sql.end(
        connection, [ending("b", at=3.0), ending("c", at=1.0), ending("a", at=2.0)], max_bytes=NO_LIMIT_BYTES
    )
    assert list(results(connection)) == ["c", "a", "b"]


def test_session_is_loaded_with_its_last_calls(connection: sqlite3.Connection) -> None:
    """A session is loaded with the last ``REMEMBERED_IDS`` calls; the journal still knows older ids."""
    session_sql.open_session(connection, session_row())
    run(connection, *(ending(str(number), None, at=float(number)) for number in range(REMEMBERED_IDS + 1)))
    result = results(connection)
    assert len(result) == REMEMBERED_IDS
    assert "0" not in result
    assert journal_sql.start(connection, starting("0")) == [False]
    known = session_sql.load_session(connection, b"s", results_since=0.0)
    assert known
    assert known.more


def test_any_journalled_call_of_a_session_can_be_read(connection: sqlite3.Connection) -> None:
    """A journalled call is found by its id with its outcome and its retained result; a running call has not ended."""
    session_sql.open_session(connection, session_row())
    run(connection, ending("old", at=5.0), ending("kept", b"[1]", at=10.0), ending("too-large", None))
    journal_sql.start(connection, starting("cut-off", "runs"))
    cut_off = InterruptedCall(session_id="s", request_key="cut-off", at=10.0, row=None)
    journal_sql.end(connection, [cut_off], max_bytes=NO_LIMIT_BYTES)
    journal_sql.persist_local_results(connection, [answer("local")], max_bytes=NO_LIMIT_BYTES)
    keys = ["old", "kept", "too-large", "cut-off", "runs", "local", "never"]
    known = {key: session_sql.ended_call(connection, "s", key, results_since=6.0) for key in keys}
    assert {key: (call.state, call.result) for key, call in known.items() if call} == {
        "old": ("expired", None),
        "kept": ("done", b"[1]"),
        "too-large": ("expired", None),
        "cut-off": ("interrupted", None),
    }
    reported = {"old": "expired", "kept": "done", "too-large": "expired", "cut-off": "interrupted", "runs": "expired"}
    assert session_sql.call_states(connection, "s", keys, results_since=6.0) == reported
    assert session_sql.call_states(connection, "other", keys, results_since=6.0) == {}


# --- results of local calls ------------------------------------------------------------------------------------------


def test_local_results_are_stored_for_stored_sessions(connection: sqlite3.Connection) -> None:
    """Local results are stored only for stored sessions and only up to the size limit."""
    session_sql.open_session(connection, session_row())
    stored = [answer("a", b"12"), answer("b", b"123"), answer("c", session="plain")]
    journal_sql.persist_local_results(connection, stored, max_bytes=2)
    session = session_sql.load_session(connection, b"s", results_since=0.0)
    assert session
    assert session.calls == stored[:1]
    assert states(connection, "plain") == {}


def test_local_result_is_replaced(connection: sqlite3.Connection) -> None:
    """A later local result replaces an earlier one, and a journalled start replaces it; a journalled call stays."""
    session_sql.open_session(connection, session_row())
    journal_sql.persist_local_results(connection, [answer("a", b"1")], max_bytes=NO_LIMIT_BYTES)
    journal_sql.persist_local_results(connection, [answer("a", b"2")], max_bytes=NO_LIMIT_BYTES)
    assert results(connection) == {"a": ("done", b"2")}
    assert journal_sql.start(connection, starting("a")) == [True]
    journal_sql.persist_local_results(connection, [answer("a", b"3")], max_bytes=NO_LIMIT_BYTES)
    assert states(connection) == {"a": "started"}
    assert kept_bytes(connection) == 0


def test_acknowledged_results_are_deleted(connection: sqlite3.Connection) -> None:
    """Acknowledged journalled ids stay known without results, local ones are deleted, others are unchanged."""
    session_sql.open_session(connection, session_row())
    run(connection, ending("a"), ending("b"))
    journal_sql.start(connection, starting("crash", "runs"))
    journal_sql.end(connection, interrupted_sql.interrupted_calls(connection, 11.0)[:1], max_bytes=NO_LIMIT_BYTES)
    journal_sql.persist_local_results(connection, [answer("local")], max_bytes=NO_LIMIT_BYTES)
    run(connection, ending("a", session="t"))
    journal_sql.acknowledge(connection, "s", ["a", "local", "crash", "runs", "never"])
    assert states(connection) == {"a": "expired", "b": "done", "crash": "expired", "runs": "started"}
    assert states(connection, "t") == {"a": "done"}


# --- limits ----------------------------------------------------------------------------------------------------------


def test_oldest_results_of_a_principal_are_deleted_first(connection: sqlite3.Connection) -> None:
    """Beyond the limit only as many of the principal's oldest results expire as necessary; local ones are deleted."""
    session_sql.open_session(connection, session_row())
    session_sql.open_session(connection, session_row("t", principal="other"))
    run(connection, ending("b", b"22", at=2.0), ending("c", b"333", at=3.0), ending("d", b"44", at=4.0))
    journal_sql.persist_local_results(
        connection, [answer("a", b"1", at=1.0), answer("z", b"9" * 7, at=0.0, session="t")], max_bytes=NO_LIMIT_BYTES
    )
    journal_sql.enforce_results_limit(connection, 8)
    assert states(connection) == {"a": "done", "b": "done", "c": "done", "d": "done"}
    journal_sql.enforce_results_limit(connection, 7)
    assert states(connection) == {"b": "done", "c": "done", "d": "done"}
    journal_sql.enforce_results_limit(connection, 6)
    assert states(connection) == {"b": "expired", "c": "done", "d": "done"}
    assert states(connection, "t") == {}
    assert results(connection)["b"] == ("expired", None)


def test_results_expire(connection: sqlite3.Connection) -> None:
    """Expired results are not returned and are later deleted; ids of journalled calls stay, local ones do not."""
    session_sql.open_session(connection, session_row(at=1e9))
    run(connection, ending("old", at=1e9), ending("new", at=1e9 + DAY))
    journal_sql.persist_local_results(connection, [answer("local", at=1e9)], max_bytes=NO_LIMIT_BYTES)
    now = 1e9 + DAY + 1
    missing = {"old": ("expired", None), "new": ("done", b"{}")}
    assert results(connection, since=now - DAY) == missing
    assert journal_sql.delete_expired(connection, now, result_ttl_s=DAY) == 2
    assert results(connection) == missing
    assert kept_bytes(connection) == 2


def test_ids_and_sessions_expire_after_a_week(connection: sqlite3.Connection) -> None:
    """Ids expire after the end of their call, sessions without ids after they were last seen; running calls stay."""
    session_sql.open_session(connection, session_row("s", at=0.0))
    session_sql.open_session(connection, session_row("idle", at=0.0))
    session_sql.open_session(connection, session_row("held", at=0.0))
    run(connection, ending("a", at=DAY))
    journal_sql.start(connection, starting("runs"))
    session_sql.mark_seen(connection, ["held", "never"], ID_TTL_S)
    journal_sql.delete_expired(connection, ID_TTL_S + 1, result_ttl_s=DAY)
    assert states(connection) == {"a": "expired", "runs": "started"}
    assert {name for (name,) in connection.execute("SELECT id FROM session")} == {"s", "held"}
    journal_sql.delete_expired(connection, ID_TTL_S + DAY + 1, result_ttl_s=DAY)
    assert states(connection) == {"runs": "started"}


def test_retention_stops_after_a_slice(connection: sqlite3.Connection) -> None:
    """One step deletes at most a slice per table, so that starting calls do not wait long."""
    session_sql.open_session(connection, session_row())
    run(connection, *(ending(str(number), at=0.0) for number in range(SLICE + 10)))
    steps = [journal_sql.delete_expired(connection, 2 * ID_TTL_S, result_ttl_s=DAY) for _ in range(4)]
    assert steps == [SLICE, 10, 0, 0]
    assert states(connection) == {}


KEY = st.sampled_from("abc")
SIZE = st.integers(0, 9)
STEP = st.one_of(
    st.tuples(st.just("start"), KEY),
    st.tuples(st.just("end"), KEY, SIZE),
    st.tuples(st.just("keep"), KEY, SIZE),
    st.tuples(st.just("forget"), KEY),
    st.tuples(st.just("bound"), st.integers(0, 20)),
    st.tuples(st.just("close")),
    st.tuples(st.just("crash")),
    st.tuples(st.just("expire")),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEP, max_size=30))
def test_recorded_sums_equal_those_of_the_results(steps: list[tuple[str, ...]]) -> None:
    """After any sequence of operations, the size per principal is correct and only done calls have results."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(";".join(STEPS))
        session_sql.open_session(connection, session_row())
        for at, (what, *how) in enumerate(steps):
            match what, how:
                case "start", [key]:
                    journal_sql.start(connection, starting(key))
                case "end", [key, size]:
                    journal_sql.end(connection, [ending(key, b"x" * int(size), float(at))], max_bytes=8)
                case "keep", [key, size]:
                    journal_sql.persist_local_results(
                        connection, [answer(key, b"x" * int(size), float(at))], max_bytes=8
                    )
                case "forget", [key]:
                    journal_sql.acknowledge(connection, "s", [key])
                case "bound", [most]:
                    journal_sql.enforce_results_limit(connection, int(most))
                    assert kept_bytes(connection) <= int(most)
                case "close", _:
                    session_sql.close_session(connection, "s")
                    session_sql.open_session(connection, session_row())
                case "crash", _:
                    journal_sql.end(connection, interrupted_sql.interrupted_calls(connection, float(at)), max_bytes=8)
                    session_sql.delete_orphaned_calls(connection)
                case _:
                    journal_sql.delete_expired(connection, float(at), result_ttl_s=5.0)
            (sizes,) = connection.execute("SELECT coalesce(sum(length(result)), 0) FROM result").fetchone()
            assert kept_bytes(connection) == sizes
            assert connection.execute(
                "SELECT count(*) FROM journal LEFT JOIN result USING (number) LEFT JOIN template USING (number) "
                "WHERE (state = 'done') != (result IS NOT NULL) OR (state = 'started') != (audit_row IS NOT NULL) "
                "OR local AND state != 'done'"
            ).fetchone() == (0,)
            assert not connection.execute(
                "SELECT number FROM result UNION SELECT number FROM template EXCEPT SELECT number FROM journal"
            ).fetchall()
