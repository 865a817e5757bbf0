"""Walking a chain: an intact chain passes, and each change is reported at its position."""

import hashlib
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.audit.chain_walk import MAX_UNLINKED, ChainFindings, ChainLink, ChainWalk
from toold.store import GENESIS, ChainSigner, Checkpoint

SIGNER = ChainSigner(b"k" * 32)
Told = list[tuple[str, int, int]]


def chained(count: int, first: int = 1, before: bytes = GENESIS) -> list[ChainLink]:
    """Rows as a writer signs them."""
    rows = []
    for seq in range(first, first + count):
        signed = f"row {seq}".encode()
        before = SIGNER.row(before, signed)
        rows.append(ChainLink(seq, f"call-{seq}", signed, before))
    return rows


def cover(rows: Sequence[ChainLink], first: int, last: int, number: int = 1) -> Checkpoint:
    """A checkpoint that covers some of the rows."""
    macs = {row.seq: row.mac for row in rows} | {0: GENESIS}
    return Checkpoint(
        number=number, kind="unsent", first_seq=first, last_seq=last, calls=last - first + 1, since=1.0, until=2.0,
        before=macs[first - 1], after=macs[last],
    )  # fmt: skip


def walk(rows: Sequence[ChainLink], last: ChainLink, covers: Sequence[Checkpoint] = ()) -> ChainFindings:
    findings = ChainFindings(chain=SIGNER.chain)
    steps = ChainWalk(SIGNER, findings, covers, start=(1, GENESIS))
    for row in rows:
        steps.add(row)
    steps.end(last.seq, last.mac)
    return findings


def reported(findings: ChainFindings) -> Told:
    return [(problem.fault, problem.first_seq, problem.last_seq) for problem in findings.problems]


def altered(row: ChainLink) -> ChainLink:
    """The row with changed content and its old MAC."""
    return row._replace(signed=hashlib.sha256(row.signed or b"").digest())


def test_unchanged_chain_is_intact() -> None:
    """All rows of an unchanged chain are checked, and no problem is reported."""
    rows = chained(300)
    findings = walk(rows, rows[-1])
    assert findings.intact
    assert (findings.checked, findings.first_seq, findings.last_seq) == (300, 1, 300)


def test_empty_chain_is_intact() -> None:
    """A chain without rows is intact."""
    assert walk([], ChainLink(0, "", b"", GENESIS)).intact


@pytest.mark.parametrize("seq", [1, 5, 9])
def test_changed_row_is_reported(seq: int) -> None:
    """A changed row is reported by its number and call id at any position; the other rows pass."""
    rows = chained(9)
    changed = [altered(row) if row.seq == seq else row for row in rows]
    findings = walk(changed, rows[-1])
    assert reported(findings) == [("changed", seq, seq)]
    assert findings.problems[0].call == f"call-{seq}"
    assert findings.checked == 8


@pytest.mark.parametrize("seq", [1, 5, 9])
def test_changed_mac_affects_only_its_row(seq: int) -> None:
    """A changed MAC is reported at its row; the next row, which extends the original MAC, passes."""
    rows = chained(9)
    changed = [row._replace(mac=bytes(32)) if row.seq == seq else row for row in rows]
    assert reported(walk(changed, rows[-1])) == [("changed", seq, seq)]


def test_row_with_invalid_values_is_changed() -> None:
    """A row with values that no call can have counts as changed."""
    rows = chained(9)
    rows[3] = rows[3]._replace(signed=None)
    assert reported(walk(rows, rows[-1])) == [("changed", 4, 4)]


def test_swapped_rows_are_out_of_place() -> None:
    """Both swapped rows are reported, and the next row is not."""
    rows = chained(9)
    swapped = [*rows[:4], rows[5]._replace(seq=5), rows[4]._replace(seq=6), *rows[6:]]
    assert sorted(reported(walk(swapped, rows[-1]))) == [("out of place", 5, 5), ("out of place", 6, 6)]


def test_inserted_row_is_added() -> None:
    """An inserted row is reported even if the later rows are renumbered."""
    rows = chained(9)
    moved = [row._replace(seq=row.seq + 1) for row in rows[4:]]
    result = reported(walk([*rows[:4], ChainLink(5, "false", b"false", b"m" * 32), *moved], rows[-1]))
    assert ("added", 5, 5) in result


def test_duplicated_row_is_added() -> None:
    """A second row with the same number is reported."""
    rows = chained(9)
    assert reported(walk([*rows[:5], rows[4], *rows[5:]], rows[-1])) == [("added", 5, 5)]


@pytest.mark.parametrize("genuine_first", [True, False])
def test_forged_row_with_an_existing_seq_is_added(genuine_first: bool) -> None:
    """Of two rows with one number, the one that extends the previous MAC is genuine, whatever their order."""
    rows = chained(9)
    both = [rows[4], ChainLink(5, "false", b"false", b"m" * 32)]
    findings = walk([*rows[:4], *(both if genuine_first else both[::-1]), *rows[5:]], rows[-1])
    assert [(problem.fault, problem.call) for problem in findings.problems] == [("added", "false")]
    assert findings.checked == 9


@pytest.mark.parametrize(("first", "last"), [(1, 1), (1, 3), (4, 6), (9, 9), (1, 9)])
def test_removed_rows_are_missing(first: int, last: int) -> None:
    """A removed range is reported at the beginning, in the middle and at the end."""
    rows = chained(9)
    left = [row for row in rows if not first <= row.seq <= last]
    assert reported(walk(left, rows[-1])) == [("missing", first, last)]


def test_removed_and_renumbered_rows_are_detected() -> None:
    """Renumbering after a removal leaves one changed row and a missing end."""
    rows = chained(9)
    closed = [*rows[:4], *(row._replace(seq=row.seq - 1) for row in rows[5:])]
    assert reported(walk(closed, rows[-1])) == [("changed", 5, 5), ("missing", 9, 9)]


@pytest.mark.parametrize(("first", "last"), [(1, 3), (4, 6), (9, 9), (1, 9)])
def test_checkpoint_covers_its_rows(first: int, last: int) -> None:
    """A checkpoint that covers missing rows keeps the chain intact."""
    rows = chained(9)
    left = [row for row in rows if not first <= row.seq <= last]
    findings = walk(left, rows[-1], [cover(rows, first, last)])
    assert findings.intact
    assert findings.checked == len(left)


def test_checkpoint_covers_only_its_rows() -> None:
    """Rows that are missing next to a checkpoint are reported."""
    rows = chained(9)
    assert reported(walk(rows[6:], rows[-1], [cover(rows, 1, 4)])) == [("missing", 5, 6)]


def test_row_within_a_checkpoint_is_added() -> None:
    """A row that a checkpoint covers as removed counts as added."""
    rows = chained(9)
    left = [rows[0], ChainLink(3, "false", b"false", b"m" * 32), *rows[4:]]
    assert reported(walk(left, rows[-1], [cover(rows, 2, 4)])) == [("added", 3, 3)]


def test_adjacent_checkpoints_are_intact() -> None:
    """A checkpoint may follow directly after another one."""
    rows = chained(9)
    covers = [cover(rows, 2, 4), cover(rows, 5, 5, 2), cover(rows, 7, 8, 3)]
    assert walk([rows[0], rows[5], rows[8]], rows[-1], covers).intact


def test_checkpoint_with_other_macs_is_detected() -> None:
    """A checkpoint must start at the MAC of the row before it."""
    rows = chained(9)
    other = [altered(row) if row.seq == 3 else row for row in rows]
    other[2] = other[2]._replace(mac=SIGNER.row(other[1].mac, other[2].signed or b""))
    findings = walk([*other[:3], *rows[6:]], rows[-1], [cover(rows, 4, 6)])
    assert reported(findings) == [("changed", 3, 3)]


def test_unrelated_chain_is_reported_completely() -> None:
    """If no row matches, each row is reported in reasonable time."""
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
    first, other = rows[at], rows[at - 1]
    swapped = list(rows)
    swapped[at], swapped[at - 1] = other._replace(seq=first.seq), first._replace(seq=other.seq)
    return swapped


TAMPERING: list[Callable[[list[ChainLink], int], list[ChainLink]]] = [remove, change, spoil, double, swap]


@given(st.data())
def test_tampering_is_always_detected(data: st.DataObject) -> None:
    """After any sequence of changes, the chain is intact only if the rows equal the original ones."""
    rows = chained(data.draw(st.integers(2, 30)))
    left = rows
    for _ in range(data.draw(st.integers(1, 4))):
        if left:
            left = data.draw(st.sampled_from(TAMPERING))(left, data.draw(st.integers(0, len(left) - 1)))
    assert walk(left, rows[-1]).intact == (left == rows)


@given(st.integers(1, 30), st.sets(st.integers(1, 30)))
def test_covered_gaps_are_intact(count: int, missing: set[int]) -> None:
    """Any set of rows may be missing if checkpoints cover it."""
    rows = chained(count)
    covers = [cover(rows, seq, seq) for seq in missing if seq <= count]
    assert walk([row for row in rows if row.seq not in missing], rows[-1], covers).intact
