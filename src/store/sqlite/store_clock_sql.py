"""The SQL of the store's clock: loads the time from which it continues, and saves it."""

import sqlite3
import time
from typing import Final

from ..store_clock import StoreClock

# One maximum per state, so that SQLite needs only the index on (state, ended_at).
_LATEST: Final = """
SELECT max(at) FROM (
    SELECT at FROM store_clock
    UNION ALL SELECT max(seen_at) FROM session
    UNION ALL SELECT max(ended_at) FROM journal WHERE state = 'done'
    UNION ALL SELECT max(ended_at) FROM journal WHERE state = 'expired'
    UNION ALL SELECT max(ended_at) FROM journal WHERE state = 'interrupted'
)
"""


def load(connection: sqlite3.Connection) -> StoreClock:
    """Returns the clock of a database. It continues from the latest time that was saved or is in the journal; in an
    empty database, it begins with the system's clock.
    """
    (latest,) = connection.execute(_LATEST).fetchone()
    return StoreClock(time.time() if latest is None else latest)


def save(connection: sqlite3.Connection, clock: StoreClock) -> None:
    """Stores the clock's current time. If a crash loses the latest time, data expires later by that much."""
    connection.execute(
        "INSERT INTO store_clock (one, at) VALUES (1, ?) ON CONFLICT DO UPDATE SET at = excluded.at", (clock.now(),)
    )
