"""Verifies the audit chains of a database that several nodes use: each chain, and the bindings between them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from ..store import ChainEnd, ChainSigner, ChainTrail, SchemaDifference, bound_hash, chain_key, last_bound
from .audit_verification import verify_local
from .chain_walk import ChainFindings


class ChainArchive(Protocol):
    """The audit chains of a database, by their numbers."""

    def chains(self) -> list[int]: ...

    def trail(self, chain: int) -> ChainTrail: ...

    def chained_rows(self, chain: int) -> Iterator[tuple[int, Sequence[Any], bytes | None]]: ...

    def binding(self, chain: int) -> list[ChainEnd] | None: ...

    def mac_at(self, chain: int, seq: int) -> bytes | None: ...


def verify_chains(
    key: bytes, archive: ChainArchive, schema: Iterable[SchemaDifference] = ()
) -> dict[int, ChainFindings]:
    """Verifies all rows of all chains, and the bindings between the chains. Returns the findings by chain number; the
    findings of the first chain include the differences from the expected schema (``schema``).

    Raises:
        ChainKeyError: the database was signed with another key.
    """
    signers = {number: ChainSigner(chain_key(key, number)) for number in archive.chains()}
    trails = {number: archive.trail(number) for number in signers}
    first = min(signers, default=0)
    findings = {
        number: verify_local(signer, trails[number], archive.chained_rows(number), schema if number == first else ())
        for number, signer in signers.items()
    }
    numbers = {signer.chain: number for number, signer in signers.items()}
    for number, trail in trails.items():
        signed = [checkpoint for checkpoint in trail.checkpoints if signers[number].is_signed(checkpoint)]
        bound = last_bound(signed)
        ends = archive.binding(number)
        if bound is not None and (ends is None or bound_hash(ends) != bound.after):
            message = f"the ends of the other chains, to which checkpoint {bound.number} binds this one, were changed"
            findings[number].add_problem("changed", message, (0, 0))
        elif bound is not None and ends is not None:
            for end in ends:
                _verify_end(archive, findings, numbers, trails, end, stated_by=number)
    return findings


def _verify_end(
    archive: ChainArchive,
    findings: Mapping[int, ChainFindings],
    numbers: Mapping[str, int],
    trails: Mapping[int, ChainTrail],
    end: ChainEnd,
    *,
    stated_by: int,
) -> None:
    """Adds a problem if a chain does not have the end that another chain has recorded."""
    number = numbers.get(end.chain)
    if number is None:
        message = f"the chain {end.chain}, which had {end.seq} calls, is missing as a whole"
        findings[stated_by].add_problem("missing", message, (0, 0))
        return
    if end.seq == 0 or _is_covered(trails[number], end.seq):
        return
    mac = archive.mac_at(number, end.seq)
    if mac is None and not _is_missed(findings[number], end.seq):
        message = f"chain {stated_by} states that this chain had this call"
        findings[number].add_problem("missing", message, (end.seq, end.seq))
    elif mac is not None and mac.hex() != end.mac:
        message = f"chain {stated_by} states that another call had this seq: this chain was reset to an earlier state"
        findings[number].add_problem("changed", message, (end.seq, end.seq))


def _is_covered(trail: ChainTrail, seq: int) -> bool:
    """Whether a checkpoint explains that the row is missing. ``verify_local`` has verified the checkpoints."""
    began = max((c.last_seq for c in trail.checkpoints if c.kind in {"began", "begun again"}), default=0)
    return seq <= began or any(c.kind == "expired" and c.first_seq <= seq <= c.last_seq for c in trail.checkpoints)


def _is_missed(findings: ChainFindings, seq: int) -> bool:
    """Whether the verification of the chain already reports the row as missing."""
    return any(each.fault == "missing" and each.first_seq <= seq <= each.last_seq for each in findings.problems)
