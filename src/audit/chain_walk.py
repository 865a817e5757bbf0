"""Verifies a chain of rows: each row against the row before, each gap against a checkpoint. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

from ..store import ChainSigner, Checkpoint, canonical

MAX_PROBLEMS: Final = 1000
"""The maximum number of listed problems; further ones are only counted."""
MAX_UNLINKED: Final = 200
"""The maximum length of a series of rows without a valid link whose original order is reconstructed."""

_SEQ_TAKEN: Final = "another row has the same seq, or rows were removed at this seq"

Fault = Literal["changed", "missing", "out of place", "added"]


class ChainProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A place where the chain is broken."""

    fault: Fault
    first_seq: int
    last_seq: int
    call: str | None
    """The call id, if the problem concerns one call."""
    message: str


class ChainCount(msgspec.Struct):
    """The number of checkpoints of a kind, and of the calls that they cover."""

    checkpoints: int = 0
    calls: int | None = 0
    """The number of calls; None if unknown."""


class ChainGap(msgspec.Struct, frozen=True, kw_only=True):
    """A period in which calls may have been lost."""

    after_seq: int
    """The seq of the last call before the gap."""
    since: float
    """A Unix time in seconds."""
    until: float


class ChainFindings(msgspec.Struct, kw_only=True):
    """The result of verifying one chain."""

    chain: str
    checked: int = 0
    """The number of rows that are unchanged and in their place."""
    first_seq: int | None = None
    last_seq: int | None = None
    checkpoints: dict[str, ChainCount] = {}
    """The checkpoints by kind."""
    gaps: list[ChainGap] = []
    """The periods of the ``gap`` checkpoints, in order."""
    older: int = 0
    """The number of rows from before the chain, which cannot be verified."""
    broken: int = 0
    """The number of problems; ``problems`` has the first ones."""
    problems: list[ChainProblem] = []
    waiting: int = 0
    """The number of unsent rows, if Supabase was verified."""

    @property
    def intact(self) -> bool:
        return self.broken == 0

    def add_problem(self, fault: Fault, message: str, seqs: tuple[int, int], call: str | None = None) -> None:
        """Adds a problem."""
        self.broken += 1
        if len(self.problems) < MAX_PROBLEMS:
            first, last = seqs
            self.problems.append(ChainProblem(fault=fault, first_seq=first, last_seq=last, call=call, message=message))


class ChainLink(NamedTuple):
    """A row as a link of the chain."""

    seq: int
    call: str
    signed: bytes | None
    """The bytes that ``canonical`` returns; None if the values do not form a row."""
    mac: bytes


def link(seq: int, values: Sequence[Any], mac: bytes | None) -> ChainLink:
    """Returns the link of a row, from the values that ``canonical`` takes."""
    try:
        signed = canonical(values)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        signed = None
    return ChainLink(seq, str(values[0]), signed, mac if isinstance(mac, bytes) else b"")


class ChainWalk:
    """Verifies rows from the first to the last; adds problems to ``findings``."""

    def __init__(
        self, signer: ChainSigner, findings: ChainFindings, covers: Iterable[Checkpoint], *, start: tuple[int, bytes]
    ) -> None:
        """``covers`` are the checkpoints that may explain missing rows. ``start`` is the first seq and the mac before
        it."""
        self._signer = signer
        self._findings = findings
        self._covers = sorted(covers, key=lambda cover: cover.first_seq)
        self._expected = start[0]
        self._before: bytes | None = start[1]  # None if unknown
        self._before_last: bytes | None = None  # the mac before the last row
        self._linked = True  # whether the last row or checkpoint had a valid link
        self._unlinked: list[ChainLink] = []
        self._unlinked_before = b""

    def add(self, row: ChainLink) -> None:
        """Verifies the next row, by seq."""
        if self._replaces_last(row):
            return
        if row.seq != self._expected:
            self._resolve_unlinked(None)
            self._bridge(row.seq)
        if row.seq < self._expected:
            self._findings.add_problem("added", _SEQ_TAKEN, (row.seq, row.seq), row.call)
            return
        self._expected += 1
        before = self._before_last = self._before
        self._linked = before is None or self._links(before, row)
        if before is not None and self._linked:
            self._resolve_unlinked(row)
            self._count(row.seq)
        elif before is not None:
            if not self._unlinked:
                self._unlinked_before = before
            self._unlinked.append(row)
            if len(self._unlinked) >= MAX_UNLINKED:
                self._resolve_unlinked(None)
        self._before = row.mac

    def end(self, last_seq: int, last_mac: bytes | None) -> None:
        """Ends the verification, and compares the last row with ``last_seq`` and ``last_mac``; ``last_mac`` is None if
        unknown."""
        self._resolve_unlinked(None)
        self._bridge(last_seq + 1)
        if self._linked and last_mac is not None and self._before not in {None, last_mac}:
            self._findings.add_problem("changed", "the head has a different mac for the last row", (last_seq, last_seq))

    def _replaces_last(self, row: ChainLink) -> bool:
        """Whether the row replaces the last one: of two rows with one seq, the one with a valid link is the
        original."""
        last = self._unlinked[-1] if self._unlinked else None
        if last is None or last.seq != row.seq or self._before_last is None or not self._links(self._before_last, row):
            return False
        self._unlinked.pop()
        self._findings.add_problem("added", _SEQ_TAKEN, (last.seq, last.seq), last.call)
        self._resolve_unlinked(row)
        self._count(row.seq)
        self._before, self._linked = row.mac, True
        return True

    def _count(self, seq: int) -> None:
        findings = self._findings
        findings.checked += 1
        findings.last_seq = seq
        if findings.first_seq is None:
            findings.first_seq = seq

    def _bridge(self, to: int) -> None:
        """Skips missing rows, as far as checkpoints explain them."""
        while self._expected < to:
            cover = self._cover(self._expected, to)
            if cover is None:
                self._findings.add_problem("missing", "no checkpoint explains why", (self._expected, to - 1))
                self._expected, self._before = to, None
                return
            if cover.first_seq == self._expected and self._linked and self._before not in {None, cover.before}:
                last = self._expected - 1
                message = f"checkpoint {cover.number} ({cover.kind}) has a different mac for the row before it"
                self._findings.add_problem("changed", message, (last, last))
            self._expected, self._before, self._linked = cover.last_seq + 1, cover.after, True

    def _cover(self, seq: int, to: int) -> Checkpoint | None:
        """Returns the checkpoint that covers the most missing rows from ``seq`` on, without covering an existing
        row."""
        covering = [cover for cover in self._covers if cover.first_seq <= seq <= cover.last_seq]
        fitting = [cover for cover in covering if cover.last_seq < to] or covering
        return max(fitting, key=lambda cover: cover.last_seq, default=None)

    def _resolve_unlinked(self, follower: ChainLink | None) -> None:
        """Explains the rows without a valid link."""
        unlinked, self._unlinked = self._unlinked, []
        if not unlinked:
            return
        pool = {row.seq: row for row in unlinked}
        before, place = self._unlinked_before, unlinked[0].seq
        while pool:
            row = next((row for row in pool.values() if self._links(before, row)), None)
            if row is not None:
                del pool[row.seq]
                if row.seq != place:
                    self._findings.add_problem("out of place", f"its seq was {place}", (row.seq, row.seq), row.call)
                else:
                    self._count(row.seq)
                before, place = row.mac, place + 1
                continue
            row = pool.pop(place, None)
            if row is None:
                break
            self._findings.add_problem("changed", "the row differs from what was written", (row.seq, row.seq), row.call)
            original = b"" if row.signed is None else self._signer.row(before, row.signed)
            rest = [*pool.values(), *([follower] if follower else [])]
            # If the row's mac was changed but not its content, the next row is linked to the original mac.
            before = original if any(self._links(original, other) for other in rest) else row.mac
            place += 1
        for row in pool.values():
            self._findings.add_problem("added", "no row of the chain is linked to it", (row.seq, row.seq), row.call)

    def _links(self, before: bytes, row: ChainLink) -> bool:
        return row.signed is not None and row.mac == self._signer.row(before, row.signed)
