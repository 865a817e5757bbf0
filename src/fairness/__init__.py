"""Permits: limits on concurrency, shared fairly between principals.

Used by dispatch for sessions, the daemon and providers, and by sources for requests to one API. Knows the event loop
and names of principals. Must not know calls, tools or settings.
"""

from .fair_queue import FairQueue
from .permits import PermitOf, Permits, RunPermit

__all__ = ["FairQueue", "PermitOf", "Permits", "RunPermit"]
