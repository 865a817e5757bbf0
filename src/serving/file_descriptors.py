"""Raises the limit on open files to the number that the connections need, and divides the descriptors between the
ports."""

import resource
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

RESERVED: Final = 512
"""Descriptors for everything but clients: the database, result files, workspace files, sandbox workers, MCP servers,
and connections to vendors and APIs. 24 running calls rarely use more than 100."""
_UNAUTHENTICATED_SHARE: Final = 8
"""When descriptors are scarce, an eighth of a port's share is for unauthenticated peers."""
_OPEN_MAX: Final = 10_240
"""The highest soft limit that macOS accepts, even if the hard limit is infinite."""


@dataclass(frozen=True, slots=True)
class DescriptorShares:
    """The number of connections that each of the two ports may have."""

    available: int
    needed: int
    connections: int
    """Of authenticated clients."""
    unauthenticated: int

    @property
    def scarce(self) -> bool:
        return self.available < self.needed


def descriptors_needed(connections: int, unauthenticated: int) -> int:
    """The descriptors for this many connections on each of the two ports, and for everything else."""
    return 2 * (connections + unauthenticated) + RESERVED


def share_descriptors(available: int, connections: int, unauthenticated: int) -> DescriptorShares:
    """The number of connections that ``available`` descriptors allow: at most as many as wanted, and few enough to keep
    the reserved descriptors free. Pure.
    """
    needed = descriptors_needed(connections, unauthenticated)
    if available < needed:
        per_port = max(available - RESERVED, available // 2) // 2
        unauthenticated = max(1, min(unauthenticated, per_port // _UNAUTHENTICATED_SHARE))
        connections = max(1, min(connections, per_port - unauthenticated))
    return DescriptorShares(available, needed, connections, unauthenticated)


def reachable_limit(needed: int) -> int:
    """The limit of open files that ``raise_limit`` can reach, up to ``needed``."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY in {soft, hard}:
        return needed
    return max(soft, min(needed, hard))


def raise_limit(needed: int) -> int:
    """Raises the soft limit of open files to ``needed``, or as far as possible. Returns the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return needed
    for most in (needed, _OPEN_MAX):
        wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
        if wanted <= soft:
            break
        with suppress(ValueError, OSError):  # the kernel has a lower limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return wanted
    return soft
