"""Deletes expired data on PostgreSQL, in slices.

Each node deletes the audit rows of its chain, because only their signer may remove them. One node at a time deletes
everything else, and the rows of chains that no node extends. No statement waits for a row that another node's commit
has changed.
"""

from typing import Any, Final

import psycopg

from ..chain_extension import ChainExtension
from ..retention import Retention
from ..store_limits import ID_TTL_S, MESSAGE_TTL_S, RETENTION_DAYS
from . import (
    pg_a2a_task_sql,
    pg_audit_sql,
    pg_chain_sql,
    pg_conversation_sql,
    pg_copy_sql,
    pg_journal_sql,
    pg_limits_sql,
    pg_spending_sql,
    pg_vendor_file_sql,
)
from .pg_chain_writer import PostgresChainWriter

Connection = psycopg.Connection[tuple[Any, ...]]

_LOCK: Final = 0x746F6F6C72
"""The key of the advisory lock of the node that deletes data that belongs to all nodes."""


def enforce_retention(
    connection: Connection, chain: ChainExtension, chain_writer: PostgresChainWriter, retention: Retention
) -> bool:
    """Deletes a slice of the expired data, within the transaction that extends this node's chain. Returns whether there
    may be more. Times are those of the database.
    """
    (now,) = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone() or (0.0,)
    total = pg_audit_sql.stored_bytes(connection)
    removed = _delete_audit_rows(connection, chain, retention, now=now, total=total)
    pg_audit_sql.merge_old_totals(connection, pg_chain_sql.number_of(chain), now - RETENTION_DAYS * 86400)
    chain_writer.bind(connection, chain)
    (is_cleaner,) = connection.execute("SELECT pg_try_advisory_xact_lock(%s)", (_LOCK,)).fetchone() or (False,)
    if is_cleaner:
        for free in chain_writer.extend_free(connection):
            removed = max(removed, _delete_audit_rows(connection, free, retention, now=now, total=total))
            pg_audit_sql.merge_old_totals(connection, pg_chain_sql.number_of(free), now - RETENTION_DAYS * 86400)
            chain_writer.seal(free, closed=free.head.closed)
        removed = max(removed, _delete_shared(connection, pg_chain_sql.number_of(chain), retention, now))
    return removed >= pg_audit_sql.SLICE


def _delete_audit_rows(
    connection: Connection, chain: ChainExtension, retention: Retention, *, now: float, total: int
) -> int:
    """Deletes expired rows of one chain: rows that are too old, and, if the rows of all chains exceed the size limit,
    its part of the oldest rows. The nodes that extend the other chains delete theirs.
    """
    number = pg_chain_sql.number_of(chain)
    return pg_audit_sql.delete_expired(
        connection,
        chain,
        before=now - retention.days * 86400,
        now=now,
        excess=pg_audit_sql.excess_of(connection, number, total - retention.bytes),
    )


def _delete_shared(connection: Connection, chain: int, retention: Retention, now: float) -> int:
    """Deletes expired data that belongs to all nodes; returns the largest number of rows of one kind."""
    pg_spending_sql.delete_expired(connection, now)
    pg_limits_sql.delete_expired(connection)
    pg_vendor_file_sql.delete_excess(connection)
    conversations_before = now - retention.conversation_days * 86400
    return max(
        pg_a2a_task_sql.delete_expired(connection, now - retention.result_ttl_s, now - MESSAGE_TTL_S),
        pg_journal_sql.delete_expired(
            connection,
            results_before=now - retention.result_ttl_s,
            ids_before=now - ID_TTL_S,
            runs_before=now - ID_TTL_S,
            rows=pg_audit_sql.SLICE,
        ),
        pg_conversation_sql.delete_expired(
            connection, before=conversations_before, now=now, max_bytes=retention.conversation_bytes
        ),
        pg_copy_sql.delete_expired(
            connection, chain, before=conversations_before, max_bytes=retention.conversation_bytes
        ),
    )
