"""Extends the audit chain, commit by commit."""

import contextlib
import itertools
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec
import structlog

from ..audit_chain import GENESIS, ChainHead, ChainSigner, Checkpoint, CheckpointKind, canonical
from ..store_limits import GROUP_WINDOW_S
from . import chain_checkpoints
from .store_schema import transaction

_log = structlog.get_logger(__name__)


class ChainExtension:
    """The rows and checkpoints that one transaction adds to the chain."""

    def __init__(self, connection: sqlite3.Connection, signer: ChainSigner, head: ChainHead, dropped: int) -> None:
        self._connection = connection
        self._signer = signer
        self.head = head
        self.dropped = dropped
        """Dropped rows since the start that a checkpoint covers."""

    def number_rows(self, rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Returns rows (of values that ``canonical`` takes), each with its seq prepended and its mac appended."""
        seq, mac = self.head.last_seq, self.head.last_mac
        numbered = []
        for row in rows:
            seq, mac = seq + 1, self._signer.row(mac, canonical(row))
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
        before = chain_checkpoints.mac_before(self._connection, first_seq)
        last = chain_checkpoints.latest(self._connection, kind)
        number = None
        restarted = chain_checkpoints.latest(self._connection, "begun again")
        if last and restarted and last.number < restarted.number:
            last = None  # it belongs to the earlier chain
        # A checkpoint that this key did not sign is not extended.
        if last and last.last_seq == first_seq - 1 and last.calls is not None and self._signer.is_signed(last):
            number, first_seq, since, before = last.number, last.first_seq, last.since, last.before
            calls += last.calls
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
        chain_checkpoints.write_checkpoint(self._connection, self._signer.checkpoint(checkpoint))


class ChainWriter:
    """Holds the head of the chain between commits. Trusts the file only as far as it is signed, and never if it is
    behind what this process wrote.

    ``expects_chain``: the key existed before this start, so there must be a chain to continue. If a database without
    a head were taken for a first start, an attacker who removes the head could pass the remaining rows off as old.
    """

    def __init__(self, key: bytes, *, expects_chain: bool = False) -> None:
        self._signer = ChainSigner(key)
        self._expects_chain = expects_chain
        self._head: ChainHead | None = None
        self._dropped = 0
        self._warned = False

    @property
    def chain(self) -> str:
        """The name of the chain."""
        return self._signer.chain

    @property
    def last_seq(self) -> int:
        """The last assigned seq; 0 before the first commit."""
        return self._head.last_seq if self._head else 0

    @contextlib.contextmanager
    def extending(self, connection: sqlite3.Connection, *, closed: bool = False) -> Iterator[ChainExtension]:
        """Opens a transaction in which rows may be added and removed. ``closed``: it is the last one.

        Raises:
            sqlite3.Error: nothing was written.
        """
        with transaction(connection):
            extension = self._next(connection)
            yield extension
            extension.head = self._signer.head(msgspec.structs.replace(extension.head, closed=closed))
            chain_checkpoints.write_head(connection, extension.head)
        self._head, self._dropped = extension.head, extension.dropped

    def _next(self, connection: sqlite3.Connection) -> ChainExtension:
        stored = chain_checkpoints.head(connection)
        if stored is None or not self._signer.is_signed(stored):
            return self._extension(connection, self._head) if self._head else self._begin(connection)
        if self._head:
            # A commit that was reported as failed may have succeeded.
            return self._extension(connection, max(self._head, stored, key=lambda head: head.last_seq))
        extension = self._extension(connection, stored)
        if not stored.closed:
            self._warn_once("the daemon did not shut down cleanly; its last audit rows may be missing")
            extension.add_missing("gap", None, stored.at - GROUP_WINDOW_S)
        return extension

    def _warn_once(self, event: str) -> None:
        """Logs a warning, but only once: if this commit fails, the next attempt finds the same."""
        if not self._warned:
            self._warned = True
            _log.warning(event)

    def _begin(self, connection: sqlite3.Connection) -> ChainExtension:
        last_seq, checkpoints = chain_checkpoints.last_numbers(connection)
        last_mac = chain_checkpoints.mac_before(connection, last_seq + 1)
        if self._expects_chain:
            _log.error(
                "the database has no head of the audit chain that audit.key signed: it was removed, replaced or "
                "changed; a new chain begins, and `toold audit verify` reports it"
            )
        elif last_mac != GENESIS or checkpoints:
            _log.error("the audit chain was signed with another key, or was changed; a new chain begins")
        head = ChainHead(
            chain=self._signer.chain, last_seq=last_seq, last_mac=last_mac, checkpoints=checkpoints, at=time.time(),
            closed=False,
        )  # fmt: skip
        extension = self._extension(connection, head)
        extension.begin("begun again" if self._expects_chain else "began")
        return extension

    def _extension(self, connection: sqlite3.Connection, head: ChainHead) -> ChainExtension:
        return ChainExtension(connection, self._signer, head, self._dropped)
