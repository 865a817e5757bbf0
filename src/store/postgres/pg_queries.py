"""All questions of the store's parts (``store_port.py``), asked of a connection to PostgreSQL."""

from .pg_run_queries import PostgresRunQueries


class PostgresQueries(PostgresRunQueries):
    """``Queries`` of one connection, on one thread."""
