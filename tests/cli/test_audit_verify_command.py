"""``toold audit verify``: an intact and a broken trail, as text and as JSON, locally and in Supabase."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import msgspec
import pytest
from toold.cli.status_command import when
from toold.daemon.persistence.state_directory import StateDirectory
from toold.store import CallRow, ChainSigner, Checkpoint, Retention, open_sqlite_store
from toold.store.sqlite import chain_checkpoints

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Run


@pytest.fixture
async def kept(bare_environment: Path, row: Callable[..., CallRow]) -> Path:
    """The state directory of a daemon that has ended, with three calls."""
    with StateDirectory(bare_environment) as state:
        key = state.load_or_create_audit_key()
        store = open_sqlite_store(state.database, content=json.dumps, retention=Retention(), key=key)
        for name in "abc":
            store.audit.record(row(id=name))
        await store.close()
    return bare_environment


def tamper(directory: Path, statement: str) -> None:
    with closing(sqlite3.connect(directory / "toold.db")) as connection, connection:
        connection.execute(statement)


def test_an_intact_trail(run: Run, kept: Path) -> None:
    """Exit code 0, how many calls were checked, and what the checkpoints mean."""
    result = run("audit", "verify")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"intact: {kept / 'toold.db'}, 3 calls from 1 to 3 are unchanged\n")
    assert "began       1       0      start of the chain" in result.stdout


@pytest.mark.parametrize(
    ("statement", "reported"),
    [
        ("CREATE TRIGGER spy AFTER INSERT ON call BEGIN DELETE FROM call_total; END", "added: the trigger 'spy'"),
        ("CREATE VIEW seen AS SELECT 1", "added: the view 'seen'"),
        ("DROP INDEX call_started_at", "missing: the index 'call_started_at'"),
        ("ALTER TABLE call ADD COLUMN note TEXT", "changed: the table 'call'"),
    ],
)
def test_a_changed_definition_breaks_the_trail(run: Run, kept: Path, statement: str, reported: str) -> None:
    """A definition that is not part of the schema, such as a trigger, is a problem, even if no row has changed."""
    tamper(kept, statement)
    result = run("audit", "verify")
    assert result.exit_code == 1
    assert "BROKEN in one place" in result.stdout
    assert "3 calls from 1 to 3 are unchanged" in result.stdout
    assert reported in result.stdout


def test_a_broken_trail(run: Run, kept: Path) -> None:
    """Exit code 1, and each place with the call and what is wrong with it."""
    tamper(kept, "UPDATE call SET tool = 'x' WHERE seq = 2")
    tamper(kept, "DELETE FROM call WHERE seq = 3")
    result = run("audit", "verify")
    lines = result.stdout.splitlines()
    assert result.exit_code == 1
    assert lines[0].startswith("BROKEN in 2 places: ")
    assert lines[1:3] == [
        "  2 (call b): changed: the row differs from what was written",
        "  3: missing: no checkpoint explains why",
    ]


def test_gaps_are_shown_with_their_time(run: Run, kept: Path) -> None:
    """A daemon that did not shut down cleanly: the number of missing calls is unknown."""
    key = bytes.fromhex((kept / "audit.key").read_text())
    signer, at = ChainSigner(key), 1.7e9
    with closing(sqlite3.connect(kept / "toold.db")) as connection, connection:
        head = chain_checkpoints.head(connection)
        assert head
        for number in range(2, 14):
            gap = Checkpoint(
                number=number, kind="gap", first_seq=4, last_seq=3, calls=None, since=at + number, until=at + number,
                before=head.last_mac, after=head.last_mac,
            )  # fmt: skip
            chain_checkpoints.write_checkpoint(connection, signer.checkpoint(gap))
        chain_checkpoints.write_head(connection, signer.head(msgspec.structs.replace(head, checkpoints=13)))
    lines = run("audit", "verify").stdout.splitlines()
    assert [line.split()[:3] for line in lines if line.startswith("gap  ")] == [["gap", "12", "unknown"]]
    last = when(at + 13)
    assert lines[-1] == f"gap after call 3, between {last} and {last}"
    assert [line for line in lines if "earlier gaps" in line] == ["… 2 earlier gaps"]
    assert sum(line.startswith("gap after") for line in lines) == 10
    shown = json.loads(run("audit", "verify", "--json").stdout)
    assert (shown["intact"], shown["checkpoints"]["gap"]) == (True, {"checkpoints": 12, "calls": None})
    assert (len(shown["gaps"]), shown["gaps"][0]) == (12, {"after_seq": 3, "since": at + 2, "until": at + 2})


def test_for_programs(run: Run, kept: Path) -> None:
    """``--json`` prints the same findings as one object."""
    shown = json.loads(run("audit", "verify", "--json").stdout)
    assert (shown["intact"], shown["checked"], shown["problems"]) == (True, 3, [])
    tamper(kept, "UPDATE call SET tool = 'x' WHERE seq = 2")
    result = run("audit", "verify", "--json")
    shown = json.loads(result.stdout)
    assert (result.exit_code, shown["intact"], shown["broken"]) == (1, False, 1)
    assert (shown["problems"][0]["first_seq"], shown["problems"][0]["call"]) == (2, "b")


def test_many_problems_are_summarized(run: Run, kept: Path) -> None:
    """The first problems, and the number of the others."""
    with closing(sqlite3.connect(kept / "toold.db")) as connection, connection:
        columns = "".join(f", {name}" for name in CallRow.__struct_fields__)
        for seq in range(4, 40):
            connection.execute(f"INSERT INTO call (seq{columns}) SELECT {seq}{columns} FROM call WHERE seq = 1")  # noqa: S608 - our own names
    result = run("audit", "verify")
    assert result.stdout.startswith("BROKEN in 36 places")
    assert "  … and 16 more" in result.stdout.splitlines()


def test_a_missing_key_is_reported(run: Run, kept: Path) -> None:
    """The message has the path and says what creates a key; it calls the trail neither intact nor broken."""
    (kept / "audit.key").unlink()
    result = run("audit", "verify")
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"there is no key at {kept / 'audit.key'}" in result.stderr


def test_another_key_is_reported(run: Run, kept: Path) -> None:
    """Rows that cannot be checked are not reported as broken."""
    (kept / "audit.key").write_text("ab" * 32)
    result = run("audit", "verify")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "restore its key" in result.stderr


def test_remote_needs_its_settings(run: Run, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong command line, with the variables that it needs."""
    for name in ("SUPABASE_URL", "SUPABASE_SERVICE_ROLE_KEY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(f"TOOLD_{name}", raising=False)
    result = run("audit", "verify", "--remote")
    assert result.exit_code == 2
    assert "TOOLD_SUPABASE_SERVICE_ROLE_KEY" in result.stderr


def test_an_unreachable_supabase(run: Run, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 3: nothing is known, which is not the same as broken."""
    monkeypatch.setenv("TOOLD_SUPABASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("TOOLD_SUPABASE_SERVICE_ROLE_KEY", "sb_secret_for_the_tests")
    result = run("audit", "verify", "--remote")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "Supabase cannot be read: no answer" in result.stderr
