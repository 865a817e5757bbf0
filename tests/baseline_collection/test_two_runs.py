"""Two runs: verdicts on distributions that are drawn here (synthetic, not measured)."""

from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from baseline.comparison import Comparison, IncomparableError, Row
from baseline.record import Call, Load, Record
from baseline.two_runs import MIN_CALLS, compare, following
from baseline.verdicts import holm

ONE = Load(concurrency=1)
Make = Callable[..., Record]


@pytest.fixture
def drawn(make_record: Make, make_call: Callable[..., Call]) -> Callable[..., Record]:
    """A function that makes a record whose latencies are drawn: skewed as latencies are, with a median of 10 ms."""

    def make(
        seed: int, tools: int = 4, calls: int = 30, slower: float = 1.0, name: str = "run", **fields: object
    ) -> Record:
        generator = np.random.default_rng(seed)
        made = [
            make_call(
                tool_name=f"tool-{tool}", iteration=n, latency_ms=10 * slower * float(generator.lognormal(0, 0.1))
            )
            for tool in range(tools)
            for n in range(1, calls + 1)
        ]
        return make_record(made, id=f"{name}-{seed}", **fields)

    return make


def beside(before: Record, after: Record) -> tuple[Record, Record]:
    return before, msgspec.structs.replace(after, beside=before.id)


def row_of(comparison: Comparison) -> Row:
    (row,) = comparison.rows
    return row


def test_synthetic_pairs_without_a_difference(drawn: Callable[..., Record]) -> None:
    """Of 50 pairs that are drawn from the same distribution (synthetic), few have any tool called slower or faster."""
    pairs = [beside(drawn(2 * n), drawn(2 * n + 1)) for n in range(50)]
    alarms = sum(any(row.verdict in {"slower", "faster"} for row in compare(*pair).rows) for pair in pairs)
    assert alarms <= 2


def test_synthetic_pairs_with_a_difference(drawn: Callable[..., Record]) -> None:
    """Where each call takes two fifths longer (synthetic), every tool is slower; the other way round, faster."""
    before, after = drawn(1), drawn(2, slower=1.4)
    assert {row.verdict for row in compare(*beside(before, after)).rows} == {"slower"}
    assert {row.verdict for row in compare(*beside(after, before)).rows} == {"faster"}
    assert compare(*beside(before, after)).worse
    assert not compare(*beside(after, before)).worse


def test_many_calls_without_a_difference_are_the_same(drawn: Callable[..., Record]) -> None:
    """With calls enough, the interval of an unchanged tool lies within the threshold: that is 'same', not silence."""
    assert {row.verdict for row in compare(*beside(drawn(1, calls=200), drawn(2, calls=200))).rows} == {"same"}


def test_few_calls_are_not_enough(drawn: Callable[..., Record]) -> None:
    """Below the least number of successes nothing is tested, however large the difference looks."""
    row = row_of(compare(*beside(drawn(1, tools=1, calls=MIN_CALLS - 1), drawn(2, tools=1, slower=9.0))))
    assert (row.verdict, row.p, row.ratio) == ("not enough data", None, None)
    assert f"{MIN_CALLS - 1} successes" in row.because


def test_the_least_number_of_calls_can_be_significant() -> None:
    """With that number, two runs without a common latency pass the correction for 30 tools."""
    ps = holm({(f"tool-{n}", ONE): 1.0 for n in range(29)} | {("slow", ONE): 2 / 12870})  # 2 of 16 over 8 orders
    assert ps["slow", ONE] <= 0.05


def test_the_effect_says_how_often(drawn: Callable[..., Record]) -> None:
    """Where every call is slower than every earlier one, the effect is 1."""
    row = row_of(compare(*beside(drawn(1, tools=1), drawn(2, tools=1, slower=9.0))))
    assert (row.effect, row.effect_size) == (1.0, "large")


def test_one_after_the_other_on_a_busy_machine(drawn: Callable[..., Record]) -> None:
    """A difference between runs that were not made by turns is no verdict where the machine was busy in either."""
    before, after = drawn(1, contention=0.1), drawn(2, slower=2.0, contention=0.4)
    apart = compare(before, after)
    assert {row.verdict for row in apart.rows} == {"not enough data"}
    assert "the machine was busy (40%" in apart.rows[0].because
    assert "--candidate" in apart.notes[0]
    assert {row.verdict for row in compare(*beside(before, after)).rows} == {"slower"}


def test_by_turns_on_a_machine_that_is_overloaded(drawn: Callable[..., Record]) -> None:
    """Runs by turns bear more of other work, but not any."""
    before, after = drawn(1, contention=0.6), drawn(2, slower=2.0, contention=0.6)
    assert {row.verdict for row in compare(*beside(before, after)).rows} == {"not enough data"}


def test_one_after_the_other_on_a_calm_machine(drawn: Callable[..., Record]) -> None:
    """On a machine that had nothing else to do, or does not tell, runs compare whenever they were made."""
    for contention in (0.1, None):
        before, after = (drawn(n, slower=n, contention=contention) for n in (1, 2))
        assert {row.verdict for row in compare(before, after).rows} == {"slower"}


def test_failing_more_is_worse(make_record: Make, make_call: Callable[..., Call]) -> None:
    """A tool that fails far oftener is said to, and makes the comparison worse, however fast it is."""
    good = [make_call(iteration=n, latency_ms=10 + n % 7 / 100) for n in range(20)]
    bad = [*good[:8], *(make_call(iteration=n, status="error", error_code="TIMEOUT") for n in range(12))]
    comparison = compare(make_record(good), make_record(bad))
    assert row_of(comparison).fails_more
    assert comparison.worse
    assert not compare(make_record(bad), make_record(good)).worse


def test_one_failure_more_is_none(make_record: Make, make_call: Callable[..., Call]) -> None:
    """A single failure of twenty is no change of the success rate."""
    good = [make_call(iteration=n) for n in range(20)]
    bad = [*good[:19], make_call(iteration=20, status="error", error_code="TIMEOUT")]
    assert not row_of(compare(make_record(good), make_record(bad))).fails_more


def test_other_arguments_are_not_compared(drawn: Callable[..., Record]) -> None:
    """A tool that was called with something else is left without a verdict, and the row says why."""
    before, after = drawn(1, tools=1), drawn(2, tools=1, slower=3.0)
    asked = msgspec.structs.replace(after.configuration, arguments={"tool-0": {"text": "another"}})
    row = row_of(compare(before, msgspec.structs.replace(after, configuration=asked)))
    assert (row.verdict, row.because) == ("not enough data", "it was called with other arguments")


def test_simulated_and_real_are_not_compared(drawn: Callable[..., Record]) -> None:
    """A simulator's latencies are held against no vendor's."""
    with pytest.raises(IncomparableError, match="one of the records is simulated"):
        compare(drawn(1, simulated=True), drawn(2))


def test_nothing_in_common(make_record: Make, make_call: Callable[..., Call]) -> None:
    """Records of other tools, or other loads, are an error."""
    with pytest.raises(IncomparableError, match="no tool under the same load"):
        compare(make_record([make_call()]), make_record([make_call(load=Load(concurrency=8))]))


def test_what_else_changed_is_noted(make_record: Make, make_call: Callable[..., Call]) -> None:
    """Another machine, another Python, a run that was cut off and tools of one record alone are named."""
    before = make_record([make_call(), make_call(tool_name="gone")])
    other = msgspec.structs.replace(
        before.environment,
        python="CPython 3.13.1",
        machine=msgspec.structs.replace(before.environment.machine, processor="another CPU"),
    )
    notes = " ".join(compare(before, make_record([make_call()], environment=other, complete=False)).notes)
    for words in (
        "a CPU before, another CPU after",
        "CPython 3.13.1 after",
        "was interrupted",
        "only in one record: gone",
    ):
        assert words in notes


def test_calls_that_follow_each_other_count_for_fewer(make_record: Make, make_call: Callable[..., Call]) -> None:
    """The same latencies, slow ones one after the other instead of scattered, show less: their p is higher."""
    before = make_record([make_call(iteration=n, latency_ms=10 + n % 5) for n in range(30)], id="before")
    latencies = [13.0 + n % 2 * 3 for n in range(30)]
    scattered, in_a_row = (
        make_record([make_call(iteration=n, latency_ms=latency) for n, latency in enumerate(some)])
        for some in (latencies, sorted(latencies))
    )
    apart, together = (row_of(compare(before, one)) for one in (scattered, in_a_row))
    assert apart.p is not None
    assert together.p is not None
    assert together.p > 10 * apart.p
    assert apart.effect == together.effect


def test_how_much_values_follow_each_other() -> None:
    """A rising series follows itself, an alternating or constant one does not."""
    assert following([float(n) for n in range(30)]) > 0.8
    assert following([float(n % 2) for n in range(30)]) == 0
    assert following([1.0] * 30) == 0
