"""The embedded database: what is kept of calls, sessions and conversations, and the sums.

All SQL of the house is here.
"""

from .archive import Archive, open_archive
from .audit_chain import (
    GENESIS,
    KEY_BYTES,
    ChainHead,
    ChainSeal,
    ChainTrail,
    Checkpoint,
    canonical,
    clean,
    microseconds,
)
from .conversation_outbox import ConversationCopy, ConversationOutboxState, NewCopy, SettledConversationCopies
from .conversation_sql import ConversationUpdate, StoredConversation, StoredTurn
from .retention import Retention
from .spending_sql import DaySpent, day_of
from .store import Store
from .store_rows import (
    AuditOutboxState,
    CallEnd,
    CallOrder,
    CallRow,
    CallStart,
    CallTotals,
    ChainedRow,
    SessionRow,
    SettledCalls,
    StoredCall,
    StoredCallState,
    StoredDetachedCall,
    StoredSession,
)
from .store_schema import MEND_DAMAGE, SCHEMA, StoreError, find_damage, schema_version

__all__ = [
    "GENESIS",
    "KEY_BYTES",
    "MEND_DAMAGE",
    "SCHEMA",
    "Archive",
    "AuditOutboxState",
    "CallEnd",
    "CallOrder",
    "CallRow",
    "CallStart",
    "CallTotals",
    "ChainHead",
    "ChainSeal",
    "ChainTrail",
    "ChainedRow",
    "Checkpoint",
    "ConversationCopy",
    "ConversationOutboxState",
    "ConversationUpdate",
    "DaySpent",
    "NewCopy",
    "Retention",
    "SessionRow",
    "SettledCalls",
    "SettledConversationCopies",
    "Store",
    "StoreError",
    "StoredCall",
    "StoredCallState",
    "StoredConversation",
    "StoredDetachedCall",
    "StoredSession",
    "StoredTurn",
    "canonical",
    "clean",
    "day_of",
    "find_damage",
    "microseconds",
    "open_archive",
    "schema_version",
]
