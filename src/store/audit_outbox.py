"""The SQL of the outbox: which calls have been sent, which are still to send, which were refused."""

import sqlite3
from collections.abc import Iterable

from . import audit_sql
from .store_rows import AuditOutboxState, ChainedRow, SettledCalls

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
    """How far the outbox is; reads the ends of an index, never the rows."""
    settled, sent, refused, dropped, last_sent_at, first, last = connection.execute(_STATE).fetchone()
    if settled is None:  # nothing was ever sent: what is kept is to send, and nothing before it was lost
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
    """The oldest calls after a seq, in order."""
    found = connection.execute(
        f"SELECT seq, mac, {', '.join(audit_sql.COLUMNS)} FROM call WHERE seq > ? ORDER BY seq LIMIT ?",  # noqa: S608 - our own names
        (after, limit),
    )
    return [ChainedRow(seq=seq, mac=mac, call=audit_sql.row(fields)) for seq, mac, *fields in found]


def settle(connection: sqlite3.Connection, settled: Iterable[SettledCalls]) -> None:
    """Write down what has become of calls, within a transaction of the caller's."""
    for some in settled:
        at = some.at if some.sent else None
        connection.execute(_SETTLE, (some.up_to, some.sent, len(some.refused), some.dropped, at))
        connection.executemany(
            "INSERT OR IGNORE INTO refused (seq, reason, refused_at) VALUES (?, ?, ?)",
            [(seq, reason, some.at) for seq, reason in some.refused.items()],
        )
