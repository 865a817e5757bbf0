"""Results, ids and sessions expire by the store's clock, whatever the system's clock shows."""

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from toold.store import Store
from toold.store.sqlite import journal_sql, store_clock_sql
from toold.store.sqlite.store_schema import open_database
from toold.store.store_clock import StoreClock
from toold.store.store_limits import ID_TTL_S

Call = Any  # conftest.Journalled
DAY = 86400.0


def shift(monkeypatch: pytest.MonkeyPatch, days: float) -> None:
    """Changes the system's clock."""
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + days * DAY)


@pytest.mark.parametrize("days", [9, -9])
async def test_a_changed_system_clock_forgets_nothing(
    open_store: Callable[..., Store], call: Call, monkeypatch: pytest.MonkeyPatch, days: float
) -> None:
    """Changed while the daemon runs, or between two runs: results are returned with their age, no id may start again,
    and the session is found.
    """
    store = open_store()
    store.sessions.open(call.session)
    for key in ("done", "acknowledged"):
        assert await store.journal.start(call.starts(key))
        await store.journal.end(call.ends(key))
    store.sessions.acknowledge("s-1", ["acknowledged"])
    await store.journal.persist_local_results([call.local("local")])
    for _ in range(2):
        shift(monkeypatch, days)
        await store.close()
        shift(monkeypatch, days)
        store = open_store()
        await store.flush()  # retention has run
        stored = await store.sessions.find_by_key_hash(b"key")
        assert stored is not None
        assert {call.request_key: call.state for call in stored.calls} == {
            "done": "done",
            "acknowledged": "expired",
            "local": "done",
        }
        assert all(abs(time.time() - call.at) < 600 for call in stored.calls)
        for key in ("done", "acknowledged"):
            assert not await store.journal.start(call.starts(key))
    await store.close()


async def test_the_clock_stands_still_between_two_runs(open_store: Callable[..., Store], database: Path) -> None:
    """It continues from the time at which the store was closed; in a new database it begins with the system's."""
    began = time.time()
    store = open_store()
    await store.flush()
    await store.close()
    ended = time.time()
    with closing(open_database(database)) as connection:
        (saved,) = connection.execute("SELECT at FROM store_clock").fetchone()
        assert began - 1 <= saved <= ended + 1
        connection.execute("UPDATE store_clock SET at = 1000.0")
        clock = store_clock_sql.load(connection)
        assert 1000.0 <= clock.now() < 1600.0


def test_the_clock_is_never_behind_the_journal(database: Path) -> None:
    """After a crash, and in the database of an older version, it continues from the latest stored time."""
    with closing(open_database(database)) as connection:
        for number, (state, ended_at) in enumerate([("done", 50.0), ("expired", 70.0), ("interrupted", 60.0)]):
            connection.execute(
                "INSERT INTO journal (session_id, request_key, principal, tool, echo_id, arguments_hash, local, state,"
                " started_at, ended_at) VALUES ('s', ?, 'p', 't', 0, x'', 0, ?, 0, ?)",
                (str(number), state, ended_at),
            )
        assert 70.0 <= store_clock_sql.load(connection).now() < 670.0
        connection.execute("INSERT INTO store_clock VALUES (1, 80.0)")
        assert 80.0 <= store_clock_sql.load(connection).now() < 680.0


def test_ids_expire_after_a_week_of_running(database: Path) -> None:
    """The clock counts only the time during which a daemon runs."""
    with closing(open_database(database)) as connection:
        connection.execute(
            "INSERT INTO journal (session_id, request_key, principal, tool, echo_id, arguments_hash, local, state,"
            " started_at, ended_at) VALUES ('s', '1', 'p', 't', 0, x'', 0, 'expired', 0, 1000.0)"
        )
        for start, left in ((1000.0 + ID_TTL_S - 600, 1), (1000.0 + ID_TTL_S + 1, 0)):
            journal_sql.delete_expired(connection, StoreClock(start).now(), result_ttl_s=DAY)
            assert connection.execute("SELECT count(*) FROM journal").fetchone() == (left,)


def test_times_are_converted_by_their_age() -> None:
    """A Unix time an hour ago is an hour ago by the store's clock, and vice versa."""
    clock = StoreClock(5000.0)
    hour_ago = time.time() - 3600
    assert clock.now() - clock.stored_time(hour_ago) == pytest.approx(3600, abs=1)
    assert clock.unix_time(clock.stored_time(hour_ago)) == pytest.approx(hour_ago, abs=1)
