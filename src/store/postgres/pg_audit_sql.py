"""The SQL of audit rows on PostgreSQL."""

from collections.abc import Sequence
from typing import Any, Final

import psycopg

from ..audit_chain import clean
from ..audit_rows import COLUMNS, Values
from .pg_values import arrays

Connection = psycopg.Connection[tuple[Any, ...]]

_TYPES: Final = {
    "started_at": "float8",
    "arguments_bytes": "bigint",
    "result_bytes": "bigint",
    "latency_ms": "float8",
    "queue_ms": "float8",
    "tool_ms": "float8",
    "provider_ms": "float8",
    "simulated": "bool",
    "input_tokens": "bigint",
    "output_tokens": "bigint",
    "cost_amount": "float8",
}
_ARRAYS: Final = ", ".join(f"%s::{_TYPES.get(name, 'text')}[]" for name in COLUMNS)
_INSERT: Final = f"INSERT INTO call ({', '.join(COLUMNS)}) SELECT * FROM unnest({_ARRAYS})"


def add(connection: Connection, rows: Sequence[Values]) -> None:
    """Inserts rows, within the caller's transaction and pipeline. NUL characters are replaced, as the chain does."""
    connection.execute(_INSERT, arrays([[clean(value) for value in row] for row in rows]))
