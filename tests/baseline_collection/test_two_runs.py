"""Two runs: verdicts on synthetic distributions."""

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
    """A function that makes a record with drawn latencies, skewed as real ones, with a median of 10 ms."""

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


def paired(before: Record, after: Record) -> tuple[Record, Record]:
    return before, msgspec.structs.replace(after, paired_run=before.id)


def row_of(comparison: Comparison) -> Row:
    (row,) = comparison.rows
    return row


@pytest.mark.slow
def test_synthetic_pairs_without_a_difference(drawn: Callable[..., Record]) -> None:
    """Few of 25 synthetic pairs from the same distribution have a tool that is reported slower or faster."""
    pairs = [paired(drawn(2 * n), drawn(2 * n + 1)) for n in range(25)]
    alarms = sum(any(row.verdict in {"slower", "faster"} for row in compare(*pair).rows) for pair in pairs)
    assert alarms <= 2


def test_synthetic_pairs_with_a_difference(drawn: Callable[..., Record]) -> None:
    """If each synthetic call takes 40 % longer, every tool is slower; with the sides swapped, every tool is faster."""
    before, after = drawn(1), drawn(2, slower=1.4)
    assert {row.verdict for row in compare(*paired(before, after)).rows} == {"slower"}
    assert {row.verdict for row in compare(*paired(after, before)).rows} == {"faster"}
    assert compare(*paired(before, after)).worse
    assert not compare(*paired(after, before)).worse


def test_many_calls_without_a_difference_are_the_same(drawn: Callable[..., Record]) -> None:
    """With enough calls the interval of an unchanged tool is within the threshold, and its verdict is 'same'."""
    assert {row.verdict for row in compare(*paired(drawn(1, calls=200), drawn(2, calls=200))).rows} == {"same"}


def test_few_calls_are_not_enough(drawn: Callable[..., Record]) -> None:
    """Below the minimum number of successes nothing is tested, however large the difference."""
    row = row_of(compare(*paired(drawn(1, tools=1, calls=MIN_CALLS - 1), drawn(2, tools=1, slower=9.0))))
    assert (row.verdict, row.p, row.ratio) == ("not enough data", None, None)
    assert f"{MIN_CALLS - 1} successes" in row.because


def test_minimum_number_of_calls_can_be_significant() -> None:
    """With the minimum number of calls, two runs without a common latency are significant after the correction for 30
    tools.
    """
    ps = holm({(f"tool-{n}", ONE): 1.0 for n in range(29)} | {("slow", ONE): 2 / 12870})  # 2 of the 12,870 orders
    assert ps["slow", ONE] <= 0.05


def test_effect_is_one_without_overlap(drawn: Callable[..., Record]) -> None:
    """If every later call is slower than every earlier one, the effect is 1."""
    row = row_of(compare(*paired(drawn(1, tools=1), drawn(2, tools=1, slower=9.0))))
    assert (row.effect, row.effect_size) == (1.0, "large")


def test_sequential_runs_on_a_busy_machine_have_no_verdict(drawn: Callable[..., Record]) -> None:
    """Sequential runs have no verdict if the machine was busy in either of them."""
    before, after = drawn(1, contention=0.1), drawn(2, slower=2.0, contention=0.4)
    apart = compare(before, after)
    assert {row.verdict for row in apart.rows} == {"not enough data"}
    assert "the machine was busy (40%" in apart.rows[0].because
    assert "--candidate" in apart.notes[0]
    assert {row.verdict for row in compare(*paired(before, after)).rows} == {"slower"}


def test_alternating_runs_on_an_overloaded_machine_have_no_verdict(drawn: Callable[..., Record]) -> None:
    """Alternating runs tolerate more contention, but have no verdict on an overloaded machine."""
    before, after = drawn(1, contention=0.6), drawn(2, slower=2.0, contention=0.6)
    assert {row.verdict for row in compare(*paired(before, after)).rows} == {"not enough data"}


def test_sequential_runs_on_a_calm_machine_are_compared(drawn: Callable[..., Record]) -> None:
    """Sequential runs are compared if the machine was calm or its contention is unknown."""
    for contention in (0.1, None):
        before, after = (drawn(n, slower=n, contention=contention) for n in (1, 2))
        assert {row.verdict for row in compare(before, after).rows} == {"slower"}


def test_more_failures_are_worse(make_record: Make, make_call: Callable[..., Call]) -> None:
    """A tool that fails much more often is reported and makes the comparison worse, regardless of its speed."""
    good = [make_call(iteration=n, latency_ms=10 + n % 7 / 100) for n in range(20)]
    bad = [*good[:8], *(make_call(iteration=n, status="error", error_code="TIMEOUT") for n in range(12))]
    comparison = compare(make_record(good), make_record(bad))
    assert row_of(comparison).fails_more
    assert comparison.worse
    assert not compare(make_record(bad), make_record(good)).worse


def test_one_more_failure_is_not_reported(make_record: Make, make_call: Callable[..., Call]) -> None:
    """One more failure in twenty calls does not count as a change of the success rate."""
    good = [make_call(iteration=n) for n in range(20)]
    bad = [*good[:19], make_call(iteration=20, status="error", error_code="TIMEOUT")]
    assert not row_of(compare(make_record(good), make_record(bad))).fails_more


def test_other_arguments_are_not_compared(drawn: Callable[..., Record]) -> None:
    """A tool that was called with other arguments has no verdict, and the row says why."""
    before, after = drawn(1, tools=1), drawn(2, tools=1, slower=3.0)
    asked = msgspec.structs.replace(after.configuration, arguments={"tool-0": {"text": "another"}})
    row = row_of(compare(before, msgspec.structs.replace(after, configuration=asked)))
    assert (row.verdict, row.because) == ("not enough data", "it was called with other arguments")


def test_simulated_and_real_are_not_compared(drawn: Callable[..., Record]) -> None:
    """Simulated and real runs are not compared."""
    with pytest.raises(IncomparableError, match="one of the records is simulated"):
        compare(drawn(1, simulated=True), drawn(2))


def test_runs_without_a_common_tool_are_an_error(make_record: Make, make_call: Callable[..., Call]) -> None:
    """Records without a common tool under the same load are an error."""
    with pytest.raises(IncomparableError, match="no tool under the same load"):
        compare(make_record([make_call()]), make_record([make_call(load=Load(concurrency=8))]))


def test_notes_name_other_changes(make_record: Make, make_call: Callable[..., Call]) -> None:
    """The notes name another machine, another Python, an interrupted run, and tools that are in one record only."""
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


def test_correlated_calls_count_for_less(make_record: Make, make_call: Callable[..., Call]) -> None:
    """If slow calls are consecutive instead of scattered, the same latencies have a higher p."""
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


def test_correlation_of_consecutive_values() -> None:
    """A rising series is correlated; an alternating or constant one is not."""
    assert following([float(n) for n in range(30)]) > 0.8
    assert following([float(n % 2) for n in range(30)]) == 0
    assert following([1.0] * 30) == 0
