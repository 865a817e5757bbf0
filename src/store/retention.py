"""Deletes data beyond the retention, a slice at a time, so that the writer soon returns to its queue."""

import sqlite3
from dataclasses import dataclass

from . import (
    a2a_task_sql,
    audit_sql,
    conversation_outbox,
    conversation_sql,
    journal_sql,
    spending_sql,
    store_clock,
    vendor_file_sql,
)
from .chain_writer import ChainWriter
from .store_clock import StoreClock


@dataclass(frozen=True, slots=True)
class Retention:
    """The age and size beyond which stored data is deleted."""

    days: int = 30
    """The age of audit rows."""
    bytes: int = 1024**3
    """The size of all audit rows; beyond it the oldest are deleted. Other data in the database does not count."""
    result_ttl_s: float = 86400.0
    """The age of results of resumable sessions."""
    results_bytes: int = 128 * 1024**2
    """The size of one principal's results; beyond it the oldest are deleted, at each commit."""
    unfinished_bytes: int = journal_sql.UNFINISHED_BYTES
    """The size of the results of one principal's runs that have not ended; beyond it the oldest are deleted."""
    conversation_days: int = 30
    """The time since a conversation was last used, and the age of unsent copies."""
    conversation_bytes: int = 256 * 1024**2
    """The size of all conversations; beyond it the least recently used are deleted. Unsent copies have a limit of the
    same size; beyond it the oldest are deleted."""


def enforce_retention(
    connection: sqlite3.Connection, chain_writer: ChainWriter, retention: Retention, now: float, clock: StoreClock
) -> bool:
    """Deletes a slice of the data that is beyond the retention; returns whether there may be more. ``now`` is a Unix
    time; results, ids and sessions expire by the store's clock.
    """
    with chain_writer.extending(connection) as chain:
        store_clock.save(connection, clock)
        spending_sql.delete_expired(connection, now)
        vendor_file_sql.delete_excess(connection)
        audit_sql.merge_old_totals(connection, now - spending_sql.RETENTION_DAYS * 86400)
        removed = max(
            a2a_task_sql.delete_expired(connection, now - retention.result_ttl_s, now - a2a_task_sql.MESSAGE_TTL_S),
            journal_sql.delete_expired(connection, clock.now(), result_ttl_s=retention.result_ttl_s),
            conversation_sql.delete_expired(
                connection,
                before=now - retention.conversation_days * 86400,
                now=now,
                max_bytes=retention.conversation_bytes,
            ),
            conversation_outbox.delete_expired(
                connection,
                before=now - retention.conversation_days * 86400,
                max_bytes=retention.conversation_bytes,
            ),
            audit_sql.delete_expired(
                connection,
                chain,
                before=now - retention.days * 86400,
                now=now,
                max_bytes=retention.bytes,
            ),
        )
    if removed:
        # As a script: for a statement without result columns, the sqlite3 module runs a single step, here one page.
        connection.executescript(f"PRAGMA incremental_vacuum({audit_sql.SLICE})")
    return removed >= audit_sql.SLICE
