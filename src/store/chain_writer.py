"""The chain as the writer continues it, commit by commit."""

import contextlib
import itertools
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal

import msgspec
import structlog

from . import chain_checkpoints
from .audit_chain import GENESIS, ChainHead, ChainSeal, Checkpoint, CheckpointKind, canonical
from .store_schema import transaction

GROUP_WINDOW_S: Final = 0.1
"""Rows that come within it share one commit: as much may be lost in a crash."""

_log = structlog.get_logger(__name__)


class ChainExtension:
    """What one transaction adds to the chain."""

    def __init__(self, connection: sqlite3.Connection, seal: ChainSeal, head: ChainHead, dropped: int) -> None:
        self._connection = connection
        self._seal = seal
        self.head = head
        self.dropped = dropped
        """Rows that were dropped and are noted, since the process began."""

    def number(self, rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Rows (of values that ``canonical`` takes) with their seqs before them and their macs after them."""
        seq, mac = self.head.last_seq, self.head.last_mac
        numbered = []
        for row in rows:
            seq, mac = seq + 1, self._seal.row(mac, canonical(row))
            numbered.append((seq, *row, mac))
        self.head = msgspec.structs.replace(self.head, last_seq=seq, last_mac=mac)
        return numbered

    def began(self, kind: Literal["began", "begun again"]) -> None:
        """The chain begins after the rows that are there."""
        last_seq, last_mac = self.head.last_seq, self.head.last_mac
        self._add(kind, 1, last_seq, calls=last_seq, since=time.time(), before=GENESIS, after=last_mac)

    def complete(self, at: float, dropped: int) -> None:
        """All that was recorded before ``at``, in Unix seconds, is in the chain, but for ``dropped`` rows since the
        process began.
        """
        if dropped > self.dropped:
            self.lost("dropped", dropped - self.dropped, self.head.at)
            self.dropped = dropped
        self.head = msgspec.structs.replace(self.head, at=at)

    def lost(self, kind: CheckpointKind, calls: int | None, since: float) -> None:
        """Rows that never got a number are not in the chain: so many, or some."""
        seq, mac = self.head.last_seq, self.head.last_mac
        self._add(kind, seq + 1, seq, calls=calls, since=since, before=mac, after=mac)

    def expired(self, seqs: Sequence[int], settled_seq: int) -> None:
        """Retention is about to remove these rows, in order; those past ``settled_seq`` were not sent."""
        self._removed("expired", seqs)
        self._removed("unsent", [seq for seq in seqs if seq > settled_seq])

    def refused(self, seqs: Iterable[int]) -> None:
        """Supabase does not take these rows, which are in order."""
        for _, run in itertools.groupby(enumerate(seqs), key=lambda numbered: numbered[1] - numbered[0]):
            self._removed("refused", [seq for _, seq in run])

    def _removed(self, kind: CheckpointKind, seqs: Sequence[int]) -> None:
        """Where the last checkpoint of the kind ends right before them, it is extended."""
        if not seqs:
            return
        first_seq, calls, since = seqs[0], len(seqs), time.time()
        before = chain_checkpoints.mac_before(self._connection, first_seq)
        known = chain_checkpoints.latest(self._connection, kind)
        number = None
        again = chain_checkpoints.latest(self._connection, "begun again")
        if known and again and known.number < again.number:
            known = None  # it is of the chain before
        # What somebody else wrote is not made ours.
        if known and known.last_seq == first_seq - 1 and known.calls is not None and self._seal.signed(known):
            number, first_seq, since, before = known.number, known.first_seq, known.since, known.before
            calls += known.calls
        after = chain_checkpoints.mac_before(self._connection, seqs[-1] + 1)
        self._add(kind, first_seq, seqs[-1], calls=calls, since=since, before=before, after=after, number=number)

    def _add(
        self,
        kind: CheckpointKind,
        first_seq: int,
        last_seq: int,
        *,
        calls: int | None,
        since: float,
        before: bytes,
        after: bytes,
        number: int | None = None,
    ) -> None:
        if number is None:
            number = self.head.checkpoints + 1
            self.head = msgspec.structs.replace(self.head, checkpoints=number)
        checkpoint = Checkpoint(
            number=number, kind=kind, first_seq=first_seq, last_seq=last_seq, calls=calls, since=since,
            until=time.time(), before=before, after=after,
        )  # fmt: skip
        chain_checkpoints.put_checkpoint(self._connection, self._seal.checkpoint(checkpoint))


class ChainWriter:
    """Where the chain stands, between commits. What is in the file is believed only as far as it is signed, and never
    where it is behind what this process wrote.

    ``expects_chain``: the key was there before this start, so there is a chain to go on with. Were a database without
    its end taken for a first start's, whoever removes the end could have all that is left passed off as old.
    """

    def __init__(self, key: bytes, *, expects_chain: bool = False) -> None:
        self._seal = ChainSeal(key)
        self._expects_chain = expects_chain
        self._head: ChainHead | None = None
        self._dropped = 0

    @property
    def chain(self) -> str:
        """The chain's name."""
        return self._seal.chain

    @property
    def last_seq(self) -> int:
        """The last number that was given; 0 before the first commit."""
        return self._head.last_seq if self._head else 0

    @contextlib.contextmanager
    def extending(self, connection: sqlite3.Connection, *, closed: bool = False) -> Iterator[ChainExtension]:
        """A transaction in which rows may be added and removed. ``closed``: nothing will come after it.

        Raises:
            sqlite3.Error: nothing was written.
        """
        with transaction(connection):
            extension = self._next(connection)
            yield extension
            extension.head = self._seal.head(msgspec.structs.replace(extension.head, closed=closed))
            chain_checkpoints.put_head(connection, extension.head)
        self._head, self._dropped = extension.head, extension.dropped

    def _next(self, connection: sqlite3.Connection) -> ChainExtension:
        stored = chain_checkpoints.head(connection)
        known = self._head
        if stored is None or not self._seal.signed(stored):
            return self._extension(connection, known) if known else self._begin(connection)
        if known:
            # A commit of which the disk said that it failed may have gone through.
            return self._extension(connection, max(known, stored, key=lambda head: head.last_seq))
        extension = self._extension(connection, stored)
        if not stored.closed:
            _log.warning("the daemon did not end in order: audit rows of its last moment may be missing")
            extension.lost("gap", None, stored.at - GROUP_WINDOW_S)
        return extension

    def _begin(self, connection: sqlite3.Connection) -> ChainExtension:
        last_seq, checkpoints = chain_checkpoints.ends(connection)
        last_mac = chain_checkpoints.mac_before(connection, last_seq + 1)
        if self._expects_chain:
            _log.error(
                "the database has no end of a chain that audit.key signed: it was removed, replaced or changed; the "
                "chain begins again, and `toold audit verify` reports it"
            )
        elif last_mac != GENESIS or checkpoints:
            _log.error("the audit's chain was signed with another key, or was changed; a new one begins")
        head = ChainHead(
            chain=self._seal.chain, last_seq=last_seq, last_mac=last_mac, checkpoints=checkpoints, at=time.time(),
            closed=False,
        )  # fmt: skip
        extension = self._extension(connection, head)
        extension.began("begun again" if self._expects_chain else "began")
        return extension

    def _extension(self, connection: sqlite3.Connection, head: ChainHead) -> ChainExtension:
        return ChainExtension(connection, self._seal, head, self._dropped)
