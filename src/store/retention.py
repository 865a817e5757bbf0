"""The age and size beyond which stored data is deleted."""

from dataclasses import dataclass

from .store_limits import UNFINISHED_BYTES


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
    unfinished_bytes: int = UNFINISHED_BYTES
    """The size of the results of one principal's runs that have not ended; beyond it the oldest are deleted."""
    conversation_days: int = 30
    """The time since a conversation was last used, and the age of unsent copies."""
    conversation_bytes: int = 256 * 1024**2
    """The size of all conversations; beyond it the least recently used are deleted. Unsent copies have a limit of the
    same size; beyond it the oldest are deleted."""
