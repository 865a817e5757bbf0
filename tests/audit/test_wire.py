"""From calls to Supabase's rows: which tables, which columns, merged by session."""

import re
from datetime import datetime
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from toold.audit.wire import Record, records
from toold.store import CallRow

MIGRATIONS = Path(__file__).parents[2] / "supabase/migrations"


def call(**fields: object) -> CallRow:
    plain: dict[str, object] = {
        "id": "call-1",
        "started_at": 1_800_000_000.5,
        "transport": "websocket",
        "principal": "local",
        "session_id": "s-1",
        "session_label": "baseline-1",
        "client": "tests 1",
        "request_id": '"1"',
        "tool": "echo",
        "outcome": "ok",
        "latency_ms": 1.5,
    }
    return CallRow(**plain | fields)  # type: ignore[arg-type] # of the test's choosing


def test_each_column_is_the_tables() -> None:
    """The rows have the columns of the migrations' tables, all but the time of arrival."""
    sql = "".join(path.read_text(encoding="utf-8") for path in MIGRATIONS.glob("*.sql"))
    for table, rows in records([call(provider="kimi")]).items():
        body = re.search(rf"create table if not exists public\.{table} \((.+?)\n\);", sql, re.DOTALL)
        assert body, table
        columns = set(re.findall(r"^    (\w+) ", body[1], re.MULTILINE))
        assert set(rows[0]) == columns - {"received_at"}


def test_only_calls_of_a_vendor_make_provider_calls() -> None:
    """A call that asked nobody has no row among the provider calls."""
    made = records([call(id="a"), call(id="b", provider="glm", model="glm-4.6", input_tokens=3, provider_ms=7.0)])
    assert [row["id"] for row in made["toold_calls"]] == ["a", "b"]
    (asked,) = made["toold_provider_calls"]
    assert (asked["call_id"], asked["model"], asked["input_tokens"], asked["latency_ms"]) == ("b", "glm-4.6", 3, 7.0)


def test_no_calls_make_no_rows() -> None:
    """Of nothing nothing is written."""
    assert records([]) == {"toold_sessions": [], "toold_calls": [], "toold_provider_calls": []}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(1e9, 2e9)), max_size=20))
def test_a_session_stands_once_with_its_first_and_last_call(made: list[tuple[str, float]]) -> None:
    """Whatever the order of its calls, a session is one row, from its earliest to its latest call."""
    sessions = records(call(session_id=name, started_at=at) for name, at in made)["toold_sessions"]
    assert sorted(row["id"] for row in sessions) == sorted({name for name, _ in made})
    for row in sessions:
        times = [at for name, at in made if name == row["id"]]
        assert (unix(row, "first_call_at"), unix(row, "last_call_at")) == (round(min(times), 6), round(max(times), 6))


def unix(row: Record, column: str) -> float:
    return round(datetime.fromisoformat(row[column]).timestamp(), 6)


TEXT = st.text(st.sampled_from("\0a\N{REPLACEMENT CHARACTER}"))


@given(st.recursive(TEXT | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner)))
def test_no_nul_character_is_left(arguments: object) -> None:
    """In no name, item or text of any depth."""
    made = records([call(arguments=arguments, tool="a\0", message="\0", session_id="\0", session_label="\0")])
    assert "\\x00" not in repr(made)
    assert made["toold_calls"][0]["session_id"] == made["toold_sessions"][0]["id"]
