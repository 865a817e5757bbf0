"""The rows, checkpoints and head that one transaction adds to the audit chain. All databases use this code."""

import itertools
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, Protocol

import msgspec
import structlog

from .audit_chain import GENESIS, ChainHead, ChainSigner, Checkpoint, CheckpointKind, canonical

_log = structlog.get_logger(__name__)


class ChainRecords(Protocol):
    """The records of one chain, within a transaction."""

    def latest(self, kind: CheckpointKind) -> Checkpoint | None:
        """Returns the checkpoint of a kind with the highest number."""

    def write_checkpoint(self, new: Checkpoint) -> None:
        """Inserts a checkpoint, or replaces the checkpoint with its number, and marks it as unsent."""

    def last_numbers(self) -> tuple[int, int]:
        """Returns the highest seq that the database shows as assigned, and the number of the last checkpoint."""

    def mac_before(self, seq: int) -> bytes:
        """Returns the mac of the row before a seq, or of the last row that retention removed before it."""


class ChainExtension:
    """The rows and checkpoints that one transaction adds to the chain."""

    def __init__(self, records: ChainRecords, signer: ChainSigner, head: ChainHead, dropped: int) -> None:
        self.records: Final = records
        self.signer: Final = signer
        self.head = head
        self.dropped = dropped
        """The number of rows dropped since the start that a checkpoint covers."""

    def number_rows(self, rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Returns rows (of values that ``canonical`` takes), each with its seq prepended and its mac appended."""
        seq, mac = self.head.last_seq, self.head.last_mac
        numbered = []
        for row in rows:
            seq, mac = seq + 1, self.signer.row(mac, canonical(row))
            numbered.append((seq, *row, mac))
        self.head = msgspec.structs.replace(self.head, last_seq=seq, last_mac=mac)
        return numbered

    def begin(self, kind: Literal["began", "begun again"]) -> None:
        """Begins the chain after the existing rows."""
        last_seq, last_mac = self.head.last_seq, self.head.last_mac
        self._add(kind, 1, last_seq, calls=last_seq, since=time.time(), before=GENESIS, after=last_mac)

    def complete(self, at: float, dropped: int) -> None:
        """States that all rows recorded before ``at``, in Unix seconds, are in the chain, except for ``dropped`` rows
        since the start.
        """
        if dropped > self.dropped:
            self.add_missing("dropped", dropped - self.dropped, self.head.at)
            self.dropped = dropped
        self.head = msgspec.structs.replace(self.head, at=at)

    def add_missing(self, kind: CheckpointKind, calls: int | None, since: float) -> None:
        """Adds a checkpoint for rows that never got a seq; ``calls`` is None if their number is unknown."""
        seq, mac = self.head.last_seq, self.head.last_mac
        self._add(kind, seq + 1, seq, calls=calls, since=since, before=mac, after=mac)

    def add_bound(self, after: bytes) -> None:
        """Adds a checkpoint that binds this chain to others: ``after`` is the hash of their ends."""
        seq = self.head.last_seq
        now = time.time()
        self._add("bound", seq + 1, seq, calls=0, since=now, before=self.head.last_mac, after=after)

    def add_expired(self, seqs: Sequence[int], settled_seq: int) -> None:
        """Adds checkpoints for rows, in order, that retention removes; those after ``settled_seq`` are unsent."""
        self._removed("expired", seqs)
        self._removed("unsent", [seq for seq in seqs if seq > settled_seq])

    def add_refused(self, seqs: Iterable[int]) -> None:
        """Adds checkpoints for rows, in order, that Supabase refused."""
        for _, run in itertools.groupby(enumerate(seqs), key=lambda numbered: numbered[1] - numbered[0]):
            self._removed("refused", [seq for _, seq in run])

    def _removed(self, kind: CheckpointKind, seqs: Sequence[int]) -> None:
        """Extends the last checkpoint of the kind if it ends right before these rows; adds one otherwise."""
        if not seqs:
            return
        first_seq, calls, since = seqs[0], len(seqs), time.time()
        before = self.records.mac_before(first_seq)
        last = self.records.latest(kind)
        number = None
        restarted = self.records.latest("begun again")
        if last and restarted and last.number < restarted.number:
            last = None  # it belongs to the earlier chain
        # A checkpoint that this key did not sign is not extended.
        if last and last.last_seq == first_seq - 1 and last.calls is not None and self.signer.is_signed(last):
            number, first_seq, since, before = last.number, last.first_seq, last.since, last.before
            calls += last.calls
        after = self.records.mac_before(seqs[-1] + 1)
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
        self.records.write_checkpoint(self.signer.checkpoint(checkpoint))


def begin_chain(records: ChainRecords, signer: ChainSigner, dropped: int, *, expects_chain: bool) -> ChainExtension:
    """Begins a chain after the existing rows. Logs an error if the database should have had a chain. ``dropped`` as in
    ``ChainExtension``; ``expects_chain`` as in the writers of chains.
    """
    last_seq, checkpoints = records.last_numbers()
    last_mac = records.mac_before(last_seq + 1)
    if expects_chain:
        _log.error(
            "the database has no head of the audit chain that audit.key signed: it was removed, replaced or "
            "changed; a new chain begins, and `toold audit verify` reports it"
        )
    elif last_mac != GENESIS or checkpoints:
        _log.error("the audit chain was signed with another key, or was changed; a new chain begins")
    head = ChainHead(
        chain=signer.chain, last_seq=last_seq, last_mac=last_mac, checkpoints=checkpoints, at=time.time(), closed=False
    )
    extension = ChainExtension(records, signer, head, dropped)
    extension.begin("begun again" if expects_chain else "began")
    return extension
