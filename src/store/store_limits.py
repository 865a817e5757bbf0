"""The limits of stored data, and the times of the writer, for all databases."""

from typing import Final

GROUP_WINDOW_S: Final = 0.1
"""Rows recorded within this time share one commit; a crash may lose the rows of this time."""


ROWS_PER_STATEMENT: Final = 100
"""Rows per INSERT statement. The sqlite3 module releases the interpreter lock with each statement and, while the event
loop is busy, reacquires it after up to 5 ms (measured: 1 ms per row with ``executemany``, 0.07 ms with 100 rows)."""


SEARCHED_ROWS: Final = 20_000
"""How many of the newest rows are searched for those of a principal: some hundredths of a second."""


ID_TTL_S: Final = 7 * 86400.0
"""How long an id is stored after its call ended, and a session after it was last seen, by the store's clock."""


UNFINISHED_BYTES: Final = 256 * 1024**2
"""The default limit of the results of one principal's runs that have not ended."""


RETENTION_DAYS: Final = 400
"""How long sums are stored: a year can be compared with the year before."""


MAX_COUNT: Final = 2**53
"""The largest accepted count from a vendor, near the largest integers of SQLite, and of JSON in most languages."""


SCANNED_ROWS: Final = 20_000
"""How many rows one search reads, newest first; the next search continues where it stopped."""


PIECE_ROWS: Final = 1_000
"""How many rows one query of a search reads. Other readers of the store wait during a query, and 20,000 rows with full
arguments take more than a second.
"""


MAX_CHILDREN: Final = 1_000


MAX_A2A_TASKS: Final = 100_000
"""The maximum number of stored tasks of all principals; beyond it, the oldest ended tasks are deleted."""


MESSAGE_TTL_S: Final = 7 * 86400.0
"""The minimum time for which a message is stored, so that a repeat begins no second task; the same as for request ids
(``ID_TTL_S``).
"""


MAX_EVENTS: Final = 100
"""The maximum number of events that one read returns."""


MAX_EVENT_BYTES: Final = 1024**2
"""The maximum bytes of events that one read returns; a single event may have more: an answer may have 20 MiB."""


RESEALED_AT_ONCE: Final = 100
"""The maximum number of rows per search for credentials that must be encrypted again."""


MAX_OWNERS: Final = 100_000
"""The maximum number of records of owners of vendor files, some 10 MB. Beyond it the oldest are deleted, and only
operators see their files. A Kimi account has at most 1,000 files, but the records of files that are deleted elsewhere
stay here."""
