"""The interface to the nodes of a database that several nodes share."""

from collections.abc import Callable
from typing import Protocol

from .node_lease import NodeLease
from .node_rows import NodeRow, Suspicion
from .shared_limits import SharedLimitsPort
from .shared_pins import SharedPinsPort


class ClusterPort(Protocol):
    """The nodes of a shared database. Methods that wait raise StoreError if the database does not answer."""

    @property
    def epoch(self) -> str:
        """The epoch of this process; the ids of its calls begin with it."""
        ...

    @property
    def lease(self) -> NodeLease: ...

    @property
    def limits(self) -> SharedLimitsPort:
        """The limits of all nodes together."""
        ...

    @property
    def pins(self) -> SharedPinsPort:
        """The pins of sources, which all nodes share."""
        ...

    on_fenced: Callable[[str], None]
    """Called on the writer's thread with the reason, before the entries of a refused commit are reported."""

    async def announce(self, address: str, details: str) -> None:
        """Stores the address at which the other nodes reach this one, and the digests of its settings."""
        ...

    async def nodes(self) -> list[NodeRow]:
        """Returns the nodes that are alive, those that are draining, and those that died within the last hour."""
        ...

    async def declare_dead(self, epoch: str, suspicion: Suspicion) -> bool:
        """Declares a node dead if ``may_declare_dead`` permits it. In the same transaction, its calls become
        interrupted and its sessions lose their holder. Returns whether it is dead now.
        """
        ...

    async def drain(self) -> None:
        """Stores that this node is about to stop, so that it is not declared dead when its port closes."""
        ...

    async def leave(self) -> None:
        """Releases all sessions of this node and ends its lease, in one commit after all earlier ones."""
        ...

    async def close(self) -> None:
        """Closes its connections; the store closes those of its writer and reader."""
        ...
