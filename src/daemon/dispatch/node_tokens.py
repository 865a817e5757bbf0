"""Tokens that name the node which knows what they stand for: an open question, a parked call, a client's stream.

Behind a balancer each request of a client may reach another node. What one node has in memory only, the others find by
the name in its token, and relay the request there. In a daemon that is alone tokens name nothing.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Final

from ...store import NodeRow, SessionHeldError

_END: Final = "~"
"""A character that neither names of nodes nor random tokens have."""
MARK_CHARS: Final = 8


def named_token(node: str, token: str) -> str:
    """A token that names a node; unchanged if ``node`` is empty."""
    return f"{node}{_END}{token}" if node else token


def node_of_token(token: str) -> str:
    """The name of the node in a token; empty if it has none."""
    node, end, _ = token.partition(_END)
    return node if end else ""


def node_mark(node: str) -> str:
    """Eight hexadecimal digits that stand for the name of a node where it would be too long; empty for no node."""
    return hashlib.blake2b(node.encode(), digest_size=MARK_CHARS // 2).hexdigest() if node else ""


class NodeTokens:
    """The tokens of this node, and where those of others lead."""

    def __init__(self) -> None:
        self._node = ""
        self._peers: Callable[[], Sequence[NodeRow]] = lambda: ()

    def join(self, node: str, peers: Callable[[], Sequence[NodeRow]]) -> None:
        """This daemon is a node of a cluster. ``peers`` returns the other nodes that are not dead."""
        self._node, self._peers = node, peers

    @property
    def mark(self) -> str:
        """The ``node_mark`` of this node."""
        return node_mark(self._node)

    def named(self, token: str) -> str:
        """A random token with the name of this node."""
        return named_token(self._node, token)

    def require_here(self, token: object) -> None:
        """Returns if a token is of this node, of no node, or of one that has gone.

        Raises:
            SessionHeldError: another node knows what it stands for.
        """
        node = node_of_token(token) if isinstance(token, str) else ""
        if node not in {"", self._node}:
            self._require(lambda peer: peer.name == node)

    def require_mark_here(self, mark: str) -> None:
        """The same for a ``node_mark``.

        Raises:
            SessionHeldError: it stands for another node.
        """
        if mark not in {"", self.mark}:
            self._require(lambda peer: node_mark(peer.name) == mark)

    def _require(self, matches: Callable[[NodeRow], bool]) -> None:
        for peer in self._peers():
            if matches(peer):
                raise SessionHeldError(peer)
