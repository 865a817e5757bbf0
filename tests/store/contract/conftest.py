"""The tests in this folder run on each database: what they state holds for the store, whatever it is stored in."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.store.contract.stored_calls import Calls
from toold.store import KEY_BYTES, Retention, Store, open_sqlite_store

KEY = b"k" * KEY_BYTES

OpenStore = Callable[..., Store]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.process)])
def open_again(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenStore]:
    """Opens the store on the same database each time, as another process, which has another epoch."""
    epochs = iter(range(1000))
    if request.param == "sqlite":

        def open_file(**options: Any) -> Store:
            values: dict[str, Any] = {"content": json.dumps, "retention": Retention(), "key": KEY}
            return open_sqlite_store(tmp_path / "toold.db", **(values | options))

        yield open_file
        return
    database = request.getfixturevalue("postgres_database")
    yield lambda **options: database.node(f"e{next(epochs)}", "the node", **options)


@pytest.fixture
async def store(open_again: OpenStore) -> AsyncIterator[Store]:
    """A store on a new database."""
    store = open_again()
    yield store
    await store.close()


@pytest.fixture
def call() -> Calls:
    """Entries of the journal for calls of one session."""
    return Calls()
