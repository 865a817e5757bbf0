"""Settles the calls, sessions and limits of a dead node, in the transaction that declares it dead."""

from collections.abc import Callable, Sequence
from typing import Any

import psycopg
import structlog

from ..commit_entries import InterruptedCall
from ..store_clock import StoreClock
from . import pg_interrupted_sql, pg_limits_sql, pg_node_sql, pg_run_sql, pg_session_sql

Connection = psycopg.Connection[tuple[Any, ...]]

_log = structlog.get_logger(__name__)


def settle_node(
    connection: Connection, epoch: str, clock: StoreClock, write: Callable[[Sequence[InterruptedCall]], None]
) -> int:
    """Ends the calls of a dead node with ``write``, releases its sessions and its detached calls, and frees its limits.
    Returns how many audit rows are lost because they cannot be decoded.
    """
    calls = pg_interrupted_sql.interrupted_calls(connection, epoch, clock.now(), unix_time=clock.unix_time)
    lost = sum(call.row is None for call in calls)
    if lost:
        _log.error("audit rows of interrupted calls lost; they cannot be decoded", rows=lost)
    write(calls)
    pg_interrupted_sql.release_detached(connection, epoch)
    pg_run_sql.finish_of_node(connection, epoch)
    pg_session_sql.release_of_node(connection, epoch)
    pg_node_sql.fold_kept(connection, epoch)
    pg_limits_sql.free_limits(connection, epoch)
    _log.warning("a node is dead", epoch=epoch, interrupted_calls=len(calls))
    return lost
