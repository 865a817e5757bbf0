"""Checking the audit: the local database by itself, and Supabase by what the state directory knows."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from ..store import GENESIS, ChainSeal, ChainTrail, Checkpoint
from .chain_walk import ChainCount, ChainFindings, ChainGap, ChainLink, ChainWalk, link
from .supabase_reader import SupabaseReader
from .supabase_rows import Record, call_values, checkpoint_of

_BEGUN_AGAIN: Final = (
    "the chain began again after it: audit.key had signed one before, and at a start the database had no end of it; so "
    "the database was removed, replaced or changed, and of calls up to here nothing can be said. Whoever moves the "
    "database away on purpose moves audit.key away with it"
)


class ChainKeyError(Exception):
    """The key at hand did not sign this database, so that nothing can be said of it."""

    def __init__(self, key: ChainSeal, chain: str) -> None:
        super().__init__(
            f"the audit.key here is of chain {key.chain}, and the database was signed for chain {chain}: put its key "
            "back; where it is lost, the daemon's next start begins a new chain"
        )


def verify_local(
    seal: ChainSeal, trail: ChainTrail, rows: Iterable[tuple[int, Sequence[Any], bytes | None]]
) -> ChainFindings:
    """Check all rows of the database: seq, values as ``canonical`` takes them, and mac, in order.

    Raises:
        OtherKeyError: the database was signed with another key.
    """
    findings, signed, began = _notes(seal, trail)
    walk = ChainWalk(seal, findings, [one for one in signed if one.kind == "expired"], start=_start(began))
    head = trail.head if trail.head and seal.is_signed(trail.head) else None
    foreign: list[int] = []
    for seq, values, mac in rows:
        if began and seq <= began.last_seq:
            findings.older += 1
            if mac and began.kind == "began":
                foreign.append(seq)
        elif head and seq > head.last_seq:
            findings.found("added", "the head says that the chain ends before it", (seq, seq), str(values[0]))
        else:
            walk.add(link(seq, values, mac))
    if foreign:
        told = "they were signed with a key that is not here, before the chain began anew"
        findings.found("changed", told, (foreign[0], foreign[-1]))
    walk.end(head.last_seq if head else 0, head.last_mac if head else None)
    return findings


async def verify_remote(seal: ChainSeal, trail: Callable[[], ChainTrail], reader: SupabaseReader) -> ChainFindings:
    """Check what Supabase has of this chain. ``trail`` reads the database as it is when it is called.

    Raises:
        OtherKeyError: the database was signed with another key.
        NotReadError: Supabase does not answer.
    """
    at_first = trail()
    notes = await reader.checkpoints(seal.chain)
    findings, signed, began = _notes(seal, at_first)
    start, covers = _start(began), [one for one in signed if one.kind in {"unsent", "refused"}]
    for note in notes:
        one = _noted(seal, findings, note)
        if one and one.kind == "forgotten":
            # Unsigned, so that it may stand for the beginning alone: what it spares is checked from there on.
            start = max(start, (one.last_seq + 1, one.after))
        elif one and one.kind in {"unsent", "refused"}:
            covers.append(one)
        elif one and one.kind == "begun again" and one.mac not in {known.mac for known in signed}:
            _begun_again(findings, one)
    walk = ChainWalk(seal, findings, covers, start=start)
    last_seq = at_first.head.last_seq if at_first.head else 0
    async for call, asked in reader.calls(seal.chain, up_to=last_seq):
        if began and began.kind == "begun again" and call["seq"] <= began.last_seq:
            findings.older += 1
        else:
            walk.add(_remote_link(call, asked))
    walk.end(at_first.settled_seq, None)
    findings.waiting = max(0, last_seq - max(at_first.settled_seq, findings.last_seq or 0))
    last_there = await reader.last_seq(seal.chain)
    head = trail().head  # the daemon may have gone on meanwhile
    if head and last_there > head.last_seq:
        told = "Supabase has calls that this database does not: it was set back, or is not the one that sent them"
        findings.found("added", told, (head.last_seq + 1, last_there))
    return findings


def _notes(seal: ChainSeal, trail: ChainTrail) -> tuple[ChainFindings, list[Checkpoint], Checkpoint | None]:
    """Check the head and the checkpoints. Returns with the findings the good ones since the chain began, and how."""
    findings, head = ChainFindings(chain=seal.chain), trail.head
    if head is not None and head.chain != seal.chain:
        raise ChainKeyError(seal, head.chain)
    signed = [one for one in trail.checkpoints if seal.is_signed(one)]
    began = max(
        (one for one in signed if one.kind in {"began", "begun again"}), key=lambda one: one.number, default=None
    )
    first = began.number if began else 1
    if head is None:
        findings.found("missing", "there is no head: nothing tells where the chain ends", (0, 0))
    elif not seal.is_signed(head):
        findings.found("changed", "the head is not as it was signed", (head.last_seq, head.last_seq))
    if began is None:
        findings.found("missing", "no checkpoint tells where the chain began", (1, 1))
    elif began.kind == "begun again":
        _begun_again(findings, began)
    for one in trail.checkpoints:
        if one.number >= first and one not in signed:
            told = f"checkpoint {one.number} ({one.kind}) is not as it was signed"
            findings.found("changed", told, (one.first_seq, one.last_seq))
    numbers = {one.number for one in trail.checkpoints}
    for number in sorted(set(range(first, head.checkpoints + 1 if head else first)) - numbers):
        findings.found("missing", f"checkpoint {number} is not there", (0, 0))
    signed = [one for one in signed if one.number >= first]
    for one in signed:
        _count(findings, one)
    return findings, signed, began


def _begun_again(findings: ChainFindings, one: Checkpoint) -> None:
    findings.found("missing", _BEGUN_AGAIN, (min(1, one.last_seq), one.last_seq))


def _start(began: Checkpoint | None) -> tuple[int, bytes]:
    return (began.last_seq + 1, began.after) if began else (1, GENESIS)


def _count(findings: ChainFindings, one: Checkpoint) -> None:
    count = findings.checkpoints.setdefault(one.kind, ChainCount())
    count.checkpoints += 1
    count.calls = None if count.calls is None or one.calls is None else count.calls + one.calls
    if one.kind == "gap":
        findings.gaps.append(ChainGap(after_seq=one.last_seq, since=one.since, until=one.until))


def _noted(seal: ChainSeal, findings: ChainFindings, note: Record) -> Checkpoint | None:
    """The checkpoint of a row of ``toold_checkpoints``; None for one that is not as it was signed."""
    try:
        one = checkpoint_of(note)
    except (ValueError, TypeError, KeyError):
        one = None
    if one is not None and one.kind == "forgotten":
        _count(findings, one)
    elif one is None or not seal.is_signed(one):
        findings.found("changed", f"checkpoint {note.get('number')} is not as it was signed", (0, 0))
        return None
    return one


def _remote_link(call: Record, asked: Record | None) -> ChainLink:
    try:
        mac = bytes.fromhex(call["mac"] or "")
    except ValueError:
        mac = b""
    try:
        return link(call["seq"], call_values(call, asked), mac)
    except (ValueError, TypeError, KeyError):
        return ChainLink(call["seq"], str(call["id"]), None, mac)
