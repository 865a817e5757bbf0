"""The embedded database: calls, sessions, conversations, and sums. All SQL is in this package."""

from .a2a_push_sql import A2APushDeleted, A2APushProgress, A2APushRow
from .a2a_task_rows import A2AEarlier, A2AEvent, A2AMessageRow, A2ATaskPage, A2ATaskQuery, A2ATaskRow
from .archive import Archive, open_archive
from .audit_chain import (
    GENESIS,
    KEY_BYTES,
    ChainHead,
    ChainSigner,
    ChainTrail,
    Checkpoint,
    canonical,
    clean,
    microseconds,
)
from .audit_trail import AuditTrail
from .call_journal import CallJournal
from .call_search_sql import CallFilter, CallPage
from .conversation_outbox import ConversationCopy, ConversationOutboxState, NewCopy, SettledConversationCopies
from .conversation_sql import ConversationUpdate, StoredConversation, StoredTurn
from .conversation_store import ConversationStore
from .job_sql import JobStep, StoredJob
from .node_lease import NodeLease, boot_time
from .node_rows import NodeRow, NodeState, SessionHeldError, Suspicion, may_bury
from .pause_sql import decision_hash
from .registry_entry_sql import RegistryEntryChange, RegistryEntryDeleted, RegistryEntryRow, RegistryEntrySaved
from .registry_entry_store import RegistryEntryStore
from .retention import Retention
from .run_usage import RunUsage
from .schema_check import SchemaDifference
from .session_store import SessionStore
from .spending_sql import DailyUsage, day_of
from .store import Store
from .store_rows import (
    AuditOutboxState,
    CallEnd,
    CallPause,
    CallRow,
    CallStart,
    CallTotals,
    ChainedRow,
    DetachedRequest,
    InputDecided,
    SessionRow,
    SettledCalls,
    StoredCall,
    StoredCallState,
    StoredDetachedCall,
    StoredRequest,
    StoredSession,
    UnstartedCall,
)
from .store_schema import DAMAGE_REMEDY, SCHEMA, StoreError, find_damage, is_out_of_space, schema_version
from .user_credential_sql import UserCredentialDeleted, UserCredentialRow
from .vendor_file_sql import VendorFileDeleted, VendorFileUploaded

__all__ = [
    "DAMAGE_REMEDY",
    "GENESIS",
    "KEY_BYTES",
    "SCHEMA",
    "A2AEarlier",
    "A2AEvent",
    "A2AMessageRow",
    "A2APushDeleted",
    "A2APushProgress",
    "A2APushRow",
    "A2ATaskPage",
    "A2ATaskQuery",
    "A2ATaskRow",
    "Archive",
    "AuditOutboxState",
    "AuditTrail",
    "CallEnd",
    "CallFilter",
    "CallJournal",
    "CallPage",
    "CallPause",
    "CallRow",
    "CallStart",
    "CallTotals",
    "ChainHead",
    "ChainSigner",
    "ChainTrail",
    "ChainedRow",
    "Checkpoint",
    "ConversationCopy",
    "ConversationOutboxState",
    "ConversationStore",
    "ConversationUpdate",
    "DailyUsage",
    "DetachedRequest",
    "InputDecided",
    "JobStep",
    "NewCopy",
    "NodeLease",
    "NodeRow",
    "NodeState",
    "RegistryEntryChange",
    "RegistryEntryDeleted",
    "RegistryEntryRow",
    "RegistryEntrySaved",
    "RegistryEntryStore",
    "Retention",
    "RunUsage",
    "SchemaDifference",
    "SessionHeldError",
    "SessionRow",
    "SessionStore",
    "SettledCalls",
    "SettledConversationCopies",
    "Store",
    "StoreError",
    "StoredCall",
    "StoredCallState",
    "StoredConversation",
    "StoredDetachedCall",
    "StoredJob",
    "StoredRequest",
    "StoredSession",
    "StoredTurn",
    "Suspicion",
    "UnstartedCall",
    "UserCredentialDeleted",
    "UserCredentialRow",
    "VendorFileDeleted",
    "VendorFileUploaded",
    "boot_time",
    "canonical",
    "clean",
    "day_of",
    "decision_hash",
    "find_damage",
    "is_out_of_space",
    "may_bury",
    "microseconds",
    "open_archive",
    "schema_version",
]
