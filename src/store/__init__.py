"""The embedded database: what is kept of calls, sessions and conversations, and the sums.

All SQL of the house is here.
"""

from .archive import Archive, open_archive
from .chain import GENESIS, KEY_BYTES, Checkpoint, Head, Seal, Trail, canonical, clean, microseconds
from .conversations import KeptConversation, KeptTurn, Spoken
from .retention import Retention
from .rows import (
    CallRow,
    ChainedRow,
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
    "GENESIS",
    "KEY_BYTES",
    "SCHEMA",
    "Archive",
    "CallRow",
    "ChainedRow",
    "Checkpoint",
    "Ended",
    "Head",
    "KeptCall",
    "KeptConversation",
    "KeptSession",
    "KeptTurn",
    "OutboxState",
    "Retention",
    "Seal",
    "SessionRow",
    "Settled",
    "Spoken",
    "Started",
    "Store",
    "StoreError",
    "Totals",
    "Trail",
    "canonical",
    "clean",
    "microseconds",
    "open_archive",
    "schema_version",
]
