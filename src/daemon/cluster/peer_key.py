"""What proves that a request comes from a node of this cluster: a keyed hash, made with the secret that all share.

A signature names the process that the request is for, by its epoch. So one that is recorded is of no use for another
process, nor for this one after a restart, and it needs no clock.
"""

import hashlib
import hmac
from typing import Final

PEER_HEADER: Final = "x-toold-peer"
"""The signature of a request to the paths below ``/peer``."""
RELAYED_HEADER: Final = "x-toold-relayed"
"""The signature of a connection or a request that another node relays, for one of its clients."""


class PeerKey:
    """Signs requests to the nodes of a cluster, and verifies those of others."""

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
        """Returns 12 hexadecimal digits that are equal on two nodes if the texts are equal. They do not reveal it."""
        return hmac.new(self._key, b"digest\n" + text.encode(), hashlib.sha256).hexdigest()[:12]
