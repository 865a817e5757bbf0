"""Tokens for an open question, a parked call or a client's stream, with the name of the node that has it in memory.

Behind a balancer, each request of a client may reach another node, which relays it to the node that the token names. A
daemon without other nodes puts no name into its tokens.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Final

from ...store import NodeRow, SessionHeldError

_END: Final = "~"
"""A character that does not occur in names of nodes or random tokens."""
MARK_CHARS: Final = 8


def named_token(node: str, token: str) -> str:
    """A token that names a node; unchanged if ``node`` is empty."""
    return f"{node}{_END}{token}" if node else token


def node_of_token(token: str) -> str:
    """The name of the node in a token; empty if it has none."""
    node, end, _ = token.partition(_END)
    return node if end else ""


def node_mark(node: str) -> str:
    """Eight hexadecimal digits for the name of a node, where the name would be too long; empty without a node."""
    return hashlib.blake2b(node.encode(), digest_size=MARK_CHARS // 2).hexdigest() if node else ""


class NodeTokens:
    """Creates the tokens of this node, and recognizes those of other nodes."""

    def __init__(self) -> None:
        self._node = ""
        self._peers: Callable[[], Sequence[NodeRow]] = lambda: ()

    def join(self, node: str, peers: Callable[[], Sequence[NodeRow]]) -> None:
        """Sets this daemon's name in its cluster. ``peers`` returns the other live nodes."""
        self._node, self._peers = node, peers

    @property
    def mark(self) -> str:
        """The ``node_mark`` of this node."""
        return node_mark(self._node)

    def named(self, token: str) -> str:
        """A random token with the name of this node."""
        return named_token(self._node, token)

    def require_here(self, token: object) -> None:
        """Checks that no other live node owns a token: the token names this node, no node, or a dead node.

        Raises:
                    SessionHeldError: another live node owns it.
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
