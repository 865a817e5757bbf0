"""The road of a call: router, admission, permits, deadlines.

Who calls it: the transports. What it knows: tools, providers' doors, the clock of the loop. What it must never know:
frames, sockets, where an answer travels (a ``CallPort`` does).
"""

from .call_context import ConversationAccess, Speaker
from .call_outcome import failed, replayed, without_children
from .dispatch_limits import DispatchLimits
from .permits import Permits, RunPermit
from .principal_limits import PrincipalLimit, PrincipalLimits
from .provider_limiter import ProviderLimiter
from .rate_limits import RateLimits, SourceRate
from .recording_ports import JournalPort, RecorderPort
from .router import Router
from .running_call import CallPort, DetachedPort, EndReason, RunningCall, Session, UsageMeter
from .session_manager import SessionManager

__all__ = [
    "CallPort",
    "ConversationAccess",
    "DetachedPort",
    "DispatchLimits",
    "EndReason",
    "JournalPort",
    "Permits",
    "PrincipalLimit",
    "PrincipalLimits",
    "ProviderLimiter",
    "RateLimits",
    "RecorderPort",
    "Router",
    "RunPermit",
    "RunningCall",
    "Session",
    "SessionManager",
    "SourceRate",
    "Speaker",
    "UsageMeter",
    "failed",
    "replayed",
    "without_children",
]
