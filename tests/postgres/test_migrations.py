"""The audit's tables on a real PostgreSQL: who may do what, what is taken once, what retention removes."""

from typing import Any

import pytest

TABLES = ("toold_calls", "toold_provider_calls", "toold_sessions")

CALL = """
INSERT INTO toold_calls (id, started_at, transport, principal, session_id, session_label, client, request_id, tool,
    outcome, executed, arguments_bytes, result_bytes, latency_ms, queue_ms, tool_ms, provider_ms)
VALUES ('{id}', {at}, 'websocket', 'local', 's', 'label', 'tests', '"1"', 'echo', 'ok', 'yes', 0, 0, 1, 0, 0, 0)
"""
PROVIDER_CALL = """
INSERT INTO toold_provider_calls (id, call_id, started_at, principal, provider, model, simulated, outcome, latency_ms,
    input_tokens, output_tokens)
VALUES ('{id}', '{id}', {at}, 'local', 'kimi', 'kimi-k2', false, 'ok', 1, 1, 1)
"""
SESSION = """
INSERT INTO toold_sessions (id, principal, label, client, transport, first_call_at, last_call_at)
VALUES ('{id}', 'local', 'label', 'tests', 'websocket', {at}, {at})
ON CONFLICT (id) DO UPDATE SET first_call_at = excluded.first_call_at, last_call_at = excluded.last_call_at
"""


def fill(database: Any, name: str, at: str = "now()") -> None:
    """One row in each table."""
    database.sql(";".join(statement.format(id=name, at=at) for statement in (CALL, PROVIDER_CALL, SESSION)))


def counts(database: Any) -> list[int]:
    asked = ";".join(f"SELECT count(*) FROM {table}" for table in TABLES)  # noqa: S608 - our own names
    return [int(line) for line in database.sql(asked).splitlines()]


def test_applying_again_changes_nothing(database: Any) -> None:
    """The migrations may run twice: the rows stay, and so do the rules."""
    fill(database, "a")
    database.migrate()
    assert counts(database) == [1, 1, 1]
    with pytest.raises(AssertionError, match="permission denied"):
        database.sql("SELECT * FROM toold_calls", role="anon")


@pytest.mark.parametrize("role", ["anon", "authenticated"])
@pytest.mark.parametrize("table", TABLES)
def test_the_public_roles_may_do_nothing(database: Any, role: str, table: str) -> None:
    """With the anon key, or signed in, no row is read, written, changed or removed."""
    fill(database, "a")
    for statement in (
        f"SELECT * FROM {table}",  # noqa: S608 - our own names
        f"INSERT INTO {table} (id) VALUES ('b')",  # noqa: S608 - as above
        f"UPDATE {table} SET id = 'b'",  # noqa: S608 - as above
        f"DELETE FROM {table}",  # noqa: S608 - as above
        f"TRUNCATE {table}",
        "SELECT toold_forget(1)",
    ):
        with pytest.raises(AssertionError, match="permission denied"):
            database.sql(statement, role=role)
    assert counts(database) == [1, 1, 1]


@pytest.mark.parametrize("table", TABLES)
def test_row_level_security_holds_without_the_grants(database: Any, table: str) -> None:
    """Should somebody grant the tables to the public roles again, they still see and write no row."""
    fill(database, "a")
    database.sql(f"GRANT ALL ON {table} TO anon")
    assert database.sql(f"SELECT count(*) FROM {table}", role="anon") == "0"  # noqa: S608 - our own names
    if table == "toold_calls":
        with pytest.raises(AssertionError, match="row-level security"):
            database.sql(CALL.format(id="b", at="now()"), role="anon")


def test_the_service_role_may(database: Any) -> None:
    """The daemon's role reads, writes and runs the retention."""
    for statement in (CALL, PROVIDER_CALL, SESSION):
        database.sql(statement.format(id="a", at="now()"), role="service_role")
    assert database.sql("SELECT id FROM toold_calls", role="service_role") == "a"
    assert database.sql("SELECT toold_forget(1)", role="service_role") == "0"


@pytest.mark.parametrize(
    "change", ["latency_ms = -1", "executed = 'perhaps'", "id = ''", "result_bytes = -1", "tool = NULL"]
)
def test_what_cannot_be_is_refused(database: Any, change: str) -> None:
    """Constraints hold off rows that no daemon could have meant."""
    fill(database, "a")
    with pytest.raises(AssertionError, match=r"violates (check|not-null) constraint"):
        database.sql(f"UPDATE toold_calls SET {change}")  # noqa: S608 - our own words


def test_a_sessions_times_only_widen(database: Any) -> None:
    """Whichever batch comes last or twice, the first and the last call of a session stay what they were."""
    for at in ("2026-01-02", "2026-01-03", "2026-01-01", "2026-01-02"):
        database.sql(SESSION.format(id="s", at=f"'{at}'::timestamptz"))
    assert database.sql("SELECT first_call_at::date, last_call_at::date FROM toold_sessions") == "2026-01-01|2026-01-03"


def test_retention_removes_what_is_older(database: Any) -> None:
    """``toold_forget`` removes the rows of all tables that are older, returns how many, and leaves the others."""
    fill(database, "old", "now() - interval '91 days'")
    fill(database, "new", "now() - interval '89 days'")
    assert database.sql("SELECT toold_forget(90)") == "3"
    assert database.sql("SELECT id FROM toold_calls UNION ALL SELECT id FROM toold_sessions") == "new\nnew"
    assert counts(database) == [1, 1, 1]


@pytest.mark.parametrize("days", ["0", "-1", "NULL"])
def test_retention_of_no_days_is_refused(database: Any, days: str) -> None:
    """A slip cannot empty the tables."""
    with pytest.raises(AssertionError, match="keep_days must be 1 or more"):
        database.sql(f"SELECT toold_forget({days})")


def test_questions_have_their_index(database: Any) -> None:
    """What people ask is answered from an index, newest first, without sorting."""
    questions = {
        "toold_calls ORDER BY started_at DESC": "toold_calls_by_time",
        "toold_calls WHERE principal = 'p' ORDER BY started_at DESC": "toold_calls_by_principal",
        "toold_calls WHERE tool = 't' ORDER BY started_at DESC": "toold_calls_by_tool",
        "toold_calls WHERE outcome = 'TIMEOUT' ORDER BY started_at DESC": "toold_calls_by_outcome",
        "toold_calls WHERE session_id = 's' ORDER BY started_at DESC": "toold_calls_by_session",
        "toold_provider_calls WHERE model = 'm' ORDER BY started_at DESC": "toold_provider_calls_by_model",
        "toold_provider_calls WHERE principal = 'p' ORDER BY started_at DESC": "toold_provider_calls_by_principal",
        "toold_provider_calls WHERE call_id = 'c'": "toold_provider_calls_by_call",
        "toold_sessions WHERE principal = 'p' ORDER BY last_call_at DESC": "toold_sessions_by_principal",
    }
    # An empty table is read whole and sorted at no cost: the planner must not take that way here.
    asked = "SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off;"
    for question in questions:
        asked += f"EXPLAIN (FORMAT JSON) SELECT * FROM {question} LIMIT 10; SELECT '---';"  # noqa: S608 - our own words
    for (question, index), plan in zip(questions.items(), database.sql(asked).split("---"), strict=False):
        assert index in plan, question
        assert "Sort" not in plan, question
