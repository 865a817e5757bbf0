"""The road of a call: router, admission, permits, deadlines.

Who calls it: the transports. What it knows: tools, providers' doors, the clock of the loop. What it must never know:
frames, sockets, where an answer travels (a ``CallPort`` does).
"""

from .allowances import Allowance, Allowances
from .bounds import Bounds
from .calls import CallPort, EndedBy, Meter, RunningCall, Session, UnheardPort
from .context import Conversations, Speaker
from .gate import ProviderGate
from .outcome import failed, replayed, without_children
from .permits import Permits, RunPermit
from .rates import Rate, RateLimits
from .recording import Journal, Recorder
from .router import Router
from .sessions import SessionKeeper

__all__ = [
    "Allowance",
    "Allowances",
    "Bounds",
    "CallPort",
    "Conversations",
    "EndedBy",
    "Journal",
    "Meter",
    "Permits",
    "ProviderGate",
    "Rate",
    "RateLimits",
    "Recorder",
    "Router",
    "RunPermit",
    "RunningCall",
    "Session",
    "SessionKeeper",
    "Speaker",
    "UnheardPort",
    "failed",
    "replayed",
    "without_children",
]
