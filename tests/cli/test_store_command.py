"""``toold store``: migrating and copying, and the audit commands on the database of several nodes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from toold.daemon.persistence.state_directory import StateDirectory
from toold.sources.pin_storage import PinFiles, encode_pins
from toold.sources.tool_pins import ToolPin
from toold.sources.upstream_definition import UpstreamDefinition
from toold.store import CallRow, Retention, open_sqlite_store
from toold.store.postgres.pg_schema import POSTGRES_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cli.conftest import Run
    from tests.postgres_cluster import Cluster

pytestmark = pytest.mark.process


@pytest.fixture
def address(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an empty database, which is the setting ``store``."""
    cluster.sql("CREATE DATABASE of_commands")
    address = cluster.uri("of_commands", "postgres")
    monkeypatch.setenv("TOOLD_STORE", address)
    monkeypatch.setenv("TOOLD_CLUSTER_SECRET", "a-secret-of-the-tests-that-is-long-enough")
    yield address
    cluster.sql("DROP DATABASE of_commands WITH (FORCE)")


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


def test_a_migration_is_made_once(run: Run, bare_environment: Path, address: str, cluster: Cluster) -> None:
    """The first one creates the tables, the second one finds nothing to do, and a newer schema is refused."""
    assert run("audit", "tail").exit_code == 1
    assert run("store", "migrate").stdout == f"migrated from schema 0 to schema {POSTGRES_SCHEMA}\n"
    assert run("store", "migrate", address).stdout == f"schema {POSTGRES_SCHEMA}: nothing to do\n"
    cluster.sql("UPDATE toold.store SET version = 99, readable_from = 99", database="of_commands")
    refused = run("store", "migrate")
    assert (refused.exit_code, "install the newer toold" in refused.stderr) == (1, True)


def test_a_copy_and_back(run: Run, kept: Path, address: str, cluster: Cluster) -> None:
    """The rows are in the database, where the audit commands find them, and come back to a new file. So do the pins."""
    run("store", "migrate")
    pins = PinFiles(kept / "pins")
    pins.write("crm", encode_pins({"a": ToolPin("a", UpstreamDefinition("a"))}))
    content = (kept / "pins" / "crm.json").read_bytes()
    copied = run("store", "copy", "--from-sqlite")
    assert (copied.exit_code, "  call: 3\n" in copied.stdout) == (0, True), copied.stderr
    verified = run("audit", "verify")
    assert verified.exit_code == 0
    assert verified.stdout.startswith("intact: ")
    assert ", chain 0, 3 calls from 1 to 3 are unchanged\n" in verified.stdout
    assert [json.loads(line)["id"] for line in run("audit", "tail", "--json").stdout.splitlines()] == ["a", "b", "c"]
    exported = [json.loads(line) for line in run("audit", "export", "--json").stdout.splitlines()]
    assert [(row["chain"], row["seq"], row["id"]) for row in exported] == [(0, 1, "a"), (0, 2, "b"), (0, 3, "c")]
    assert "exists: move it away" in run("store", "copy", "--to-sqlite").stderr
    (kept / "toold.db").rename(kept / "old.db")
    pins.write("crm", encode_pins({}))
    assert "crm.json has other pins: move it away" in run("store", "copy", "--to-sqlite").stderr
    assert not (kept / "toold.db").exists()
    (kept / "pins" / "crm.json").unlink()
    assert run("store", "copy", "--to-sqlite").exit_code == 0
    assert (kept / "pins" / "crm.json").read_bytes() == content
    cluster.sql("UPDATE toold.call SET tool = 'chat' WHERE id = 'b'", database="of_commands")
    broken = json.loads(run("audit", "verify", "--json").stdout)
    assert [(chain["number"], chain["broken"]) for chain in broken["chains"]] == [(0, 1)]
    cluster.sql("DROP TRIGGER journal_kept_delete ON toold.journal", database="of_commands")
    assert "the trigger 'journal.journal_kept_delete' of the schema is missing" in run("audit", "verify").stdout
    (kept / "toold.db").unlink()
    assert "the audit trail of the source is broken" in run("store", "copy", "--to-sqlite").stderr


def test_a_copy_needs_a_stopped_daemon(run: Run, kept: Path, address: str) -> None:
    """It is refused while a daemon has the state directory, and says what is missing."""
    run("store", "migrate")
    with StateDirectory(kept):
        refused = run("store", "copy", "--from-sqlite")
    assert (refused.exit_code, "already runs" in refused.stderr) == (1, True)
    assert run("store", "copy").exit_code == 2


def test_the_setting_is_needed(run: Run, kept: Path) -> None:
    """Without the setting there is no database to migrate or to copy to."""
    for command in (("store", "migrate"), ("store", "copy", "--from-sqlite")):
        result = run(*command)
        assert (result.exit_code, "TOOLD_STORE=postgresql://" in result.stderr) == (2, True)
