"""The embedded database: what is kept of calls, sessions and conversations, and the sums.

All SQL of the house is here.
"""

from .archive import Archive, open_archive
from .chain import GENESIS, KEY_BYTES, Checkpoint, Head, Seal, Trail, canonical, clean, microseconds
from .conversations import KeptConversation, KeptTurn, Spoken
from .copies import CopiesState, Copy, Said, SettledCopies
from .retention import Retention
from .rows import (
    CallRow,
    ChainedRow,
    Ended,
    KeptCall,
    KeptDetached,
    KeptSession,
    KeptState,
    Order,
    OutboxState,
    SessionRow,
    Settled,
    Started,
    Totals,
)
from .schema import MEND_DAMAGE, SCHEMA, StoreError, find_damage, schema_version
from .spending import DaySpent, day_of
from .store import Store

__all__ = [
    "GENESIS",
    "KEY_BYTES",
    "MEND_DAMAGE",
    "SCHEMA",
    "Archive",
    "CallRow",
    "ChainedRow",
    "Checkpoint",
    "CopiesState",
    "Copy",
    "DaySpent",
    "Ended",
    "Head",
    "KeptCall",
    "KeptConversation",
    "KeptDetached",
    "KeptSession",
    "KeptState",
    "KeptTurn",
    "Order",
    "OutboxState",
    "Retention",
    "Said",
    "Seal",
    "SessionRow",
    "Settled",
    "SettledCopies",
    "Spoken",
    "Started",
    "Store",
    "StoreError",
    "Totals",
    "Trail",
    "canonical",
    "clean",
    "day_of",
    "find_damage",
    "microseconds",
    "open_archive",
    "schema_version",
]
