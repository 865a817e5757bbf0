"""Entries that the database refuses fail alone; the others of their group are written."""

import asyncio

import pytest
from msgspec.structs import replace
from tests.store.contract.stored_calls import KEY_HASH, Calls, stored
from tests.store.postgres.conftest import OpenNode
from tests.store.postgres_databases import PostgresDatabase
from toold.store import StoreError


@pytest.mark.parametrize("bad", [{"tool": "\ud800"}, {"started_at": "no number"}])
async def test_an_unstorable_start_fails_alone(
    open_node: OpenNode, postgres_database: PostgresDatabase, call: Calls, bad: dict[str, object]
) -> None:
    """Whether the node or the server refuses it."""
    node = open_node("e1")
    start = call.starts("bad")
    starts = [call.starts("a"), replace(start, row=replace(start.row, **bad)), call.starts("b")]
    answers = await asyncio.gather(*map(node.journal.start, starts), return_exceptions=True)
    assert [str(answer) for answer in answers] == [
        "True",
        "the database cannot be written (the entry cannot be stored)",
        "True",
    ]
    assert node.problem is None
    assert postgres_database.sql("SELECT request_key FROM journal ORDER BY 1") == "a\nb"


async def test_an_unstorable_audit_row_does_not_block_the_end(open_node: OpenNode, call: Calls) -> None:
    """The end is written without it, and the row counts as dropped."""
    node = open_node("e1")
    node.sessions.open(call.session)
    for key in ("a", "b"):
        await node.journal.start(call.starts(key))
    bad = call.ends("a", row=call.row("a", input_tokens=2**70))
    await asyncio.gather(node.journal.end(bad), node.journal.end(call.ends("b")))
    assert await stored(node) == {"a": ("done", b'{"text": "done"}'), "b": ("done", b'{"text": "done"}')}
    assert (node.audit.rows_dropped, node.audit.rows_written) == (1, 1)


async def test_a_session_that_cannot_be_stored_does_not_block_others(open_node: OpenNode, call: Calls) -> None:
    """Two sessions do not have one key."""
    node = open_node("e1")
    node.sessions.open(call.session)
    node.sessions.open(replace(call.session, id="s-2"))
    assert await node.journal.start(call.starts("a"))
    session = await node.sessions.find_by_key_hash(KEY_HASH)
    assert session is not None
    assert session.row.id == "s-1"


async def test_a_full_queue_refuses_starts(open_node: OpenNode, call: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that memory is bounded while the database is slow; ends are always accepted."""
    node = open_node("e1")
    await node.journal.start(call.starts("a"))
    monkeypatch.setattr("toold.store.store_writer.MAX_QUEUED", 0)
    with pytest.raises(StoreError, match="too many writes are queued"):
        await node.journal.start(call.starts("b"))
    await node.journal.end(call.ends("a"))
