"""Pairs of runs by turns: which records they are, and verdicts on latencies that are drawn here (synthetic)."""

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
    """A function that draws pairs of runs on a noisy machine: calls scatter, each process has a speed of its own."""

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
        return [(old, msgspec.structs.replace(new, beside=old.id)) for old, new in drawn]

    return make


def named(*records: Record) -> dict[str, Record]:
    return {f"{record.id}.json": record for record in records}


def rows_of(pairs: list[Runs]) -> dict[str, Row]:
    return {row.tool_name: row for row in compare_by_turns(pairs).rows}


def test_a_slower_tool_is_found_among_others(drawn: Drawn) -> None:
    """Half as long again in one of three tools is slower there, faster the other way round, and nothing elsewhere."""
    pairs = drawn(slower=1.5, tools=3)
    rows = rows_of(pairs)
    assert [row.verdict for row in rows.values()] == ["slower", "not enough data", "not enough data"]
    assert compare_by_turns(pairs).worse
    ratio = rows["tool-0"].ratio
    assert ratio is not None
    assert (ratio.low or 0) < 1.5 < (ratio.high or 0)
    back = [
        (msgspec.structs.replace(new, beside=None), msgspec.structs.replace(old, beside=new.id)) for old, new in pairs
    ]
    assert rows_of(back)["tool-0"].verdict == "faster"
    assert not compare_by_turns(back).worse


def test_processes_that_differ_are_no_alarm(drawn: Drawn) -> None:
    """Of 60 comparisons without a difference few have an alarm, although each process has its own speed and each
    process alone has calls enough to be sure of it."""
    alarms = sum(
        any(row.verdict in {"slower", "faster"} for row in compare_by_turns(drawn(seed, process=0.3, pairs=6)).rows)
        for seed in range(60)
    )
    assert alarms <= 6  # 3 are promised at most; more than 6 has a chance of 3 %


def test_many_pairs_without_a_difference_are_the_same(drawn: Drawn) -> None:
    """Where pairs enough agree, an unchanged tool is 'same', and not silence."""
    assert {row.verdict for row in rows_of(drawn(pairs=12, process=0.01, calls=40)).values()} == {"same"}


def test_few_pairs_are_not_enough(drawn: Drawn) -> None:
    """Five pairs cannot tell, however large the difference, and the row says how many are the least."""
    row = rows_of(drawn(pairs=5, slower=9.0))["tool-0"]
    assert (row.verdict, row.ratio) == ("not enough data", None)
    assert row.because == "5 of 5 pairs of runs have 3 successes a side; 6 are the least"


def test_pairs_with_few_successes_do_not_count(drawn: Drawn) -> None:
    """A pair in which a tool hardly succeeded is no trial of its speed."""
    assert rows_of(drawn(pairs=8, calls=MIN_CALLS - 1))["tool-0"].because.startswith("0 of 8 pairs")


@pytest.mark.parametrize("pairs", [2, 4, 6])
def test_failing_more_is_worse(make_record: MakeRecord, make_call: MakeCall, pairs: int) -> None:
    """A tool that fails half of its calls in every later run fails more, however few runs; fewer failures are none."""

    def run(name: str, failing: int) -> Record:
        calls = [make_call(iteration=n, status="error" if n <= failing else "success") for n in range(1, 9)]
        return make_record(calls, id=name)

    old, new = ([run(f"{failing}-{number}", failing) for number in range(pairs)] for failing in (0, 4))
    worse = compare_by_turns(list(zip(old, new, strict=True)))
    assert worse.rows[0].fails_more
    assert worse.worse
    assert not compare_by_turns(list(zip(new, old, strict=True))).rows[0].fails_more


def test_pairs_find_each_other(drawn: Drawn) -> None:
    """Records in any order come to their pairs; one given twice counts once."""
    pairs = drawn(pairs=3)
    records = named(*[record for pair in reversed(pairs) for record in reversed(pair)])
    assert sorted(pairs_of(records | {"again": pairs[0][0]}), key=lambda pair: pair[0].id) == pairs


def test_other_records_are_no_pairs(drawn: Drawn) -> None:
    """Records that name none beside them, and a single pair, are compared as single runs."""
    pairs = drawn(pairs=3)
    assert pairs_of(named(*[old for old, _ in pairs])) == []
    assert pairs_of(named(*pairs[0])) == []


def test_one_without_its_other_is_named(drawn: Drawn) -> None:
    """Where one of a pair is missing among pairs, it is said which."""
    (one, other), (alone, _) = drawn(pairs=2)
    with pytest.raises(IncomparableError, match=r"old-1\.json was collected beside none of the others"):
        pairs_of(named(one, other, alone))


def test_other_arguments_are_not_compared(drawn: Drawn) -> None:
    """A tool that any of the runs called with something else is left without a verdict."""
    pairs = drawn(slower=3.0)
    old, new = pairs[2]
    asked = msgspec.structs.replace(new.configuration, arguments={"tool-0": {"text": "another"}})
    pairs[2] = old, msgspec.structs.replace(new, configuration=asked)
    assert rows_of(pairs)["tool-0"].because == "it was called with other arguments"


def test_simulated_and_real_are_not_compared(drawn: Drawn) -> None:
    """A simulator's latencies are held against no vendor's."""
    (old, new), *pairs = drawn()
    with pytest.raises(IncomparableError, match="simulated"):
        compare_by_turns([(old, msgspec.structs.replace(new, simulated=True)), *pairs])


def test_nothing_in_common(drawn: Drawn, make_record: MakeRecord, make_call: MakeCall) -> None:
    """Where the runs have no tool in common, that is an error."""
    other = make_record([make_call(tool_name="other")])
    with pytest.raises(IncomparableError, match="no tool under the same load"):
        compare_by_turns([*drawn(), (other, other)])


def test_what_makes_figures_say_less_is_noted(drawn: Drawn) -> None:
    """Daemons that were not started for each run, several commits, and a part that was continued alone are named."""
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
