"""What the other nodes of a cluster run, as the operator's views show it."""

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
        """Asks all other nodes, for 3 s at most."""
        ...

    def recent_calls(self) -> PeerActivity:
        """Returns what the other nodes ran a moment ago, and begins to ask them again if that is a second old."""
        ...

    async def cancel(self, node: None, principal: None, call_id: str) -> bool:
        """Cancels a call at the node that runs it."""
        ...
