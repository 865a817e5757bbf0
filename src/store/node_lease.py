"""The lease of a node of a cluster: how long this process may answer for the sessions that it holds.

Each commit of a node sets the lease in the database to ``now() + lease_s`` by the database's clock, unless another node
has declared this one dead. The node calculates its lease with its own clock, from the moment before it sent the commit.
So for the node, the lease ends earlier than in the database, however long the commit took. It uses only a part of the
lease, because other nodes may declare it dead during the rest if it does not answer them.

Pure: callers pass the time, which is ``boot_time()``.
"""

import time
from typing import Final

CLOCK_DRIFT: Final = 0.01
"""The share of a lease that a node does not use, because its clock and the database's may run at different rates. NTP
slews a clock by at most 0.0005.
"""
VALID_SHARE: Final = 0.75
"""The share of a lease during which its node may answer for its sessions. In the rest of the lease, a node that does
not answer the other nodes may be declared dead.
"""
HEARTBEATS: Final = 4
"""The number of renewals of an idle node per lease."""

_BOOT_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""A clock that continues while the machine sleeps. On macOS, this is the monotonic clock of the C library."""


def boot_time() -> float:
    """Returns the seconds since the machine started, including those in which it slept."""
    return time.clock_gettime(_BOOT_CLOCK)


class NodeLease:
    """The lease of this node, as measured by this process.

    The store's writer thread renews and fences it; any thread may read it. A node without a valid lease neither
    receives nor sends frames on sessions that can be resumed, because another node may hold them now.
    """

    def __init__(self, lease_s: float) -> None:
        self.lease_s: Final = lease_s
        self._good_until = float("-inf")
        self._fenced: str | None = None

    def __repr__(self) -> str:
        return f"<NodeLease {self._fenced or f'until {self._good_until:.3f}'}>"

    @property
    def fenced(self) -> str | None:
        """The reason why this node must end; None if it may continue. It never becomes None again."""
        return self._fenced

    @property
    def good_until(self) -> float:
        """When the valid part of the lease ends unless it is renewed; minus infinity before the first commit."""
        return self._good_until

    def good(self, now: float) -> bool:
        """Whether this node may answer for its sessions."""
        return now < self._good_until and self._fenced is None

    def renewed(self, sent_at: float) -> None:
        """Records that a commit succeeded that was sent at this time. Commits may be acknowledged in any order."""
        self._good_until = max(self._good_until, sent_at + self.lease_s * VALID_SHARE * (1 - CLOCK_DRIFT))

    def fence(self, reason: str) -> None:
        """Records that this node was declared dead, or that the database has lost its commits."""
        if self._fenced is None:
            self._fenced = reason

    def heartbeat_due(self, sent_at: float) -> float:
        """Returns when the next empty commit is due, after a commit that was sent at this time."""
        return sent_at + self.lease_s / HEARTBEATS
