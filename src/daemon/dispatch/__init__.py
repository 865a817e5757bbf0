"""Dispatch: the path of every call. Router, admission, permits, deadlines, exactly one answer.

The transports call it. It uses tools, provider limiters and the loop's clock, but no frames or sockets: it sends
answers through a ``CallPort``.
"""

from .admission import RETRY_AFTER_MS
from .budget import Budget
from .call_lookup import journalled_child
from .call_outcome import failed, load_result, replayed, without_children
from .call_phase import CallPhase, EndReason, JournalRecord
from .call_preparation import PreparedCall, conflict_of, prepared
from .call_quotas import CallQuota
from .client_questions import ClientQuestions
from .context_services import ConversationAccess, ConversationCaller
from .dispatch_limits import DispatchLimits
from .held_bytes import UNCOUNTED_BYTES, ByteLimits, HeldBytes
from .node_tokens import NodeTokens, named_token, node_of_token
from .pause_port import PausePort
from .paused_calls import open_requests
from .principal_limits import PrincipalLimit, PrincipalLimits, RunningShares
from .provider_budgets import ProviderBudgets
from .provider_limiter import ProviderLimiter
from .rate_limits import RateLimits, SourceRate
from .recording_ports import JournalPort, RecorderPort
from .result_ports import AbsentResultPort, AwaitedResultPort
from .router import Router
from .running_call import CallPort, DisconnectedPort, RunningCall, Session
from .session_manager import SessionManager
from .usage_meter import UsageMeter
from .vendor_admission import VendorAdmission, VendorAdmissions

__all__ = [
    "RETRY_AFTER_MS",
    "UNCOUNTED_BYTES",
    "AbsentResultPort",
    "AwaitedResultPort",
    "Budget",
    "ByteLimits",
    "CallPhase",
    "CallPort",
    "CallQuota",
    "ClientQuestions",
    "ConversationAccess",
    "ConversationCaller",
    "DisconnectedPort",
    "DispatchLimits",
    "EndReason",
    "HeldBytes",
    "JournalPort",
    "JournalRecord",
    "NodeTokens",
    "PausePort",
    "PreparedCall",
    "PrincipalLimit",
    "PrincipalLimits",
    "ProviderBudgets",
    "ProviderLimiter",
    "RateLimits",
    "RecorderPort",
    "Router",
    "RunningCall",
    "RunningShares",
    "Session",
    "SessionManager",
    "SourceRate",
    "UsageMeter",
    "VendorAdmission",
    "VendorAdmissions",
    "conflict_of",
    "failed",
    "journalled_child",
    "load_result",
    "named_token",
    "node_of_token",
    "open_requests",
    "prepared",
    "replayed",
    "without_children",
]
