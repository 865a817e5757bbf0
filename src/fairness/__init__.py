"""Permits: limits on concurrency, shared fairly between principals.

Dispatch uses permits for sessions, the daemon and providers; sources use them for requests to one API. This package
knows the event loop and names of principals. It must not know calls, tools or settings.
"""

from .fair_queue import FairQueue
from .permits import PermitOf, Permits, RunPermit

__all__ = ["FairQueue", "PermitOf", "Permits", "RunPermit"]
