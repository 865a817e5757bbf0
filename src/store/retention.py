"""What is too old, or too much, goes: a slice at a time, so that the writer is soon back at its queue."""

import sqlite3
from dataclasses import dataclass

from . import audit_sql, conversation_outbox, conversation_sql, journal_sql, spending_sql
from .chain_writer import ChainWriter


@dataclass(frozen=True, slots=True)
class Retention:
    """How long what is kept."""

    days: int = 30
    """Audit rows."""
    bytes: int = 1024**3
    """Of audit rows; past it the oldest go. What else is in the database is not counted, so that it pushes none out."""
    result_ttl_s: float = 86400.0
    """Results, for clients that come back for them."""
    kept_bytes: int = 128 * 1024**2
    """Of one principal's results; past it the oldest go. This is kept at each commit."""
    conversation_days: int = 30
    """Conversations that nobody went on with since, and copies of what was said that were not sent."""
    conversation_bytes: int = 256 * 1024**2
    """Of all conversations; past it those go that nobody went on with for the longest time. Copies that were not sent
    may take as much again; past it the oldest go."""


def keep_bounds(connection: sqlite3.Connection, ledger: ChainWriter, retention: Retention, now: float) -> bool:
    """Remove a slice of what is past its bounds at a Unix time; returns whether there may be more."""
    with ledger.extending(connection) as chain:
        spending_sql.forget_old(connection, now)
        removed = max(
            journal_sql.forget_old(connection, now, result_ttl_s=retention.result_ttl_s),
            conversation_sql.forget_old(
                connection,
                before=now - retention.conversation_days * 86400,
                now=now,
                keep_bytes=retention.conversation_bytes,
            ),
            conversation_outbox.forget_old(
                connection,
                before=now - retention.conversation_days * 86400,
                keep_bytes=retention.conversation_bytes,
            ),
            audit_sql.forget(
                connection,
                chain,
                before=now - retention.days * 86400,
                now=now,
                keep_bytes=retention.bytes,
            ),
        )
    if removed:
        # As a script: the sqlite3 module takes a single step of a statement that returns no columns, here one page.
        connection.executescript(f"PRAGMA incremental_vacuum({audit_sql.SLICE})")
    return removed >= audit_sql.SLICE
