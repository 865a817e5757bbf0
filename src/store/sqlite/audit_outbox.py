"""The SQL of the audit outbox: the calls that were sent to Supabase, still have to be sent, or were refused."""

import sqlite3
from collections.abc import Iterable

from ..audit_rows import COLUMNS, audit_row
from ..store_rows import AuditOutboxState, ChainedRow, SettledCalls

_STATE = """
SELECT settled_seq, sent, refused, dropped, last_sent_at,
       coalesce((SELECT min(seq) FROM call), 0), coalesce((SELECT max(seq) FROM call), 0)
FROM (SELECT 1) LEFT JOIN outbox
"""

_SETTLE = """
INSERT INTO outbox (one, settled_seq, sent, refused, dropped, last_sent_at) VALUES (1, ?1, ?2, ?3, ?4, ?5)
ON CONFLICT DO UPDATE SET
    settled_seq = max(settled_seq, excluded.settled_seq),
    sent = sent + excluded.sent,
    refused = refused + excluded.refused,
    dropped = dropped + excluded.dropped,
    last_sent_at = coalesce(excluded.last_sent_at, last_sent_at)
"""


def state(connection: sqlite3.Connection) -> AuditOutboxState:
    """Returns the state of the outbox; reads the ends of an index, never the rows."""
    settled, sent, refused, dropped, last_sent_at, first, last = connection.execute(_STATE).fetchone()
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


def unsent(connection: sqlite3.Connection, after: int, limit: int) -> list[ChainedRow]:
    """Returns the oldest calls after a seq, in order."""
    rows = connection.execute(
        f"SELECT seq, mac, {', '.join(COLUMNS)} FROM call WHERE seq > ? ORDER BY seq LIMIT ?",  # noqa: S608 - our own names
        (after, limit),
    )
    return [ChainedRow(seq=seq, mac=mac, call=audit_row(fields)) for seq, mac, *fields in rows]


def settle(connection: sqlite3.Connection, settled: Iterable[SettledCalls]) -> None:
    """Records which calls were sent, refused or dropped, within the caller's transaction."""
    for batch in settled:
        at = batch.at if batch.sent else None
        connection.execute(_SETTLE, (batch.up_to, batch.sent, len(batch.refused), batch.dropped, at))
        connection.executemany(
            "INSERT OR IGNORE INTO refused (seq, reason, refused_at) VALUES (?, ?, ?)",
            [(seq, reason, batch.at) for seq, reason in batch.refused.items()],
        )
