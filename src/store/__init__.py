"""The embedded database: what is kept of each call, and the sums. All SQL of the house is here."""

from .archive import Archive, open_archive
from .retention import Retention
from .rows import (
    CallRow,
    Ended,
    KeptCall,
    KeptSession,
    OutboxState,
    SessionRow,
    Settled,
    Started,
    Totals,
)
from .schema import SCHEMA, StoreError, schema_version
from .store import Store

__all__ = [
    "SCHEMA",
    "Archive",
    "CallRow",
    "Ended",
    "KeptCall",
    "KeptSession",
    "OutboxState",
    "Retention",
    "SessionRow",
    "Settled",
    "Started",
    "Store",
    "StoreError",
    "Totals",
    "open_archive",
    "schema_version",
]
