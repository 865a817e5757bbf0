"""The store's clock, by which results, ids and sessions expire. It advances while a daemon runs and stands still while
none does, so no change of the system's clock, before or after a restart, makes the store forget an id.

Callers use Unix times. The store converts them by their age: what is an hour old by the system's clock is stored as an
hour old by this one.
"""

import sqlite3
import time
from typing import Final

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


class StoreClock:
    """Advances with the monotonic clock from ``start``, a time of this clock in seconds. Immutable, so thread-safe."""

    def __init__(self, start: float) -> None:
        self._offset = start - time.monotonic()

    def now(self) -> float:
        """Returns the present time of this clock."""
        return time.monotonic() + self._offset

    def stored_time(self, unix_time: float) -> float:
        """Converts a recent Unix time to a time of this clock."""
        return self.now() - (time.time() - unix_time)

    def unix_time(self, stored_time: float) -> float:
        """Converts a time of this clock to the Unix time with the same age."""
        return time.time() - (self.now() - stored_time)


def load(connection: sqlite3.Connection) -> StoreClock:
    """Returns the clock of a database. It continues from the last time that was saved or is found in the journal; in an
    empty database it begins with the system's clock.
    """
    (latest,) = connection.execute(_LATEST).fetchone()
    return StoreClock(time.time() if latest is None else latest)


def save(connection: sqlite3.Connection, clock: StoreClock) -> None:
    """Stores the present time of the clock. Time that a crash loses makes data expire that much later."""
    connection.execute(
        "INSERT INTO store_clock (one, at) VALUES (1, ?) ON CONFLICT DO UPDATE SET at = excluded.at", (clock.now(),)
    )
