"""The road of a call: router, admission, permits, deadlines.

Who calls it: the transports. What it knows: tools, providers' doors, the clock of the loop. What it must never know:
frames, sockets, where an answer travels (a ``CallPort`` does).
"""

from .bounds import Bounds
from .calls import CallPort, EndedBy, Meter, RunningCall, Session
from .context import Conversations
from .gate import ProviderGate
from .outcome import replayed
from .permits import Permits, RunPermit
from .recording import Journal, Recorder
from .router import Router
from .sessions import SessionKeeper

__all__ = [
    "Bounds",
    "CallPort",
    "Conversations",
    "EndedBy",
    "Journal",
    "Meter",
    "Permits",
    "ProviderGate",
    "Recorder",
    "Router",
    "RunPermit",
    "RunningCall",
    "Session",
    "SessionKeeper",
    "replayed",
]
