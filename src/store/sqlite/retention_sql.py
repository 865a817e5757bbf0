"""Deletes data beyond the retention in slices, so that the writer's queue does not wait long."""

import sqlite3

from ..retention import Retention
from ..store_clock import StoreClock
from ..store_limits import MESSAGE_TTL_S, RETENTION_DAYS
from . import (
    a2a_task_sql,
    audit_sql,
    conversation_outbox,
    conversation_sql,
    journal_sql,
    spending_sql,
    store_clock_sql,
    vendor_file_sql,
)
from .chain_writer import ChainWriter


def enforce_retention(
    connection: sqlite3.Connection, chain_writer: ChainWriter, retention: Retention, now: float, clock: StoreClock
) -> bool:
    """Deletes a slice of the data that is beyond the retention; returns whether there may be more. ``now`` is a Unix
    time; results, ids and sessions expire by the store's clock.
    """
    with chain_writer.extending(connection) as chain:
        store_clock_sql.save(connection, clock)
        spending_sql.delete_expired(connection, now)
        vendor_file_sql.delete_excess(connection)
        audit_sql.merge_old_totals(connection, now - RETENTION_DAYS * 86400)
        removed = max(
            a2a_task_sql.delete_expired(connection, now - retention.result_ttl_s, now - MESSAGE_TTL_S),
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
