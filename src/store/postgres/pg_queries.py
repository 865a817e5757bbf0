"""All queries of the store's parts (``store_port.py``) on a connection to PostgreSQL."""

from typing import Any

import psycopg

from .pg_part_queries import (
    PostgresA2AQueries,
    PostgresAuditQueries,
    PostgresConversationQueries,
    PostgresRegistryQueries,
)
from .pg_run_queries import PostgresRunQueries


class PostgresQueries(
    PostgresRunQueries,
    PostgresAuditQueries,
    PostgresConversationQueries,
    PostgresA2AQueries,
    PostgresRegistryQueries,
):
    """``Queries`` of one connection, on one thread, for the node that extends the audit chain with a number."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]], node: str, chain: int) -> None:
        super().__init__(connection)
        self._node = node
        self._chain = chain
