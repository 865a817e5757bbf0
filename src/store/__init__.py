"""The daemon's database: calls, sessions, conversations, and sums. All SQL is in this package."""

from .a2a_push_rows import A2APushDeleted, A2APushProgress, A2APushRow
from .a2a_task_rows import A2AEarlier, A2AEvent, A2AMessageRow, A2ATaskPage, A2ATaskQuery, A2ATaskRow
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
from .call_filter import CallFilter, CallPage
from .call_journal import CallJournal
from .chain_binding import ChainEnd, bound_hash, chain_key, last_bound
from .cluster_port import ClusterPort
from .conversation_rows import (
    ConversationCopy,
    ConversationHeldError,
    ConversationOutboxState,
    ConversationUpdate,
    NewCopy,
    SettledConversationCopies,
    StoredConversation,
    StoredTurn,
)
from .conversation_store import ConversationStore
from .daily_usage import DailyUsage, day_of
from .node_lease import NodeLease, boot_time
from .node_rows import NodeRow, NodeState, SessionHeldError, Suspicion, may_declare_dead
from .registry_entry_rows import RegistryEntryChange, RegistryEntryDeleted, RegistryEntryRow, RegistryEntrySaved
from .registry_entry_store import RegistryEntryStore
from .result_storage import (
    PLAIN_HANDLE,
    TOMBSTONE_TTL_S,
    ResultDeletedError,
    ResultFile,
    ResultSizeError,
    ResultStorage,
    ResultUnknownError,
)
from .retention import Retention
from .run_rows import JobStep, RunUsage, StoredJob
from .schema_difference import SchemaDifference
from .session_store import SessionStore
from .shared_limits import (
    AdmitAnswer,
    AdmitDecision,
    AdmitRequest,
    BudgetLimit,
    BudgetUse,
    QuotaUse,
    RateSlot,
    RunningShare,
    SharedLimitsPort,
    TakenCall,
)
from .shared_pins import PinNews, SharedPinsPort, StoredPins
from .sqlite.archive import Archive, open_archive
from .sqlite.sqlite_store import open_sqlite_store
from .sqlite.store_schema import DAMAGE_REMEDY, SCHEMA, find_damage, is_out_of_space, schema_version
from .store import Store
from .store_errors import NodeFencedError, StoreError
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
    Sums,
    UnstartedCall,
    decision_hash,
)
from .user_credential_rows import UserCredentialDeleted, UserCredentialRow
from .vendor_file_rows import VendorFileDeleted, VendorFileUploaded

__all__ = [
    "DAMAGE_REMEDY",
    "GENESIS",
    "KEY_BYTES",
    "PLAIN_HANDLE",
    "SCHEMA",
    "TOMBSTONE_TTL_S",
    "A2AEarlier",
    "A2AEvent",
    "A2AMessageRow",
    "A2APushDeleted",
    "A2APushProgress",
    "A2APushRow",
    "A2ATaskPage",
    "A2ATaskQuery",
    "A2ATaskRow",
    "AdmitAnswer",
    "AdmitDecision",
    "AdmitRequest",
    "Archive",
    "AuditOutboxState",
    "AuditTrail",
    "BudgetLimit",
    "BudgetUse",
    "CallEnd",
    "CallFilter",
    "CallJournal",
    "CallPage",
    "CallPause",
    "CallRow",
    "CallStart",
    "CallTotals",
    "ChainEnd",
    "ChainHead",
    "ChainSigner",
    "ChainTrail",
    "ChainedRow",
    "Checkpoint",
    "ClusterPort",
    "ConversationCopy",
    "ConversationHeldError",
    "ConversationOutboxState",
    "ConversationStore",
    "ConversationUpdate",
    "DailyUsage",
    "DetachedRequest",
    "InputDecided",
    "JobStep",
    "NewCopy",
    "NodeFencedError",
    "NodeLease",
    "NodeRow",
    "NodeState",
    "PinNews",
    "QuotaUse",
    "RateSlot",
    "RegistryEntryChange",
    "RegistryEntryDeleted",
    "RegistryEntryRow",
    "RegistryEntrySaved",
    "RegistryEntryStore",
    "ResultDeletedError",
    "ResultFile",
    "ResultSizeError",
    "ResultStorage",
    "ResultUnknownError",
    "Retention",
    "RunUsage",
    "RunningShare",
    "SchemaDifference",
    "SessionHeldError",
    "SessionRow",
    "SessionStore",
    "SettledCalls",
    "SettledConversationCopies",
    "SharedLimitsPort",
    "SharedPinsPort",
    "Store",
    "StoreError",
    "StoredCall",
    "StoredCallState",
    "StoredConversation",
    "StoredDetachedCall",
    "StoredJob",
    "StoredPins",
    "StoredRequest",
    "StoredSession",
    "StoredTurn",
    "Sums",
    "Suspicion",
    "TakenCall",
    "UnstartedCall",
    "UserCredentialDeleted",
    "UserCredentialRow",
    "VendorFileDeleted",
    "VendorFileUploaded",
    "boot_time",
    "bound_hash",
    "canonical",
    "chain_key",
    "clean",
    "day_of",
    "decision_hash",
    "find_damage",
    "is_out_of_space",
    "last_bound",
    "may_declare_dead",
    "microseconds",
    "open_archive",
    "open_sqlite_store",
    "schema_version",
]
