"""Several audit chains in one database: the key of each, and checkpoints that bind a chain to the ends of the others.

A chain shows that none of its rows is missing, but not that the whole chain is missing, or was reset to an earlier
state. So each chain also states, in a signed checkpoint, how far the other chains had come. Pure.
"""

import hashlib
import hmac
from collections.abc import Sequence

import msgspec

from .audit_chain import Checkpoint


class ChainEnd(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The end of a chain at some time."""

    chain: str
    """Its name."""
    seq: int
    """The seq of its last row."""
    mac: str
    """The mac of its last row, in hexadecimal digits."""


def chain_key(key: bytes, number: int) -> bytes:
    """Returns the key that signs the chain with a number: no signature of one chain is valid in another. The first
    chain, number 0, is signed with the key itself, as the only chain of a database in SQLite is.
    """
    return key if number == 0 else hmac.digest(key, b"toold chain %d" % number, "sha256")


def bound_hash(ends: Sequence[ChainEnd]) -> bytes:
    """Returns the hash that a checkpoint ``bound`` has as its ``after``."""
    return hashlib.sha256(msgspec.json.encode(ends)).digest()


def last_bound(checkpoints: Sequence[Checkpoint]) -> Checkpoint | None:
    """Returns the last checkpoint ``bound`` of the current chain."""
    bound = None
    for checkpoint in checkpoints:
        if checkpoint.kind == "bound":
            bound = checkpoint
        elif checkpoint.kind in {"began", "begun again"}:
            bound = None  # it belongs to the earlier chain
    return bound
