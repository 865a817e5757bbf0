"""Copies of the whole store from SQLite to PostgreSQL and back."""

import json
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.store.postgres_databases import KEY, PostgresDatabase
from toold.audit import verify_chains, verify_local
from toold.store import (
    A2AEvent,
    A2AMessageRow,
    A2APushRow,
    A2ATaskRow,
    CallRow,
    ChainSigner,
    ConversationUpdate,
    DetachedRequest,
    NewCopy,
    RegistryEntryRow,
    RegistryEntrySaved,
    Retention,
    SettledCalls,
    Store,
    StoredTurn,
    StoreError,
    UserCredentialRow,
    VendorFileUploaded,
    open_archive,
    open_sqlite_store,
)
from toold.store.postgres.postgres_archive import open_postgres_archive
from toold.store.postgres.store_copy import copy_to_postgres, copy_to_sqlite

MakeRow = Callable[..., CallRow]
Call = Any  # conftest.Journalled

pytestmark = pytest.mark.process

CLOCK = {("session", "opened_at"), ("session", "seen_at"), ("journal", "ended_at"), ("store_clock", "at")}
"""Columns that are times of the store's clock, which another database measures from another beginning."""
DERIVED = {"sqlite_sequence"}


def no_pins(pins: Mapping[str, bytes]) -> None:
    assert pins == {}


def opened(path: Path) -> Store:
    return open_sqlite_store(path, content=json.dumps, retention=Retention(), key=KEY, copy_conversations=True)


async def fill(store: Store, call: Call, row: MakeRow) -> None:
    """Writes something into every table."""
    store.sessions.open(call.session)
    await store.journal.start(call.starts("1"))
    await store.journal.end(call.ends("1", result=b'{"a": "\\u0000"}'))
    await store.journal.start(replace(call.starts("3"), orchestration=True))
    await store.journal.end(call.ends("3"))
    detached = DetachedRequest(arguments=b"{}", client=b"{}", deadline_at=time.time() + 60)
    task = A2ATaskRow(
        id="call-2", principal="local", agent="helper", context_id="c\0", state="TASK_STATE_WORKING",
        changed_at=time.time(), ended=False, history=b"[1]", last_event=1, new_events=(A2AEvent(1, b"{}"),),
        message=A2AMessageRow(key=b"k", content=b"what"),
    )  # fmt: skip
    await store.journal.start(replace(call.starts("2"), detached=detached, task=task))
    await store.a2a_tasks.save(replace(task, message=None))
    await store.a2a_tasks.write_push(A2APushRow("call-2", "p", "https://hook.example/", "1.0", b"s", 0))
    for name in ("a", "b", "c"):
        store.audit.record(row(id=name, message="x\0\x01", provider="kimi", model="k", cost_amount=0.5))
    await store.flush()
    store.audit.settle(SettledCalls(up_to=2, at=5.0, sent=1, refused={2: "no"}))
    copy = NewCopy(number=1, role="user", content={"text": "\0"}, at=7.0)
    await store.conversations.update(
        ConversationUpdate(
            id="c-1", principal="local", at=time.time(), state='{"n":1}', bytes=9, first_number=1, last_number=1,
            turns=[StoredTurn(1, 5, '"a"')], session_id="s-1", call_id="call-1", copies=[copy],
        )
    )  # fmt: skip
    await store.vendor_files.record_upload(VendorFileUploaded("kimi", "f", "local", 1.0))
    await store.registry_entries.write(RegistryEntrySaved(RegistryEntryRow("prompt", "p", 1, b"{}", 1.0, 2.0), 5))
    await store.user_credentials.write(UserCredentialRow("ann", "crm", ("token",), 1.0, b"\0s"))


def dump(path: Path) -> dict[str, list[dict[str, Any]]]:
    """All rows of all tables, without the times of the store's clock."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            name: sorted(
                (
                    {key: row[key] for key in row.keys() if (name, key) not in CLOCK}  # noqa: SIM118 - a row of SQLite
                    for row in connection.execute(f"SELECT * FROM {name}")  # noqa: S608 - the schema's names
                ),
                key=repr,
            )
            for name in names
            if name not in DERIVED
        }


async def test_a_copy_and_back_is_the_same(
    tmp_path: Path, postgres_database: PostgresDatabase, call: Call, row: MakeRow
) -> None:
    """Every row of every table comes back; the chain is intact on the way and at the end."""
    source, back = tmp_path / "toold.db", tmp_path / "back.db"
    store = opened(source)
    await fill(store, call, row)
    await store.close()
    before = dump(source)
    assert {name for name in before if not before[name]} == {"input_request", "day_spent"}
    pins = {"crm": b"{}", "crm.prompts": b"[]"}
    copied = copy_to_postgres(source, postgres_database.address, KEY, pins)
    assert (copied.rows["call"], copied.rows["source_pins"]) == (5, 2)
    with open_postgres_archive(postgres_database.address) as archive:
        assert [findings.intact for findings in verify_chains(KEY, archive).values()] == [True]
    written: list[Mapping[str, bytes]] = []
    assert copy_to_sqlite(postgres_database.address, back, KEY, written.append).resigned == 0
    assert written == [pins]
    assert dump(back) == before
    with open_archive(back) as copy:
        assert verify_local(ChainSigner(KEY), copy.trail(), copy.chained_rows(), copy.schema_differences()).intact


async def test_a_node_continues_where_the_daemon_stopped(
    tmp_path: Path, postgres_database: PostgresDatabase, call: Call, row: MakeRow
) -> None:
    """Results keep their age, ids stay known, detached calls are adopted, sums and the outbox continue."""
    store = opened(tmp_path / "toold.db")
    await fill(store, call, row)
    await store.close()
    copy_to_postgres(tmp_path / "toold.db", postgres_database.address, KEY, {})
    node = postgres_database.node("e1")
    assert not await node.journal.start(call.starts("1"))
    found = await node.sessions.find_by_key_hash(call.session.key_hash)
    assert found is not None
    ended = next(ended for ended in found.calls if ended.request_key == "1")
    assert (ended.result, abs(ended.at - time.time()) < 3600) == (b'{"a": "\\u0000"}', True)
    assert (await node.audit.totals()).all.calls == 5
    assert (await node.audit.outbox_state()).settled_seq == 2
    node.audit.record(row(id="d"))
    await node.flush()
    assert [unsent.seq for unsent in await node.audit.unsent_calls(2, 10)] == [3, 4, 5, 6]
    conversation = await node.conversations.load("c-1", "local")
    assert conversation is not None
    assert conversation.turns == [StoredTurn(1, 5, '"a"')]
    while not await node.journal.detached_calls():
        await node.cluster.declare_dead("copied", "none")  # type: ignore[union-attr] # it is a node
    await node.close()
    with open_postgres_archive(postgres_database.address) as archive:
        assert [findings.intact for findings in verify_chains(KEY, archive).values()] == [True]


async def test_rows_of_all_nodes_come_into_one_chain(
    tmp_path: Path, postgres_database: PostgresDatabase, row: MakeRow
) -> None:
    """SQLite has one chain: rows of other chains are signed again after those of the first one; sums are added up."""
    first, second = postgres_database.node("e1"), postgres_database.node("e2")
    for store, name in ((first, "a"), (second, "b"), (first, "c"), (second, "d")):
        store.audit.record(row(id=name))
        await store.flush()
    await first.close()
    await second.close()
    assert copy_to_sqlite(postgres_database.address, tmp_path / "toold.db", KEY, no_pins).resigned == 2
    store = opened(tmp_path / "toold.db")
    assert [call.id for call in await store.audit.recent(9)] == ["d", "b", "c", "a"]
    assert (await store.audit.totals()).all.calls == 4
    await store.close()
    with open_archive(tmp_path / "toold.db") as archive:
        findings = verify_local(ChainSigner(KEY), archive.trail(), archive.chained_rows())
    assert (findings.intact, findings.checked, findings.gaps) == (True, 4, [])


async def test_a_copy_never_mixes_with_what_is_there(
    tmp_path: Path, postgres_database: PostgresDatabase, row: MakeRow
) -> None:
    """A target with rows, a database with running nodes and an existing file are refused, and stay as they are."""
    store = opened(tmp_path / "toold.db")
    store.audit.record(row(id="a"))
    await store.close()
    node = postgres_database.node("e1")
    with pytest.raises(StoreError, match=r"nodes run on .*: node e1; stop them first"):
        copy_to_postgres(tmp_path / "toold.db", postgres_database.address, KEY, {})
    with pytest.raises(StoreError, match=r"nodes run on .*: node e1; stop them first"):
        copy_to_sqlite(postgres_database.address, tmp_path / "new.db", KEY, no_pins)
    await node.close()
    with pytest.raises(StoreError, match="is not empty"):
        copy_to_postgres(tmp_path / "toold.db", postgres_database.address, KEY, {})
    with pytest.raises(StoreError, match="exists: move it away"):
        copy_to_sqlite(postgres_database.address, tmp_path / "toold.db", KEY, no_pins)
    assert not (tmp_path / "new.db").exists()
    assert postgres_database.sql("SELECT count(*) FROM call") == "0"
