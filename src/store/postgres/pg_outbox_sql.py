"""The SQL of the audit outbox on PostgreSQL: the calls of each chain that still have to be sent to Supabase."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import psycopg

from ..audit_rows import COLUMNS
from ..chain_extension import ChainExtension
from ..store_rows import AuditOutboxState, ChainedRow, SettledCalls
from . import pg_chain_sql
from .pg_audit_sql import stored_row
from .pg_values import pg_text

Connection = psycopg.Connection[tuple[Any, ...]]

_STATE: Final = """
SELECT settled_seq, sent, refused, dropped, last_sent_at,
       coalesce((SELECT min(seq) FROM call WHERE chain = %(chain)s), 0),
       coalesce((SELECT max(seq) FROM call WHERE chain = %(chain)s), 0)
FROM (SELECT 1) AS one LEFT JOIN outbox ON chain = %(chain)s
"""

_SETTLE: Final = """
INSERT INTO outbox (chain, settled_seq, sent, refused, dropped, last_sent_at) VALUES (%s, %s, %s, %s, %s, %s)
ON CONFLICT (chain) DO UPDATE SET
    settled_seq = greatest(outbox.settled_seq, excluded.settled_seq),
    sent = outbox.sent + excluded.sent,
    refused = outbox.refused + excluded.refused,
    dropped = outbox.dropped + excluded.dropped,
    last_sent_at = coalesce(excluded.last_sent_at, outbox.last_sent_at)
"""


def state(connection: Connection, chain: int) -> AuditOutboxState:
    """Returns the state of a chain's outbox; reads the ends of an index, never the rows."""
    found = connection.execute(_STATE, {"chain": chain}).fetchone()
    settled, sent, refused, dropped, last_sent_at, first, last = found or (None, 0, 0, 0, None, 0, 0)
    if settled is None:  # before the first send: all stored rows are unsent, and none was dropped
        settled, sent, refused, dropped = max(0, first - 1), 0, 0, 0
    return AuditOutboxState(
        settled_seq=settled,
        backlog=max(0, last - max(settled, first - 1)),
        sent=sent,
        refused=refused,
        dropped=dropped,
        last_sent_at=last_sent_at,
    )


def unsent(connection: Connection, chain: int, after: int, limit: int) -> list[ChainedRow]:
    """Returns the oldest calls of a chain after a seq, in order."""
    rows = connection.execute(
        f"SELECT seq, mac, {', '.join(COLUMNS)} FROM call WHERE chain = %s AND seq > %s ORDER BY seq LIMIT %s",
        (chain, after, limit),
    )
    return [ChainedRow(seq=seq, mac=mac, call=stored_row(fields)) for seq, mac, *fields in rows]


def settle(connection: Connection, chain: ChainExtension, settled: Sequence[SettledCalls]) -> None:
    """Records which calls of a chain were sent, refused or dropped, within the caller's transaction."""
    number = pg_chain_sql.number_of(chain)
    settled_before = pg_chain_sql.settled_seq(connection, number)
    _count(connection, number, settled)
    for batch in settled:
        pg_chain_sql.mark_sent(connection, number, batch.checkpoints)
    refused = [seq for batch in settled for seq in batch.refused if seq > settled_before]
    chain.add_refused(pg_chain_sql.existing_seqs(connection, number, refused))


def _count(connection: Connection, number: int, settled: Iterable[SettledCalls]) -> None:
    for batch in settled:
        at = batch.at if batch.sent else None
        connection.execute(_SETTLE, (number, batch.up_to, batch.sent, len(batch.refused), batch.dropped, at))
        for seq, reason in batch.refused.items():
            connection.execute(
                "INSERT INTO refused (chain, seq, reason, refused_at) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
                (number, seq, pg_text(reason), batch.at),
            )
