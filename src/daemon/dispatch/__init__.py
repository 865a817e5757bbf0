"""The road of a call: router, admission, permits, deadlines.

Who calls it: the transports. What it knows: tools, providers' doors, the clock of the loop. What it must never know:
frames, sockets, where an answer travels (a ``CallPort`` does).
"""

from .calls import CallPort, EndedBy, Meter, RunningCall, Session
from .gate import ProviderGate
from .permits import Permits, RunPermit
from .router import Bounds, Recorder, Router

__all__ = [
    "Bounds",
    "CallPort",
    "EndedBy",
    "Meter",
    "Permits",
    "ProviderGate",
    "Recorder",
    "Router",
    "RunPermit",
    "RunningCall",
    "Session",
]
