"""Following a chain of rows: each against the one before, each gap against a checkpoint. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

from ..store import ChainSeal, Checkpoint, canonical

MAX_PROBLEMS: Final = 1000
"""That are listed; all are counted."""
MAX_TANGLE: Final = 200
"""Rows in a row that follow from none, of which it is worked out how they belong together."""

_TAKEN: Final = "another row has its number, or it stands where rows were removed"

Fault = Literal["changed", "missing", "out of place", "added"]


class ChainProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A place where the chain breaks."""

    fault: Fault
    first_seq: int
    last_seq: int
    call: str | None
    """The id of the call, where it is one."""
    message: str


class ChainCount(msgspec.Struct):
    """How many checkpoints of a kind, and how many calls they stand for."""

    checkpoints: int = 0
    calls: int | None = 0
    """None where nobody can know."""


class ChainGap(msgspec.Struct, frozen=True, kw_only=True):
    """When calls may have been lost."""

    after_seq: int
    """The last call that was written before it."""
    since: float
    """Unix time in seconds."""
    until: float


class ChainFindings(msgspec.Struct, kw_only=True):
    """What the check of one chain found."""

    chain: str
    checked: int = 0
    """Rows that are as they were written, in their place."""
    first_seq: int | None = None
    last_seq: int | None = None
    checkpoints: dict[str, ChainCount] = {}
    """Kind → how many."""
    gaps: list[ChainGap] = []
    """Of the checkpoints of that kind, in the order in which they came."""
    older: int = 0
    """Rows from before the chain, of which nothing can be said."""
    broken: int = 0
    """How many problems there are; ``problems`` has the first ones."""
    problems: list[ChainProblem] = []
    waiting: int = 0
    """Rows that Supabase need not have yet, where it was checked."""

    @property
    def intact(self) -> bool:
        return self.broken == 0

    def found(self, fault: Fault, message: str, seqs: tuple[int, int], call: str | None = None) -> None:
        """Note a problem."""
        self.broken += 1
        if len(self.problems) < MAX_PROBLEMS:
            first, last = seqs
            self.problems.append(ChainProblem(fault=fault, first_seq=first, last_seq=last, call=call, message=message))


class ChainLink(NamedTuple):
    """A row as the chain sees it."""

    seq: int
    call: str
    signed: bytes | None
    """``canonical``; None where no row has such values."""
    mac: bytes


def link(seq: int, values: Sequence[Any], mac: bytes | None) -> ChainLink:
    """A row, from the values that ``canonical`` takes."""
    try:
        signed = canonical(values)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        signed = None
    return ChainLink(seq, str(values[0]), signed, mac if isinstance(mac, bytes) else b"")


class ChainWalk:
    """Follows rows from the first to the last; what breaks on the way goes to ``findings``."""

    def __init__(
        self, seal: ChainSeal, findings: ChainFindings, covers: Iterable[Checkpoint], *, start: tuple[int, bytes]
    ) -> None:
        """``covers`` are the checkpoints that may stand for missing rows; ``start`` is the first seq, and the mac that
        its row follows.
        """
        self._seal = seal
        self._findings = findings
        self._covers = sorted(covers, key=lambda cover: cover.first_seq)
        self._expected = start[0]
        self._before: bytes | None = start[1]  # None where it is not known
        self._before_last: bytes | None = None  # the mac that the last row should follow
        self._follows = True  # whether what came last was in its place
        self._tangle: list[ChainLink] = []
        self._tangle_before = b""

    def add(self, row: ChainLink) -> None:
        """The next row, by seq."""
        if self._replaces_last(row):
            return
        if row.seq != self._expected:
            self._untangle(None)
            self._bridge(row.seq)
        if row.seq < self._expected:
            self._findings.found("added", _TAKEN, (row.seq, row.seq), row.call)
            return
        self._expected += 1
        before = self._before_last = self._before
        self._follows = before is None or self._leads(before, row)
        if before is not None and self._follows:
            self._untangle(row)
            self._count(row.seq)
        elif before is not None:
            if not self._tangle:
                self._tangle_before = before
            self._tangle.append(row)
            if len(self._tangle) >= MAX_TANGLE:
                self._untangle(None)
        self._before = row.mac

    def end(self, last_seq: int, last_mac: bytes | None) -> None:
        """There are no more rows, and the last one should have been this; None where its mac is not known."""
        self._untangle(None)
        self._bridge(last_seq + 1)
        if self._follows and last_mac is not None and self._before not in {None, last_mac}:
            self._findings.found("changed", "the head has another mac of the last row", (last_seq, last_seq))

    def _replaces_last(self, row: ChainLink) -> bool:
        """Of two rows of one number, the one that follows from the row before is the one that was written."""
        last = self._tangle[-1] if self._tangle else None
        if last is None or last.seq != row.seq or self._before_last is None or not self._leads(self._before_last, row):
            return False
        self._tangle.pop()
        self._findings.found("added", _TAKEN, (last.seq, last.seq), last.call)
        self._untangle(row)
        self._count(row.seq)
        self._before, self._follows = row.mac, True
        return True

    def _count(self, seq: int) -> None:
        findings = self._findings
        findings.checked += 1
        findings.last_seq = seq
        if findings.first_seq is None:
            findings.first_seq = seq

    def _bridge(self, to: int) -> None:
        """Get over missing rows, by checkpoints as far as there are any."""
        while self._expected < to:
            cover = self._cover(self._expected, to)
            if cover is None:
                self._findings.found("missing", "no checkpoint tells why", (self._expected, to - 1))
                self._expected, self._before = to, None
                return
            if cover.first_seq == self._expected and self._follows and self._before not in {None, cover.before}:
                last = self._expected - 1
                told = f"checkpoint {cover.number} ({cover.kind}) has another mac of the row before it"
                self._findings.found("changed", told, (last, last))
            self._expected, self._before, self._follows = cover.last_seq + 1, cover.after, True

    def _cover(self, seq: int, to: int) -> Checkpoint | None:
        """The checkpoint that leads from a missing row as far as possible, but not past rows that are there."""
        found = [cover for cover in self._covers if cover.first_seq <= seq <= cover.last_seq]
        fitting = [cover for cover in found if cover.last_seq < to] or found
        return max(fitting, key=lambda cover: cover.last_seq, default=None)

    def _untangle(self, follower: ChainLink | None) -> None:
        """Say of rows that follow from none what became of them."""
        tangle, self._tangle = self._tangle, []
        if not tangle:
            return
        pool = {row.seq: row for row in tangle}
        before, place = self._tangle_before, tangle[0].seq
        while pool:
            row = next((row for row in pool.values() if self._leads(before, row)), None)
            if row is not None:
                del pool[row.seq]
                if row.seq != place:
                    self._findings.found("out of place", f"it was number {place}", (row.seq, row.seq), row.call)
                else:
                    self._count(row.seq)
                before, place = row.mac, place + 1
                continue
            row = pool.pop(place, None)
            if row is None:
                break
            self._findings.found("changed", "it is not what was written", (row.seq, row.seq), row.call)
            original = b"" if row.signed is None else self._seal.row(before, row.signed)
            rest = [*pool.values(), *([follower] if follower else [])]
            # Where its mac was changed and not its content, what comes next follows from the mac that it had.
            before = original if any(self._leads(original, other) for other in rest) else row.mac
            place += 1
        for row in pool.values():
            self._findings.found("added", "nothing that was written leads to it", (row.seq, row.seq), row.call)

    def _leads(self, before: bytes, row: ChainLink) -> bool:
        return row.signed is not None and row.mac == self._seal.row(before, row.signed)
