"""Proves that a request comes from a node of this cluster: a keyed hash, made with the secret that all nodes share.

A signature contains the epoch of the process to which the request is sent. So a recorded signature is useless for
another process, or for the same node after a restart, and signatures need no clock.
"""

import hashlib
import hmac
from typing import Final

PEER_HEADER: Final = "x-toold-peer"
"""The signature of a request to the paths below ``/peer``."""
RELAYED_HEADER: Final = "x-toold-relayed"
"""The signature of a connection or request that another node relays for one of its clients."""


class PeerKey:
    """Signs requests to the nodes of a cluster, and verifies requests of other nodes."""

    def __init__(self, secret: str) -> None:
        self._key = hashlib.sha256(b"toold peer\n" + secret.encode()).digest()

    def sign(self, epoch: str, purpose: str, *parts: str) -> str:
        """Returns the signature of a request to the process of this epoch. ``purpose`` is a header's name."""
        message = "\n".join((purpose, epoch, *(str(len(part)) for part in parts), *parts))
        return hmac.new(self._key, message.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()

    def verifies(self, signature: str, epoch: str, purpose: str, *parts: str) -> bool:
        """Whether this is the signature of such a request."""
        expected = self.sign(epoch, purpose, *parts)
        return hmac.compare_digest(signature.encode("utf-8", "surrogateescape"), expected.encode())

    def digest(self, text: str) -> str:
        """Returns 12 hexadecimal digits that are equal on two nodes if the text is equal. They do not reveal the
        text.
        """
        return hmac.new(self._key, b"digest\n" + text.encode(), hashlib.sha256).hexdigest()[:12]
