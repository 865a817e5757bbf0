"""``toold audit``: the calls of the local database as tables, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.forked_daemons import fork_toold
from toold.store import CallRow, Retention, open_sqlite_store

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Run


@pytest.fixture
async def kept(bare_environment: Path, row: Callable[..., CallRow], audit_key: bytes) -> list[CallRow]:
    """Three calls in the state directory's database, whose daemon has ended."""
    bare_environment.mkdir()
    rows = [
        row(id="old", started_at=time.time() - 5 * 86400),
        row(id="failed", outcome="VALIDATION_ERROR", message='it said "no",\nthen went', arguments={"text": "str[3]"}),
        row(
            id="asked", latency_ms=12.4,
            tool="chat", model="kimi-k2", provider="kimi", input_tokens=3, output_tokens=4, cost_amount=0.5,
            cost_currency="USD",
        ),
    ]  # fmt: skip
    store = open_sqlite_store(bare_environment / "toold.db", content=json.dumps, retention=Retention(), key=audit_key)
    for one in rows:
        store.audit.record(one)
    await store.close()
    return rows


def test_tail_shows_the_last_calls(run: Run, kept: list[CallRow]) -> None:
    """The requested number of calls, one per line, the newest at the bottom."""
    result = run("audit", "tail", "-n", "2")
    lines = [line.split() for line in result.stdout.splitlines()]
    assert result.exit_code == 0
    assert [line[4:6] for line in lines[1:]] == [["echo", "VALIDATION_ERROR"], ["chat", "ok"]]
    assert lines[2][6:] == ["12", "ms", "kimi-k2", "7", "0.5", "USD"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("options", [("tail",), ("export",), ("export", "--json")])
@pytest.mark.process
def test_a_full_disk_is_reported_in_one_line(kept: list[CallRow], options: tuple[str, ...], tmp_path: Path) -> None:
    """A write error is reported with exit code 1 and without a traceback."""
    full, errors = Path("/dev/full"), tmp_path / "errors"
    ended = fork_toold(("audit", *options), env=os.environ, cwd=tmp_path, stdout=full, stderr=errors)
    assert ended.wait() == 1
    assert errors.read_text("utf-8") == "toold: cannot write the output: No space left on device\n"


def test_tail_as_json(run: Run, kept: list[CallRow]) -> None:
    """``--json`` has every column, one object per line."""
    lines = run("audit", "tail", "--json").stdout.splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["old", "failed", "asked"]
    assert set(json.loads(lines[0])) == set(CallRow.__struct_fields__)


def test_export_is_csv(run: Run, kept: list[CallRow]) -> None:
    """All calls with all columns, the oldest first; quotes and line ends in texts survive."""
    rows = list(csv.DictReader(io.StringIO(run("audit", "export").stdout)))
    assert [row["id"] for row in rows] == ["old", "failed", "asked"]
    assert rows[1]["message"] == kept[1].message
    assert (rows[1]["arguments"], rows[1]["cost_amount"]) == ('{"text":"str[3]"}', "")


@pytest.mark.parametrize("as_json", [True, False], ids=["json", "csv"])
def test_export_has_all_columns(run: Run, kept: list[CallRow], bare_environment: Path, *, as_json: bool) -> None:
    """Including the row's number and key hash, which identify it in other copies."""
    with closing(sqlite3.connect(bare_environment / "toold.db")) as connection:
        connection.execute("UPDATE call SET mac = NULL WHERE seq = 1")
        connection.commit()
        columns = [name for _, name, *_ in connection.execute("PRAGMA table_info(call)")]
        chain = connection.execute("SELECT seq, lower(hex(mac)) FROM call ORDER BY seq").fetchall()
    if as_json:
        rows = [json.loads(line) for line in run("audit", "export", "--json").stdout.splitlines()]
    else:
        rows = list(csv.DictReader(io.StringIO(run("audit", "export").stdout)))
    assert list(rows[0]) == [*columns, "chain"]
    assert {int(row["chain"]) for row in rows} == {0}
    assert [(int(row["seq"]), row["mac"] or "") for row in rows] == chain
    assert rows[0]["mac"] == (None if as_json else "")


def test_export_of_some_days(run: Run, kept: list[CallRow]) -> None:
    """``--days`` leaves out what is older; ``--json`` gives objects."""
    lines = run("audit", "export", "--days", "2", "--json").stdout.splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["failed", "asked"]


def test_stats_are_the_totals(run: Run, kept: list[CallRow]) -> None:
    """Totals by tool, model and outcome; ``--json`` has the same data."""
    shown = [" ".join(line.split()) for line in run("audit", "stats").stdout.splitlines()]
    assert "all calls 3 1 3 4 0.5 USD" in shown
    assert "model kimi-k2 1 0 3 4 0.5 USD" in shown
    assert "VALIDATION_ERROR 1" in shown
    assert json.loads(run("audit", "stats", "--json").stdout)["all"]["calls"] == 3


@pytest.mark.parametrize("what", ["tail", "export", "stats"])
def test_a_missing_database_is_reported(run: Run, bare_environment: Path, what: str) -> None:
    """Exit code 1; the message has the path, and says what creates the database."""
    result = run("audit", what)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"no database at {bare_environment / 'toold.db'}" in result.stderr
