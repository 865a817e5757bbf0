"""Verifies the audit chain in the local database, and in Supabase by comparison with the local database."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from ..store import GENESIS, ChainSigner, ChainTrail, Checkpoint, SchemaDifference
from .chain_walk import ChainCount, ChainFindings, ChainGap, ChainLink, ChainWalk, link
from .supabase_reader import SupabaseReader
from .supabase_rows import Record, call_values, checkpoint_of

_RESTARTED: Final = (
    "a new chain begins here: audit.key had signed a chain, but when the daemon started, the database "
    "had no head of that chain. The database was removed, replaced or changed, so calls up to here cannot be verified. "
    "If you move the database away on purpose, move audit.key away too"
)


class ChainKeyError(Exception):
    """The key did not sign this database, so it cannot be verified."""

    def __init__(self, key: ChainSigner, chain: str) -> None:
        super().__init__(
            f"audit.key belongs to chain {key.chain}, but the database was signed for chain {chain}: restore its key; "
            "if it is lost, the daemon's next start begins a new chain"
        )


def verify_local(
    signer: ChainSigner,
    trail: ChainTrail,
    rows: Iterable[tuple[int, Sequence[Any], bytes | None]],
    schema: Iterable[SchemaDifference] = (),
) -> ChainFindings:
    """Verifies all rows of the database, given in order as (seq, values for ``canonical``, mac). Also reports the
    differences from the expected schema (``schema``), because the macs do not cover definitions.

    Raises:
        ChainKeyError: the database was signed with another key.
    """
    findings, signed, began = _verify_checkpoints(signer, trail)
    for difference in schema:
        findings.add_problem(difference.fault, _schema_problem(difference), (0, 0))
    walk = ChainWalk(
        signer, findings, [checkpoint for checkpoint in signed if checkpoint.kind == "expired"], start=_start(began)
    )
    head = trail.head if trail.head and signer.is_signed(trail.head) else None
    foreign: list[int] = []
    for seq, values, mac in rows:
        if began and seq <= began.last_seq:
            findings.older += 1
            if mac and began.kind == "began":
                foreign.append(seq)
        elif head and seq > head.last_seq:
            findings.add_problem(
                "added", "the signed head says that the chain ends earlier", (seq, seq), str(values[0])
            )
        else:
            walk.add(link(seq, values, mac))
    if foreign:
        message = "these rows precede the chain and were signed with another key, so they cannot be verified"
        findings.add_problem("changed", message, (foreign[0], foreign[-1]))
    walk.end(head.last_seq if head else 0, head.last_mac if head else None)
    return findings


async def verify_remote(signer: ChainSigner, trail: Callable[[], ChainTrail], reader: SupabaseReader) -> ChainFindings:
    """Verifies the rows of this chain in Supabase. ``trail`` reads the current head and checkpoints of the database.

    Raises:
        ChainKeyError: the database was signed with another key.
        SupabaseReadError: Supabase cannot be read.
    """
    at_first = trail()
    records = await reader.checkpoints(signer.chain)
    findings, signed, began = _verify_checkpoints(signer, at_first)
    start, covers = _start(began), [checkpoint for checkpoint in signed if checkpoint.kind in {"unsent", "refused"}]
    for record in records:
        checkpoint = _remote_checkpoint(signer, findings, record)
        if checkpoint and checkpoint.kind == "forgotten":
            # This checkpoint is unsigned, so it may only move the start of the verification: all later rows are
            # verified.
            start = max(start, (checkpoint.last_seq + 1, checkpoint.after))
        elif checkpoint and checkpoint.kind in {"unsent", "refused"}:
            covers.append(checkpoint)
        elif checkpoint and checkpoint.kind == "begun again" and checkpoint.mac not in {local.mac for local in signed}:
            _add_restart(findings, checkpoint)
    walk = ChainWalk(signer, findings, covers, start=start)
    last_seq = at_first.head.last_seq if at_first.head else 0
    async for call, provider_call in reader.calls(signer.chain, up_to=last_seq):
        if began and began.kind == "begun again" and call["seq"] <= began.last_seq:
            findings.older += 1
        else:
            walk.add(_remote_link(call, provider_call))
    walk.end(at_first.settled_seq, None)
    findings.waiting = max(0, last_seq - max(at_first.settled_seq, findings.last_seq or 0))
    last_there = await reader.last_seq(signer.chain)
    head = trail().head  # the daemon may have written rows meanwhile
    if head and last_there > head.last_seq:
        message = (
            "Supabase has calls that this database lacks: the database was restored from a backup, or the calls were "
            "not sent from it"
        )
        findings.add_problem("added", message, (head.last_seq + 1, last_there))
    return findings


def _verify_checkpoints(
    signer: ChainSigner, trail: ChainTrail
) -> tuple[ChainFindings, list[Checkpoint], Checkpoint | None]:
    """Verifies the head and the checkpoints. Returns the findings, the signed checkpoints since the chain began, and
    the checkpoint with which it began.
    """
    findings, head = ChainFindings(chain=signer.chain), trail.head
    if head is not None and head.chain != signer.chain:
        raise ChainKeyError(signer, head.chain)
    signed = [checkpoint for checkpoint in trail.checkpoints if signer.is_signed(checkpoint)]
    began = max(
        (checkpoint for checkpoint in signed if checkpoint.kind in {"began", "begun again"}),
        key=lambda checkpoint: checkpoint.number,
        default=None,
    )
    first = began.number if began else 1
    if head is None:
        findings.add_problem("missing", "the head is missing, so the end of the chain is unknown", (0, 0))
    elif not signer.is_signed(head):
        findings.add_problem("changed", "the head has an invalid signature", (head.last_seq, head.last_seq))
    if began is None:
        findings.add_problem("missing", "the checkpoint with which the chain began is missing", (1, 1))
    elif began.kind == "begun again":
        _add_restart(findings, began)
    for checkpoint in trail.checkpoints:
        if checkpoint.number >= first and checkpoint not in signed:
            message = f"checkpoint {checkpoint.number} ({checkpoint.kind}) has an invalid signature"
            findings.add_problem("changed", message, (checkpoint.first_seq, checkpoint.last_seq))
    numbers = {checkpoint.number for checkpoint in trail.checkpoints}
    for number in sorted(set(range(first, head.checkpoints + 1 if head else first)) - numbers):
        findings.add_problem("missing", f"checkpoint {number} is missing", (0, 0))
    signed = [checkpoint for checkpoint in signed if checkpoint.number >= first]
    for checkpoint in signed:
        _count(findings, checkpoint)
    return findings, signed, began


def _schema_problem(difference: SchemaDifference) -> str:
    what = f"the {difference.kind} {difference.name!r}"
    if difference.fault == "missing":
        return f"{what} of the schema is missing; restore an intact backup"
    who = "which toold did not create" if difference.fault == "added" else "which differs from the schema"
    return f"{what}, {who}, may change or copy written rows; find out who created it, then remove or restore it"


def _add_restart(findings: ChainFindings, checkpoint: Checkpoint) -> None:
    findings.add_problem("missing", _RESTARTED, (min(1, checkpoint.last_seq), checkpoint.last_seq))


def _start(began: Checkpoint | None) -> tuple[int, bytes]:
    return (began.last_seq + 1, began.after) if began else (1, GENESIS)


def _count(findings: ChainFindings, checkpoint: Checkpoint) -> None:
    count = findings.checkpoints.setdefault(checkpoint.kind, ChainCount())
    count.checkpoints += 1
    count.calls = None if count.calls is None or checkpoint.calls is None else count.calls + checkpoint.calls
    if checkpoint.kind == "gap":
        findings.gaps.append(ChainGap(after_seq=checkpoint.last_seq, since=checkpoint.since, until=checkpoint.until))


def _remote_checkpoint(signer: ChainSigner, findings: ChainFindings, record: Record) -> Checkpoint | None:
    """Returns the checkpoint of a row of ``toold_checkpoints``; None if its signature is invalid."""
    try:
        checkpoint = checkpoint_of(record)
    except (ValueError, TypeError, KeyError):
        checkpoint = None
    if checkpoint is not None and checkpoint.kind == "forgotten":
        _count(findings, checkpoint)
    elif checkpoint is None or not signer.is_signed(checkpoint):
        findings.add_problem("changed", f"checkpoint {record.get('number')} has an invalid signature", (0, 0))
        return None
    return checkpoint


def _remote_link(call: Record, provider_call: Record | None) -> ChainLink:
    try:
        mac = bytes.fromhex(call["mac"] or "")
    except ValueError:
        mac = b""
    try:
        return link(call["seq"], call_values(call, provider_call), mac)
    except (ValueError, TypeError, KeyError):
        return ChainLink(call["seq"], str(call["id"]), None, mac)
