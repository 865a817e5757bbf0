"""Following a chain: what is intact passes, and each way to tamper is found where it was done."""

import hashlib
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.audit.chain_walk import MAX_UNLINKED, ChainFindings, ChainLink, ChainWalk
from toold.store import GENESIS, ChainSeal, Checkpoint

SEAL = ChainSeal(b"k" * 32)
Told = list[tuple[str, int, int]]


def chained(count: int, first: int = 1, before: bytes = GENESIS) -> list[ChainLink]:
    """Rows as a writer makes them."""
    rows = []
    for seq in range(first, first + count):
        signed = f"row {seq}".encode()
        before = SEAL.row(before, signed)
        rows.append(ChainLink(seq, f"call-{seq}", signed, before))
    return rows


def cover(rows: Sequence[ChainLink], first: int, last: int, number: int = 1) -> Checkpoint:
    """A checkpoint for some of the rows."""
    macs = {row.seq: row.mac for row in rows} | {0: GENESIS}
    return Checkpoint(
        number=number, kind="unsent", first_seq=first, last_seq=last, calls=last - first + 1, since=1.0, until=2.0,
        before=macs[first - 1], after=macs[last],
    )  # fmt: skip


def walk(rows: Sequence[ChainLink], last: ChainLink, covers: Sequence[Checkpoint] = ()) -> ChainFindings:
    findings = ChainFindings(chain=SEAL.chain)
    steps = ChainWalk(SEAL, findings, covers, start=(1, GENESIS))
    for row in rows:
        steps.add(row)
    steps.end(last.seq, last.mac)
    return findings


def told(findings: ChainFindings) -> Told:
    return [(one.fault, one.first_seq, one.last_seq) for one in findings.problems]


def altered(row: ChainLink) -> ChainLink:
    """Its content changed, its mac kept."""
    return row._replace(signed=hashlib.sha256(row.signed or b"").digest())


def test_an_untouched_chain_is_intact() -> None:
    """All rows are checked, and nothing is found."""
    rows = chained(300)
    findings = walk(rows, rows[-1])
    assert findings.intact
    assert (findings.checked, findings.first_seq, findings.last_seq) == (300, 1, 300)


def test_an_empty_chain_is_intact() -> None:
    """Of no rows none is missing."""
    assert walk([], ChainLink(0, "", b"", GENESIS)).intact


@pytest.mark.parametrize("seq", [1, 5, 9])
def test_a_changed_row_is_named(seq: int) -> None:
    """One row is told, by seq and call, wherever it stands; the others pass."""
    rows = chained(9)
    changed = [altered(row) if row.seq == seq else row for row in rows]
    findings = walk(changed, rows[-1])
    assert told(findings) == [("changed", seq, seq)]
    assert findings.problems[0].call == f"call-{seq}"
    assert findings.checked == 8


@pytest.mark.parametrize("seq", [1, 5, 9])
def test_changed_mac_affects_only_its_row(seq: int) -> None:
    """The row after it, which followed from the mac that was there, is not accused."""
    rows = chained(9)
    changed = [row._replace(mac=bytes(32)) if row.seq == seq else row for row in rows]
    assert told(walk(changed, rows[-1])) == [("changed", seq, seq)]


def test_a_row_of_impossible_values_is_changed() -> None:
    """What no row could have been counts as changed."""
    rows = chained(9)
    rows[3] = rows[3]._replace(signed=None)
    assert told(walk(rows, rows[-1])) == [("changed", 4, 4)]


def test_two_rows_swapped_are_out_of_place() -> None:
    """Both are told, and the row after them is not."""
    rows = chained(9)
    swapped = [*rows[:4], rows[5]._replace(seq=5), rows[4]._replace(seq=6), *rows[6:]]
    assert sorted(told(walk(swapped, rows[-1]))) == [("out of place", 5, 5), ("out of place", 6, 6)]


def test_inserted_row_is_added() -> None:
    """A row that nothing leads to, with those after it moved up, is told, and so is the surplus at the end."""
    rows = chained(9)
    moved = [row._replace(seq=row.seq + 1) for row in rows[4:]]
    found = told(walk([*rows[:4], ChainLink(5, "false", b"false", b"m" * 32), *moved], rows[-1]))
    assert ("added", 5, 5) in found


def test_duplicated_row_is_added() -> None:
    """A second row of the same number is told."""
    rows = chained(9)
    assert told(walk([*rows[:5], rows[4], *rows[5:]], rows[-1])) == [("added", 5, 5)]


@pytest.mark.parametrize("genuine_first", [True, False])
def test_forged_row_with_an_existing_seq_is_added(genuine_first: bool) -> None:
    """Whichever comes first, the one that follows from the row before is the one that was written."""
    rows = chained(9)
    both = [rows[4], ChainLink(5, "false", b"false", b"m" * 32)]
    findings = walk([*rows[:4], *(both if genuine_first else both[::-1]), *rows[5:]], rows[-1])
    assert [(one.fault, one.call) for one in findings.problems] == [("added", "false")]
    assert findings.checked == 9


@pytest.mark.parametrize(("first", "last"), [(1, 1), (1, 3), (4, 6), (9, 9), (1, 9)])
def test_removed_rows_are_missing(first: int, last: int) -> None:
    """The range is told, at the beginning, in the middle, and at the end."""
    rows = chained(9)
    left = [row for row in rows if not first <= row.seq <= last]
    assert told(walk(left, rows[-1])) == [("missing", first, last)]


def test_removed_and_renumbered_rows_are_detected() -> None:
    """Closing the gap by new numbers leaves a row that does not follow, and an end that is missing."""
    rows = chained(9)
    closed = [*rows[:4], *(row._replace(seq=row.seq - 1) for row in rows[5:])]
    assert told(walk(closed, rows[-1])) == [("changed", 5, 5), ("missing", 9, 9)]


@pytest.mark.parametrize(("first", "last"), [(1, 3), (4, 6), (9, 9), (1, 9)])
def test_checkpoint_covers_its_rows(first: int, last: int) -> None:
    """Where a checkpoint covers what is not there, the chain goes on."""
    rows = chained(9)
    left = [row for row in rows if not first <= row.seq <= last]
    findings = walk(left, rows[-1], [cover(rows, first, last)])
    assert findings.intact
    assert findings.checked == len(left)


def test_a_checkpoint_covers_no_more_than_its_rows() -> None:
    """Rows that were taken away beside it are missing."""
    rows = chained(9)
    assert told(walk(rows[6:], rows[-1], [cover(rows, 1, 4)])) == [("missing", 5, 6)]


def test_a_row_within_a_checkpoint_is_added() -> None:
    """What is said to be removed is not there."""
    rows = chained(9)
    left = [rows[0], ChainLink(3, "false", b"false", b"m" * 32), *rows[4:]]
    assert told(walk(left, rows[-1], [cover(rows, 2, 4)])) == [("added", 3, 3)]


def test_adjacent_checkpoints() -> None:
    """One leads to the next."""
    rows = chained(9)
    covers = [cover(rows, 2, 4), cover(rows, 5, 5, 2), cover(rows, 7, 8, 3)]
    assert walk([rows[0], rows[5], rows[8]], rows[-1], covers).intact


def test_checkpoint_with_other_macs_is_detected() -> None:
    """The row before it must be the one that it was made after."""
    rows = chained(9)
    other = [altered(row) if row.seq == 3 else row for row in rows]
    other[2] = other[2]._replace(mac=SEAL.row(other[1].mac, other[2].signed or b""))
    findings = walk([*other[:3], *rows[6:]], rows[-1], [cover(rows, 4, 6)])
    assert told(findings) == [("changed", 3, 3)]


def test_unrelated_chain() -> None:
    """Where nothing fits, each row is told, in reasonable time."""
    rows = [row._replace(mac=hashlib.sha256(row.mac).digest()) for row in chained(3 * MAX_UNLINKED)]
    findings = walk(rows, rows[-1])
    assert findings.broken == 3 * MAX_UNLINKED
    assert findings.checked == 0


def remove(rows: list[ChainLink], at: int) -> list[ChainLink]:
    return rows[:at] + rows[at + 1 :]


def change(rows: list[ChainLink], at: int) -> list[ChainLink]:
    return [*rows[:at], altered(rows[at]), *rows[at + 1 :]]


def spoil(rows: list[ChainLink], at: int) -> list[ChainLink]:
    return [*rows[:at], rows[at]._replace(mac=b"?" * 32), *rows[at + 1 :]]


def double(rows: list[ChainLink], at: int) -> list[ChainLink]:
    return [*rows[: at + 1], rows[at], *rows[at + 1 :]]


def swap(rows: list[ChainLink], at: int) -> list[ChainLink]:
    one, other = rows[at], rows[at - 1]
    swapped = list(rows)
    swapped[at], swapped[at - 1] = other._replace(seq=one.seq), one._replace(seq=other.seq)
    return swapped


TAMPERING: list[Callable[[list[ChainLink], int], list[ChainLink]]] = [remove, change, spoil, double, swap]


@given(st.data())
def test_tampering_is_always_detected(data: st.DataObject) -> None:
    """Whatever is done to whichever rows, and how often: where rows differ from what was written, it is broken."""
    rows = chained(data.draw(st.integers(2, 30)))
    left = rows
    for _ in range(data.draw(st.integers(1, 4))):
        if left:
            left = data.draw(st.sampled_from(TAMPERING))(left, data.draw(st.integers(0, len(left) - 1)))
    assert walk(left, rows[-1]).intact == (left == rows)


@given(st.integers(1, 30), st.sets(st.integers(1, 30)))
def test_covered_gaps_are_intact(count: int, gone: set[int]) -> None:
    """Any set of rows may be gone, as long as there are checkpoints for them."""
    rows = chained(count)
    covers = [cover(rows, seq, seq) for seq in gone if seq <= count]
    assert walk([row for row in rows if row.seq not in gone], rows[-1], covers).intact
