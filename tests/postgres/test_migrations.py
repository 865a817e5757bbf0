"""The audit's tables on a real PostgreSQL: permissions, constraints, merging and retention."""

from typing import Any

import pytest

TABLES = (
    "toold_calls",
    "toold_provider_calls",
    "toold_sessions",
    "toold_checkpoints",
    "toold_conversations",
    "toold_messages",
)

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
CHECKPOINT = """
INSERT INTO toold_checkpoints (id, chain, number, kind, first_seq, last_seq, calls, since, until, mac_before, mac_after)
VALUES ('{id}', 'none', 1, 'gap', 1, 0, NULL, {at}, {at}, '', '')
"""
CONVERSATION = """
INSERT INTO toold_conversations (id, principal, session_id, started_at, last_message_at)
VALUES ('{id}', 'local', 's', {at}, {at})
"""
MESSAGE = """
INSERT INTO toold_messages (id, conversation_id, position, principal, role, content, created_at)
VALUES ('{id}', '{id}', 0, 'local', 'user', '"Hello"', {at})
"""
CHAINED = """
INSERT INTO toold_calls (id, chain, seq, mac, started_at, received_at, transport, principal, session_id, session_label,
    client, request_id, tool, outcome, executed, arguments_bytes, result_bytes, latency_ms, queue_ms, tool_ms,
    provider_ms)
SELECT '{chain}-' || seq, '{chain}', seq, lpad(to_hex(seq), 64, '0'), now() - age, now() - age, 'websocket', 'local',
    's', 'label', 'tests', '"1"', 'echo', 'ok', 'yes', 0, 0, 1, 0, 0, 0
FROM (VALUES {ages}) AS given (seq, age)
"""


def fill(database: Any, name: str, at: str = "now()") -> None:
    """Insert one row into each table."""
    statements = (CALL, PROVIDER_CALL, SESSION, CHECKPOINT, CONVERSATION, MESSAGE)
    database.sql(";".join(statement.format(id=name, at=at) for statement in statements))


def chain(database: Any, name: str, *ages: str) -> None:
    """Insert a chain of calls with the given ages."""
    value = ", ".join(f"({seq}, interval '{age}')" for seq, age in enumerate(ages, 1))
    database.sql(CHAINED.format(chain=name, ages=value))


def counts(database: Any) -> list[int]:
    request = ";".join(f"SELECT count(*) FROM {table}" for table in TABLES)  # noqa: S608 - our own names
    return [int(line) for line in database.sql(request).splitlines()]


def test_repeated_migration_changes_nothing(database: Any) -> None:
    """The migrations can run twice: rows and permissions stay."""
    fill(database, "a")
    database.migrate()
    assert counts(database) == [1] * len(TABLES)
    with pytest.raises(AssertionError, match="permission denied"):
        database.sql("SELECT * FROM toold_calls", role="anon")


def test_missing_columns_are_added_to_existing_tables(database: Any) -> None:
    """A migration adds missing columns to a table that an earlier migration created."""
    database.sql("ALTER TABLE toold_baseline_runs DROP COLUMN contention, DROP COLUMN paired_run")
    database.migrate()
    assert database.sql("SELECT count(contention) + count(paired_run) FROM toold_baseline_runs WHERE false") == "0"


def test_child_row_has_its_parent_id(database: Any) -> None:
    """The parent's id is derived from the child's id, for ids as long as those of nested calls."""
    ids = ("e-1", "e-1/step", "e-1/step/a.0#2", "e-2/" + "/".join(["x" * 80] * 4))
    database.sql(";".join(CALL.format(id=call_id, at="now()") for call_id in ids))
    database.sql(PROVIDER_CALL.format(id=ids[3], at="now()"))
    reported = database.sql("SELECT coalesce(parent_id, '-') FROM toold_calls ORDER BY id").splitlines()
    assert reported == ["-", "e-1", "e-1/step", ids[3].rpartition("/")[0]]


@pytest.mark.parametrize("role", ["anon", "authenticated"])
@pytest.mark.parametrize("table", TABLES)
def test_public_roles_have_no_permissions(database: Any, role: str, table: str) -> None:
    """The anon and authenticated roles can read, insert, update and delete no row."""
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
    assert counts(database) == [1] * len(TABLES)


@pytest.mark.parametrize("table", TABLES)
def test_row_level_security_protects_granted_tables(database: Any, table: str) -> None:
    """If the tables are granted to the public roles again, these still read and write no row."""
    fill(database, "a")
    database.sql(f"GRANT ALL ON {table} TO anon")
    assert database.sql(f"SELECT count(*) FROM {table}", role="anon") == "0"  # noqa: S608 - our own names
    if table == "toold_calls":
        with pytest.raises(AssertionError, match="row-level security"):
            database.sql(CALL.format(id="b", at="now()"), role="anon")


def test_service_role_has_permissions(database: Any) -> None:
    """The daemon's role can read, write and run the retention."""
    for statement in (CALL, PROVIDER_CALL, SESSION, CHECKPOINT, CONVERSATION, MESSAGE):
        database.sql(statement.format(id="a", at="now()"), role="service_role")
    assert database.sql("SELECT id FROM toold_calls", role="service_role") == "a"
    assert database.sql("SELECT toold_forget(1)", role="service_role") == "0"


@pytest.mark.parametrize(
    "change", ["latency_ms = -1", "executed = 'perhaps'", "id = ''", "result_bytes = -1", "tool = NULL"]
)
def test_invalid_rows_are_refused(database: Any, change: str) -> None:
    """Constraints reject rows that no daemon writes."""
    fill(database, "a")
    with pytest.raises(AssertionError, match=r"violates (check|not-null) constraint"):
        database.sql(f"UPDATE toold_calls SET {change}")  # noqa: S608 - our own words


def test_session_times_only_widen(database: Any) -> None:
    """Batches that arrive late or twice do not narrow a session's first and last call."""
    for at in ("2026-01-02", "2026-01-03", "2026-01-01", "2026-01-02"):
        database.sql(SESSION.format(id="s", at=f"'{at}'::timestamptz"))
    assert database.sql("SELECT first_call_at::date, last_call_at::date FROM toold_sessions") == "2026-01-01|2026-01-03"


def test_conversation_merge_keeps_known_values(database: Any) -> None:
    """Batches that arrive late or twice only widen a conversation's times and keep its title, session and end."""
    upsert = """
    INSERT INTO toold_conversations (id, principal, session_id, title, started_at, last_message_at, ended_at)
    VALUES ('c', 'local', {session}, {title}, '2026-01-0{first}', '2026-01-0{last}', {ended})
    ON CONFLICT (id) DO UPDATE SET session_id = excluded.session_id, title = excluded.title,
        started_at = excluded.started_at, last_message_at = excluded.last_message_at, ended_at = excluded.ended_at
    """
    for session, title, first, last, ended in (
        ("'s-1'", "NULL", 3, 3, "NULL"),
        ("'s-2'", "'Hello'", 2, 2, "NULL"),
        ("NULL", "NULL", 3, 4, "'2026-02-02'"),
        ("'s-3'", "'Other'", 3, 3, "NULL"),
    ):
        database.sql(upsert.format(session=session, title=title, first=first, last=last, ended=ended))
    query = "SELECT session_id, title, started_at::date, last_message_at::date, ended_at::date FROM toold_conversations"
    assert database.sql(query) == "s-1|Hello|2026-01-02|2026-01-04|2026-02-02"


def test_retention_deletes_older_rows(database: Any) -> None:
    """``toold_forget`` deletes older rows of all tables, returns the number of deleted rows, and keeps newer rows
    and checkpoints."""
    fill(database, "old", "now() - interval '91 days'")
    fill(database, "new", "now() - interval '89 days'")
    assert database.sql("SELECT toold_forget(90)") == "5"
    for table in TABLES:
        stored = "new\nold" if table == "toold_checkpoints" else "new"
        assert database.sql(f"SELECT id FROM {table} ORDER BY id") == stored  # noqa: S608 - our own names


def test_chain_retention_deletes_from_the_beginning(database: Any) -> None:
    """Retention deletes the calls of a chain before the first one that stays, and records the new beginning in a
    checkpoint."""
    chain(database, "a", "99 days", "98 days", "80 days", "97 days", "1 day")
    chain(database, "b", "1 day", "99 days")
    chain(database, "c", "99 days")
    database.sql(PROVIDER_CALL.format(id="a-1", at="now()"))
    database.sql("UPDATE toold_provider_calls SET chain = 'a', seq = 1")
    assert database.sql("SELECT toold_forget(90)") == "4"
    assert database.sql("SELECT id FROM toold_calls ORDER BY id") == "a-3\na-4\na-5\nb-1\nb-2"
    query = "SELECT id, kind, last_seq, calls, right(mac_after, 1), mac FROM toold_checkpoints ORDER BY id"
    assert database.sql(query) == "a-forgotten|forgotten|2|2|2|\nc-forgotten|forgotten|1|1|1|"
    database.sql("UPDATE toold_calls SET started_at = now() - interval '91 days' WHERE id = 'a-3'")
    assert database.sql("SELECT toold_forget(90)") == "2"
    assert database.sql(query).splitlines()[0] == "a-forgotten|forgotten|4|4|4|"


def test_calls_with_future_times_expire(database: Any) -> None:
    """A call with a time in the future is as old as its row."""
    chain(database, "a", "99 days", "98 days")
    database.sql("UPDATE toold_calls SET started_at = '2099-01-01' WHERE seq = 1")
    assert database.sql("SELECT toold_forget(90)") == "2"


@pytest.mark.parametrize("days", ["0", "-1", "NULL"])
def test_retention_of_less_than_a_day_is_refused(database: Any, days: str) -> None:
    """An invalid number of days deletes no rows."""
    with pytest.raises(AssertionError, match="keep_days must be 1 or more"):
        database.sql(f"SELECT toold_forget({days})")


def test_common_queries_use_an_index(database: Any) -> None:
    """Common queries are answered from an index, newest first, without sorting."""
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
        "toold_calls WHERE chain = 'c' AND seq > 9 ORDER BY seq, id": "toold_calls_by_chain",
        "toold_checkpoints WHERE chain = 'c' ORDER BY number": "toold_checkpoints_by_chain",
        "toold_conversations WHERE principal = 'p' ORDER BY last_message_at DESC": "toold_conversations_by_principal",
        "toold_messages WHERE conversation_id = 'c' ORDER BY position": "toold_messages_by_conversation",
    }
    # An empty table is scanned and sorted at no cost, so the planner must not choose this plan here.
    query = "SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off;"
    for question in questions:
        query += f"EXPLAIN (FORMAT JSON) SELECT * FROM {question} LIMIT 10; SELECT '---';"  # noqa: S608 - our own words
    for (question, index), plan in zip(questions.items(), database.sql(query).split("---"), strict=False):
        assert index in plan, question
        assert "Sort" not in plan, question
