"""Nodes on one PostgreSQL database, with and without a proxy that loses what passes it."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from tests.postgres_cluster import Cluster
from tests.store.contract.stored_calls import Calls
from tests.store.postgres.lossy_proxy import LossyProxy
from tests.store.postgres_databases import PostgresDatabase
from toold.store import Store

OpenNode = Callable[..., Store]


@pytest.fixture
async def open_node(postgres_database: PostgresDatabase) -> AsyncIterator[OpenNode]:
    """Opens a node by its epoch. All are closed afterwards."""
    opened: list[Store] = []

    def make(epoch: str, name: str = "", **options: Any) -> Store:
        opened.append(postgres_database.node(epoch, name, **options))
        return opened[-1]

    yield make
    for store in opened:
        await store.close()


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[LossyProxy]:
    """A proxy in front of the server."""
    with LossyProxy(cluster.directory / "home") as proxy:
        yield proxy


@pytest.fixture
def call() -> Calls:
    """Entries of the journal for calls of one session."""
    return Calls()
