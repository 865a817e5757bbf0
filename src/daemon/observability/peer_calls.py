"""The running calls of the other nodes of a cluster, for the operator's views."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol


class PeerActivity(NamedTuple):
    """The running calls of the other nodes that have answered."""

    running: Sequence[dict[str, Any]] = ()
    """Their rows (``status_report.running_row``), each with its ``node``."""
    connections: int = 0
    """The clients of these nodes."""
    unanswered: Sequence[str] = ()
    """The names of the nodes that have not answered in time."""


class PeerView(Protocol):
    """The other nodes that share the database."""

    @property
    def own_name(self) -> str:
        """The name of this node."""
        ...

    async def running_calls(self) -> PeerActivity:
        """Asks all other nodes, and waits at most 3 s."""
        ...

    def recent_calls(self) -> PeerActivity:
        """Returns the last known running calls of the other nodes, and starts to ask again if they are a second old."""
        ...

    async def cancel(self, node: None, principal: None, call_id: str) -> bool:
        """Cancels a call at the node that runs it."""
        ...
