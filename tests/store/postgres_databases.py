"""Databases of the store on the PostgreSQL of the tests: copies of one that was migrated."""

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.postgres_cluster import Cluster
from toold.store import KEY_BYTES, Retention, Store
from toold.store.postgres.pg_schema import migrate_postgres
from toold.store.postgres.postgres_store import open_postgres_store

KEY = b"k" * KEY_BYTES
_TEMPLATE = "toold_template"
_numbers = itertools.count()


class PostgresDatabase:
    """One database of a cluster."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.address = cluster.uri(name, "postgres")

    def sql(self, statements: str) -> str:
        """The output of statements in toold's schema."""
        return self.cluster.sql(f"SET search_path = toold;\n{statements}", database=self.name)

    def node(self, epoch: str = "e1", name: str = "", **options: Any) -> Store:
        """Opens the store as a node."""
        values: dict[str, Any] = {
            "lease_s": 60.0,
            "content": json.dumps,
            "retention": Retention(),
            "key": KEY,
            "path": Path(),
            "on_fenced": str,
        }
        return open_postgres_store(self.address, epoch=epoch, node_name=name or f"node {epoch}", **(values | options))


def migrated_template(cluster: Cluster) -> str:
    """Creates and migrates the database of which others are copies."""
    cluster.sql(f"CREATE DATABASE {_TEMPLATE}")
    migrate_postgres(cluster.uri(_TEMPLATE, "postgres"))
    return _TEMPLATE


@contextmanager
def new_database(cluster: Cluster, template: str) -> Iterator[PostgresDatabase]:
    """A copy of a database, deleted afterwards."""
    name = f"test_{next(_numbers)}"
    cluster.sql(f"CREATE DATABASE {name} TEMPLATE {template}")
    yield PostgresDatabase(cluster, name)
    cluster.sql(f"DROP DATABASE {name} WITH (FORCE)")


OpenNode = Callable[..., Store]
