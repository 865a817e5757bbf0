"""Alternating pairs of runs: how records are paired, and verdicts on synthetic latencies."""

from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from baseline.comparison import IncomparableError, Row
from baseline.record import Call, Record
from baseline.runs_by_turns import MIN_CALLS, Runs, compare_by_turns, pairs_of

MakeRecord = Callable[..., Record]
MakeCall = Callable[..., Call]
Drawn = Callable[..., list[Runs]]


@pytest.fixture
def drawn(make_record: MakeRecord, make_call: MakeCall) -> Drawn:
    """A function that draws pairs of runs on a noisy machine: calls vary, and each process has its own speed."""

    def make(
        seed: int = 1, pairs: int = 8, slower: float = 1.0, process: float = 0.1, tools: int = 3, calls: int = 8
    ) -> list[Runs]:
        generator = np.random.default_rng(seed)

        def run(pair: int, name: str, factor: float) -> Record:
            speed = float(generator.lognormal(0, process))
            made = [
                make_call(
                    tool_name=f"tool-{tool}",
                    iteration=n,
                    latency_ms=10 * speed * (factor if tool == 0 else 1) * float(generator.lognormal(0, 0.2)),
                )
                for tool in range(tools)
                for n in range(1, calls + 1)
            ]
            return make_record(made, id=f"{name}-{pair}", started=f"2026-01-01T12:00:{pair:02}+00:00")

        drawn = [(run(pair, "old", 1.0), run(pair, "new", slower)) for pair in range(pairs)]
        return [(old, msgspec.structs.replace(new, paired_run=old.id)) for old, new in drawn]

    return make


def named(*records: Record) -> dict[str, Record]:
    return {f"{record.id}.json": record for record in records}


def rows_of(pairs: list[Runs]) -> dict[str, Row]:
    return {row.tool_name: row for row in compare_by_turns(pairs).rows}


def test_slower_tool_is_found_among_others(drawn: Drawn) -> None:
    """A tool that takes half as long again is slower, or faster with the sides swapped; the other tools have no
    change.
    """
    pairs = drawn(slower=1.5, tools=3)
    rows = rows_of(pairs)
    assert [row.verdict for row in rows.values()] == ["slower", "not enough data", "not enough data"]
    assert compare_by_turns(pairs).worse
    ratio = rows["tool-0"].ratio
    assert ratio is not None
    assert (ratio.low or 0) < 1.5 < (ratio.high or 0)
    back = [
        (msgspec.structs.replace(new, paired_run=None), msgspec.structs.replace(old, paired_run=new.id))
        for old, new in pairs
    ]
    assert rows_of(back)["tool-0"].verdict == "faster"
    assert not compare_by_turns(back).worse


@pytest.mark.slow
def test_process_differences_are_not_reported(drawn: Drawn) -> None:
    """Few of 30 comparisons without a difference report one, although each process has its own speed and enough calls
    to show it.
    """
    alarms = sum(
        any(row.verdict in {"slower", "faster"} for row in compare_by_turns(drawn(seed, process=0.3, pairs=6)).rows)
        for seed in range(30)
    )
    assert alarms <= 4  # 1.5 are expected at most; the probability of more than 4 is 2 %


def test_many_pairs_without_a_difference_are_the_same(drawn: Drawn) -> None:
    """With enough pairs that agree, the verdict of an unchanged tool is 'same'."""
    assert {row.verdict for row in rows_of(drawn(pairs=12, process=0.01, calls=40)).values()} == {"same"}


def test_few_pairs_are_not_enough(drawn: Drawn) -> None:
    """Five pairs are not enough, however large the difference, and the row gives the minimum."""
    row = rows_of(drawn(pairs=5, slower=9.0))["tool-0"]
    assert (row.verdict, row.ratio) == ("not enough data", None)
    assert row.because == "5 of 5 pairs of runs have 3 successes a side; 6 are the least"


def test_pairs_with_few_successes_do_not_count(drawn: Drawn) -> None:
    """A pair does not count for a tool with too few successes in it."""
    assert rows_of(drawn(pairs=8, calls=MIN_CALLS - 1))["tool-0"].because.startswith("0 of 8 pairs")


@pytest.mark.parametrize("pairs", [2, 4, 6])
def test_more_failures_are_worse(make_record: MakeRecord, make_call: MakeCall, pairs: int) -> None:
    """A tool that fails half of its calls in every later run fails more often, even with few runs. Fewer failures are
    not reported.
    """

    def run(name: str, failing: int) -> Record:
        calls = [make_call(iteration=n, status="error" if n <= failing else "success") for n in range(1, 9)]
        return make_record(calls, id=name)

    old, new = ([run(f"{failing}-{number}", failing) for number in range(pairs)] for failing in (0, 4))
    worse = compare_by_turns(list(zip(old, new, strict=True)))
    assert worse.rows[0].fails_more
    assert worse.worse
    assert not compare_by_turns(list(zip(new, old, strict=True))).rows[0].fails_more


def test_records_are_paired(drawn: Drawn) -> None:
    """Records in any order are paired; a duplicate counts once."""
    pairs = drawn(pairs=3)
    records = named(*[record for pair in reversed(pairs) for record in reversed(pair)])
    assert sorted(pairs_of(records | {"again": pairs[0][0]}), key=lambda pair: pair[0].id) == pairs


def test_unrelated_records_are_not_paired(drawn: Drawn) -> None:
    """Records that name no counterpart, and a single pair, are compared as single runs."""
    pairs = drawn(pairs=3)
    assert pairs_of(named(*[old for old, _ in pairs])) == []
    assert pairs_of(named(*pairs[0])) == []


def test_record_without_counterpart_is_an_error(drawn: Drawn) -> None:
    """If one record of a pair is missing, the error names the other."""
    (one, other), (alone, _) = drawn(pairs=2)
    with pytest.raises(IncomparableError, match=r"old-1\.json was not collected in alternation with any of the others"):
        pairs_of(named(one, other, alone))


def test_other_arguments_are_not_compared(drawn: Drawn) -> None:
    """A tool that was called with other arguments in any run has no verdict."""
    pairs = drawn(slower=3.0)
    old, new = pairs[2]
    asked = msgspec.structs.replace(new.configuration, arguments={"tool-0": {"text": "another"}})
    pairs[2] = old, msgspec.structs.replace(new, configuration=asked)
    assert rows_of(pairs)["tool-0"].because == "it was called with other arguments"


def test_simulated_and_real_are_not_compared(drawn: Drawn) -> None:
    """Simulated and real runs are not compared."""
    (old, new), *pairs = drawn()
    with pytest.raises(IncomparableError, match="simulated"):
        compare_by_turns([(old, msgspec.structs.replace(new, simulated=True)), *pairs])


def test_runs_without_a_common_tool_are_an_error(drawn: Drawn, make_record: MakeRecord, make_call: MakeCall) -> None:
    """Runs without a common tool are an error."""
    other = make_record([make_call(tool_name="other")])
    with pytest.raises(IncomparableError, match="no tool under the same load"):
        compare_by_turns([*drawn(), (other, other)])


def test_notes_name_weaknesses(drawn: Drawn) -> None:
    """The notes name daemons that were not started for each run, several commits, and a side that was continued
    alone.
    """
    pairs = drawn()
    (old, new), second = pairs[:2]
    asked = msgspec.structs.replace(old.configuration, daemon="ws://127.0.0.1:8079/")
    other = msgspec.structs.replace(old.environment, commit="abc")
    alone = tuple(msgspec.structs.replace(call, segment=2) for call in new.calls)
    first = (
        msgspec.structs.replace(old, configuration=asked, environment=other),
        msgspec.structs.replace(new, calls=alone),
    )
    notes = " ".join(compare_by_turns([first, second]).notes)
    assert "may have run on from pair to pair" in notes
    assert "may have run on" not in " ".join(compare_by_turns([second]).notes)
    assert "the daemon before is of several commits: abc, unknown" in notes
    assert "new-0 was continued by itself" in notes
