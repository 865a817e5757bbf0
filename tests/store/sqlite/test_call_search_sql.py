"""The searches in ended calls."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from tests.store.sqlite.test_audit_sql import add
from toold.store import CallFilter, CallRow, Store
from toold.store.sqlite.call_search_sql import call_tree, search
from toold.store.sqlite.store_schema import STEPS
from toold.store.store_limits import PIECE_ROWS, SCANNED_ROWS

MakeRow = Callable[..., CallRow]


@pytest.fixture
def calls(row: MakeRow) -> Iterator[sqlite3.Connection]:
    """Calls of two principals, the newest last."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(";".join(STEPS))
        add(
            connection,
            row(id="a", started_at=1.0, session_label="editor-1", session_id="s-9"),
            row(id="b", started_at=2.0, tool="chat", outcome="TIMEOUT", message="no answer of Kimi"),
            row(id="c", started_at=3.0, principal="token:ann", message="Order 17"),
            row(id="d/x", started_at=4.1),
            row(id="d/x/y", started_at=4.2, tool="chat"),
            row(id="dd/x", started_at=4.3),
            row(id="d", started_at=4.0, tool="execute_pipeline"),
        )
        yield connection


@pytest.mark.parametrize(
    ("fields", "ids"),
    [
        ({}, ["d", "dd/x", "d/x/y", "d/x", "c", "b", "a"]),
        ({"principal": "token:ann"}, ["c"]),
        ({"tool": "chat"}, ["d/x/y", "b"]),
        ({"outcome": "TIMEOUT"}, ["b"]),
        ({"outcome": "error"}, ["b"]),
        ({"session": "editor-"}, ["a"]),
        ({"session": "s-9"}, ["a"]),
        ({"text": "kimi"}, ["b"]),
        ({"text": "order 17"}, ["c"]),
        ({"text": "%"}, []),
        ({"since": 2.0, "until": 4.0}, ["c", "b"]),
        ({"tool": "chat", "outcome": "ok"}, ["d/x/y"]),
    ],
)
def test_a_filter_returns_its_calls(calls: sqlite3.Connection, fields: dict[str, Any], ids: list[str]) -> None:
    """Each field selects its calls, the newest first; several fields select what matches all."""
    assert [call.id for call in search(calls, CallFilter(**fields), None, 100).calls] == ids


def test_pages_continue(calls: sqlite3.Connection) -> None:
    """The next page begins where a page ended, and the last page says that it is the last."""
    pages = []
    before: int | None = None
    while True:
        page = search(calls, CallFilter(), before, 3)
        pages.append([call.id for call in page.calls])
        before = page.before
        if before is None:
            break
    assert pages == [["d", "dd/x", "d/x/y"], ["d/x", "c", "b"], ["a"]]
    assert page.searched_to == 1.0


def test_one_search_reads_a_bounded_number_of_rows(row: MakeRow) -> None:
    """A search without a match stops after SCANNED_ROWS, and continues on the next page."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(";".join(STEPS))
        add(connection, row(id="old", started_at=1.0, tool="rare"))
        add(connection, *(row(id=str(number), started_at=2.0) for number in range(SCANNED_ROWS)))
        first = search(connection, CallFilter(tool="rare"), None, 10)
        assert (first.calls, first.searched_to) == ([], 2.0)
        second = search(connection, CallFilter(tool="rare"), first.before, 10)
        assert [call.id for call in second.calls] == ["old"]
        assert second.before is None


async def test_other_reads_wait_for_a_piece_of_a_search_only(open_store: Callable[..., Store], row: MakeRow) -> None:
    """A search of the store finds a call beyond one piece; a read that comes during it is answered before it."""
    store = open_store()
    try:
        for number in range(PIECE_ROWS + 10):
            store.audit.record(row(id=str(number), tool="rare" if number == 0 else "echo"))
        await store.flush()
        ended: list[str] = []

        async def read(name: str, reading: Awaitable[object]) -> None:
            await reading
            ended.append(name)

        searching = store.audit.search(CallFilter(tool="rare"), None, 10)
        await asyncio.gather(read("search", searching), read("other", store.audit.recent(1)))
        assert ended == ["other", "search"]
        page = await store.audit.search(CallFilter(tool="rare"), None, 10)
        assert ([call.id for call in page.calls], page.before) == (["0"], None)
    finally:
        await store.close()


def test_a_tree_has_all_descendants(calls: sqlite3.Connection) -> None:
    """A call's tree has the calls below its id, in the order of their start, and none of another principal."""
    assert [call.id for call in call_tree(calls, "d", None)] == ["d", "d/x", "d/x/y"]
    assert [call.id for call in call_tree(calls, "d", "local")] == ["d", "d/x", "d/x/y"]
    assert call_tree(calls, "c", "local") == []


def test_an_empty_audit_has_an_empty_page() -> None:
    """Without calls there is no page to continue with."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(";".join(STEPS))
        page = search(connection, CallFilter(), None, 10)
    assert (page.calls, page.searched_to, page.before) == ([], None, None)
