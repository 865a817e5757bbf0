"""The nodes of a cluster as the database shows them, and whether a node may be declared dead."""

from typing import Final, Literal

import msgspec

from .node_lease import VALID_SHARE

NodeState = Literal["live", "draining", "dead"]

Suspicion = Literal["none", "unreachable", "replaced", "silent"]
"""The reason to assume that a node is dead although its lease has not ended. ``unreachable``: a connection to its
address was refused, so nothing listens there. ``replaced``: a process starts under its name. ``silent``: it did not
answer a direct check in time.
"""


class NodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """One process that uses the database."""

    epoch: str
    """Identifies the process. The ids of its calls begin with it."""
    name: str
    address: str
    """The address that it announced for the other nodes; empty before it announced one."""
    details: str
    """The version and the digests of settings that it announced; empty before that."""
    state: NodeState
    left_s: float
    """The remaining seconds of its lease by the database's clock; negative once it has ended."""
    lease_s: float
    """The duration of this node's lease."""

    @property
    def valid_s(self) -> float:
        """The remaining seconds in which the node may answer for its sessions; negative after that. From then on, it
        may be declared dead if it is silent.
        """
        return self.left_s - self.lease_s * (1 - VALID_SHARE)


def may_declare_dead(node: NodeRow, suspicion: Suspicion) -> bool:
    """Returns whether a node may be declared dead. The SQL of the database decides in the same way.

    A node whose lease has ended may be declared dead. Before that, a suspicion is enough, because each later commit of
    the node is refused: a wrong suspicion ends a process, but breaks no promise. A node that is only slow is silent,
    too, so silence counts only if the node has also missed its heartbeats. A draining node is an exception, because its
    port closes before the node ends.
    """
    if node.state == "dead":
        return False
    if node.left_s < 0:
        return True
    if node.state != "live":
        return False
    return node.valid_s < 0 if suspicion == "silent" else suspicion != "none"


class SessionHeldError(Exception):
    """Another node holds the session."""

    def __init__(self, holder: NodeRow) -> None:
        super().__init__(f"the node {holder.name} holds the session")
        self.holder: Final = holder
