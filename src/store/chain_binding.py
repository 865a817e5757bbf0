"""Several audit chains in one database: their keys, and checkpoints that bind a chain to the ends of the others.

A chain shows whether its rows are complete, but not whether the whole chain was removed, or reset to an earlier state.
So each chain also records the ends of the other chains in signed checkpoints. Pure.
"""

import hashlib
import hmac
from collections.abc import Sequence

import msgspec

from .audit_chain import Checkpoint


class ChainEnd(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The end of a chain at the time of a checkpoint."""

    chain: str
    """Its name."""
    seq: int
    """The seq of its last row."""
    mac: str
    """The mac of its last row, in hexadecimal digits."""


def chain_key(key: bytes, number: int) -> bytes:
    """Returns the key that signs the chain with this number. A signature of one chain is not valid in another. The
    first chain, number 0, is signed with ``key`` itself, like the only chain of an SQLite database.
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
