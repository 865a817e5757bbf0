"""The chain in a real Supabase: rows that are read back have the same MACs, and every change is reported."""

import asyncio
import contextlib
import json
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr
from toold.audit import AuditSender, ChainFindings, SupabaseReader, SupabaseReadError, SupabaseWriter, verify_remote
from toold.audit.supabase_rows import call_values
from toold.cli.command_line import toold
from toold.daemon.persistence.state_directory import StateDirectory
from toold.store import (
    CallRow,
    ChainedRow,
    ChainSigner,
    ChainTrail,
    Retention,
    Store,
    canonical,
    open_archive,
    open_sqlite_store,
)
from toold.store.audit_rows import audit_values

MakeRow = Callable[..., CallRow]
Told = list[tuple[str, int, int]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "toold.db"


@pytest.fixture
async def store(path: Path, audit_key: bytes) -> AsyncIterator[Store]:
    store = open_sqlite_store(path, content=json.dumps, retention=Retention(days=20_000), key=audit_key)
    yield store
    with contextlib.suppress(RuntimeError):  # some tests close the store themselves
        await store.close()


@pytest.fixture
async def reader(gateway: Any, service_key: str) -> AsyncIterator[SupabaseReader]:
    async with SupabaseReader(gateway.url, SecretStr(service_key)) as reader:
        yield reader


@pytest.fixture
def send(
    store: Store, gateway: Any, service_key: str, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], Awaitable[None]]:
    """A function that sends all unsent calls and their checkpoints."""
    monkeypatch.setattr("toold.audit.outbox_sender.PACE_S", 0.001)

    async def all_of_it() -> None:
        for _ in range(2):  # checkpoints of the first round's rows are sent in the second
            sender = AuditSender(store, lambda: SupabaseWriter(gateway.url, SecretStr(service_key), store.audit.chain))
            sender.start()
            await sender.close(60)
            await store.flush()

    return all_of_it


@pytest.fixture
def verified(path: Path, audit_key: bytes, reader: SupabaseReader) -> Callable[[], Awaitable[ChainFindings]]:
    """A function that verifies Supabase with the local database and the key."""

    def trail() -> ChainTrail:
        with open_archive(path) as archive:
            return archive.trail()

    return lambda: verify_remote(ChainSigner(audit_key), trail, reader)


def reported(findings: ChainFindings) -> Told:
    return [(problem.fault, problem.first_seq, problem.last_seq) for problem in findings.problems]


# --- round trip ------------------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NUMBER = st.floats(0, allow_nan=False, allow_infinity=False, allow_subnormal=False)
ARGUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
NOBODY: dict[str, st.SearchStrategy[Any]] = {}
ASKED = st.fixed_dictionaries(NOBODY) | st.fixed_dictionaries(
    {
        "provider": st.sampled_from(["kimi", "glm"]),
        "model": st.none() | TEXT,
        "simulated": st.booleans(),
        "input_tokens": st.integers(0, 2**63 - 1),
        "output_tokens": st.integers(0, 2**63 - 1),
        "cost_amount": st.none() | NUMBER,
        "cost_currency": st.none() | st.just("USD"),
    }
)
FIELDS = st.fixed_dictionaries(
    {
        "started_at": st.floats(0, 4e9),
        "principal": TEXT,
        "session_label": TEXT,
        "client": TEXT,
        "request_id": TEXT.map(json.dumps),
        "tool": TEXT,
        "message": st.none() | TEXT,
        "executed": st.sampled_from(["yes", "no", "maybe"]),
        "arguments": st.none() | st.dictionaries(TEXT, ARGUMENTS, max_size=3),
        "arguments_bytes": st.integers(0, 2**63 - 1),
        "latency_ms": NUMBER,
        "queue_ms": NUMBER,
        "provider_ms": NUMBER,
    }
)


def test_rows_read_back_have_the_same_bytes(gateway_url: str, service_key: str, database: Any, row: MakeRow) -> None:
    """For any row, the local row and Supabase's two rows have the same signed bytes."""

    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(st.tuples(FIELDS, ASKED), min_size=1, max_size=8))
    def holds(drawn: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
        rows = [row(id=f"call-{seq}", **fields, **item) for seq, (fields, item) in enumerate(drawn, 1)]
        local = [
            canonical(audit_values(item, None if item.arguments is None else json.dumps(item.arguments)))
            for item in rows
        ]
        assert asyncio.run(_there_and_back(gateway_url, service_key, rows)) == local
        database.sql("TRUNCATE toold_calls, toold_provider_calls")

    holds()


async def _there_and_back(url: str, key: str, result: list[CallRow]) -> list[bytes]:
    remote = await asyncio.to_thread(SupabaseWriter, url, SecretStr(key), "chain")
    await remote.write([ChainedRow(seq=seq, mac=b"m" * 32, call=item) for seq, item in enumerate(result, 1)])
    await remote.close()
    async with SupabaseReader(url, SecretStr(key)) as reader:
        return [canonical(call_values(*call)) async for call in reader.calls("chain", up_to=len(result))]


# --- verification ----------------------------------------------------------------------------------------------------


@pytest.fixture
async def sent(store: Store, send: Callable[[], Awaitable[None]], database: Any, row: MakeRow) -> None:
    """Nine calls in Supabase, the fifth of which was refused, and two calls that are not sent yet."""
    for number in range(1, 10):
        request = {"provider": "kimi", "model": "k2", "cost_amount": 0.1} if number % 2 else {}
        odd = {"latency_ms": -1.0} if number == 5 else {}
        store.audit.record(row(id=f"call-{number}", arguments={"b": 1e23, "a\0": [1.0]}, **request, **odd))
    await send()
    for number in (10, 11):
        store.audit.record(row(id=f"call-{number}"))
    await store.flush()


Verified = Callable[[], Awaitable[ChainFindings]]


@pytest.mark.usefixtures("sent")
async def test_unchanged_database_is_intact(verified: Verified) -> None:
    """Refused and unsent calls are distinguished from missing ones."""
    findings = await verified()
    assert findings.problems == []
    assert (findings.checked, findings.first_seq, findings.last_seq, findings.waiting) == (8, 1, 9, 2)
    assert (findings.checkpoints["refused"].checkpoints, findings.checkpoints["refused"].calls) == (1, 1)


@pytest.mark.usefixtures("sent")
@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("UPDATE toold_calls SET tool = 'x' WHERE seq = 3", [("changed", 3, 3)]),
        ("UPDATE toold_calls SET arguments = '{}' WHERE seq = 3", [("changed", 3, 3)]),
        ("UPDATE toold_calls SET started_at = 'infinity' WHERE seq = 3", [("changed", 3, 3)]),
        ("UPDATE toold_calls SET latency_ms = 'NaN' WHERE seq = 3", [("changed", 3, 3)]),
        ("UPDATE toold_calls SET mac = NULL WHERE seq = 3", [("changed", 3, 3)]),
        ("UPDATE toold_provider_calls SET cost_amount = 0 WHERE seq = 3", [("changed", 3, 3)]),
        ("UPDATE toold_provider_calls SET started_at = now() WHERE seq = 3", [("changed", 3, 3)]),
        ("DELETE FROM toold_provider_calls WHERE seq = 3", [("changed", 3, 3)]),
        ("DELETE FROM toold_calls WHERE seq = 3", [("missing", 3, 3)]),
        ("DELETE FROM toold_calls WHERE seq = 1", [("missing", 1, 1)]),
        ("DELETE FROM toold_calls WHERE seq > 7", [("missing", 8, 9)]),
        ("UPDATE toold_calls SET chain = 'other' WHERE seq = 3", [("missing", 3, 3)]),
        ("UPDATE toold_calls SET seq = 7 WHERE seq = 3", [("missing", 3, 3), ("added", 7, 7)]),
        ("UPDATE toold_calls SET seq = seq + 1000 WHERE seq = 9", [("missing", 9, 9), ("added", 12, 1009)]),
        ("UPDATE toold_checkpoints SET calls = 7 WHERE kind = 'refused'", [("changed", 0, 0)]),
        ("UPDATE toold_checkpoints SET mac_after = 'x' WHERE kind = 'refused'", [("changed", 0, 0)]),
    ],
)
async def test_changes_in_supabase_are_reported(
    verified: Verified, database: Any, statement: str, expected: Told
) -> None:
    """Changes without the key are reported as changed, missing or added."""
    database.sql(statement)
    assert reported(await verified()) == expected


@pytest.mark.usefixtures("sent")
async def test_local_checkpoints_replace_missing_ones(verified: Verified, database: Any) -> None:
    """The local database has all checkpoints, so that missing ones in Supabase do not matter."""
    database.sql("DELETE FROM toold_checkpoints")
    assert (await verified()).intact


@pytest.mark.usefixtures("sent")
async def test_rows_after_remote_retention_are_verified(verified: Verified, database: Any) -> None:
    """Calls that ``toold_forget`` deleted count as forgotten; the later calls are verified, and missing ones are
    reported."""
    database.sql("UPDATE toold_calls SET started_at = now() - interval '99 days' WHERE seq <= 2")
    database.sql("SELECT toold_forget(90)")
    findings = await verified()
    assert (findings.intact, findings.checked, findings.first_seq) == (True, 6, 3)
    assert findings.checkpoints["forgotten"].calls == 2
    database.sql("DELETE FROM toold_calls WHERE seq = 3")
    assert reported(await verified()) == [("missing", 3, 3)]


@pytest.mark.usefixtures("sent")
async def test_unsigned_checkpoint_does_not_hide_missing_rows(verified: Verified, database: Any) -> None:
    """If rows from the middle are deleted and an unsigned checkpoint covers them, the calls before them are
    reported."""
    noted = "chain || '-forgotten', chain, 0, 'forgotten', 1, seq, 2, now(), now(), '', mac"
    database.sql(f"INSERT INTO toold_checkpoints SELECT {noted} FROM toold_calls WHERE seq = 4")  # noqa: S608 - our own words
    database.sql("DELETE FROM toold_calls WHERE seq IN (3, 4)")
    assert reported(await verified()) == [("added", 1, 1), ("added", 2, 2)]


async def test_unsent_expired_calls_are_not_missing(
    path: Path, audit_key: bytes, send: Callable[[], Awaitable[None]], store: Store, verified: Verified, row: MakeRow,
    database: Any,
) -> None:  # fmt: skip
    """Calls that local retention deleted before they were sent do not count as missing in Supabase."""
    store.audit.record(row(id="sent"))
    await send()
    for number in range(3):
        store.audit.record(row(id=f"unsent-{number}", started_at=1.0))
    store.audit.record(row(id="young"))
    await store.close()
    short = open_sqlite_store(path, content=json.dumps, retention=Retention(bytes=1), key=audit_key)
    await short.flush()
    await short.close()
    again = open_sqlite_store(path, content=json.dumps, retention=Retention(), key=audit_key)
    again.audit.record(row(id="late"))
    await again.close()
    findings = await verified()
    assert findings.problems == []
    assert (findings.checked, findings.checkpoints["unsent"].calls, findings.waiting) == (1, 4, 5)


async def test_restored_older_database_is_reported(
    path: Path, store: Store, verified: Verified, send: Callable[[], Awaitable[None]], database: Any, row: MakeRow
) -> None:
    """Calls in Supabase that the database does not know are reported as added."""
    store.audit.record(row(id="a"))
    await store.flush()
    with closing(sqlite3.connect(path)) as connection, closing(sqlite3.connect(path.with_name("old.db"))) as copy:
        connection.backup(copy)
    store.audit.record(row(id="b"))
    await send()
    await store.close()
    path.write_bytes(path.with_name("old.db").read_bytes())
    assert reported(await verified()) == [("added", 2, 2)]


async def test_restarted_chain_is_reported(
    path: Path, audit_key: bytes, store: Store, verified: Verified, send: Callable[[], Awaitable[None]], database: Any,
    row: MakeRow, service_key: str, gateway: Any,
) -> None:  # fmt: skip
    """A chain restart after the head was removed is reported from the local database, and from Supabase if the
    database is restored; the earlier calls do not count as added."""
    for name in "ab":
        store.audit.record(row(id=name))
    await send()
    await store.close()
    with closing(sqlite3.connect(path)) as connection, closing(sqlite3.connect(path.with_name("old.db"))) as copy:
        connection.backup(copy)
        connection.execute("DELETE FROM head")
        connection.commit()
    again = open_sqlite_store(path, content=json.dumps, retention=Retention(), key=audit_key, expects_chain=True)
    again.audit.record(row(id="c"))
    await again.flush()
    sender = AuditSender(again, lambda: SupabaseWriter(gateway.url, SecretStr(service_key), again.audit.chain))
    sender.start()
    await sender.close(60)
    await again.close()
    findings = await verified()
    assert reported(findings) == [("missing", 1, 2)]
    assert (findings.checked, findings.older) == (1, 2)
    path.write_bytes(path.with_name("old.db").read_bytes())
    assert ("missing", 1, 2) in reported(await verified())


@pytest.mark.usefixtures("sent")
async def test_all_pages_are_read(
    verified: Verified, store: Store, send: Callable[[], Awaitable[None]], row: MakeRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call is read once, independent of the page size."""
    monkeypatch.setattr("toold.audit.supabase_reader.PAGE", 3)
    await send()
    findings = await verified()
    assert (findings.intact, findings.checked, findings.waiting) == (True, 10, 0)


async def test_anon_key_reads_nothing(gateway: Any, anon_key: str, database: Any) -> None:
    """The anon key causes an error that names the setting to fix instead of an empty chain."""
    async with SupabaseReader(gateway.url, SecretStr(anon_key)) as reader:
        with pytest.raises(SupabaseReadError, match="TOOLD_SUPABASE_SERVICE_ROLE_KEY"):
            await reader.check_tables()


async def test_migrated_project_passes_the_table_check(reader: SupabaseReader, database: Any) -> None:
    """The check of the tables succeeds in a migrated project."""
    await reader.check_tables()


def test_verify_command_reports_missing_rows(
    gateway_url: str, service_key: str, database: Any, row: MakeRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``toold audit verify --remote`` reports whether Supabase has the rows that were sent."""
    for name, value in {"URL": gateway_url, "SERVICE_ROLE_KEY": service_key}.items():
        monkeypatch.setenv(f"TOOLD_SUPABASE_{name}", value)
    monkeypatch.setenv("TOOLD_STATE_DIR", str(tmp_path))

    async def sends() -> None:
        with StateDirectory(tmp_path) as state:
            key = state.load_or_create_audit_key()
            store = open_sqlite_store(state.database, content=json.dumps, retention=Retention(), key=key)
            for name in "abc":
                store.audit.record(row(id=name))
            sender = AuditSender(store, lambda: SupabaseWriter(gateway_url, SecretStr(service_key), store.audit.chain))
            sender.start()
            await sender.close(60)
            await store.close()

    asyncio.run(sends())
    command = ["audit", "verify", "--remote"]
    intact = CliRunner().invoke(toold, command)
    assert (intact.exit_code, intact.stdout.splitlines()[0]) == (
        0, "intact: Supabase, 3 calls from 1 to 3 are unchanged",
    )  # fmt: skip
    database.sql("DELETE FROM toold_calls WHERE id = 'b'")
    broken = CliRunner().invoke(toold, command)
    assert broken.exit_code == 1
    assert "  2: missing: no checkpoint explains why" in broken.stdout.splitlines()
