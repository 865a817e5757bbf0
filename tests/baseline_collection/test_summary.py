"""Summaries: latencies of successes, counts of failures, and throughput without pauses."""

from collections.abc import Callable
from pathlib import Path

import pytest

from baseline.draft import Draft
from baseline.record import Call, Load, Money, Record, Tokens
from baseline.summary import record_of, summaries, throughput_per_s

MakeCall = Callable[..., Call]


def test_latencies_are_those_of_successes(make_call: MakeCall) -> None:
    """A failure counts in the success rate and by its code, but not in latencies."""
    good = [make_call(iteration=n, latency_ms=float(n)) for n in range(1, 5)]
    bad = make_call(iteration=5, status="error", error_code="TIMEOUT", latency_ms=9000.0)
    (summary,) = summaries([*good, bad])
    assert (summary.count, summary.successes, summary.errors) == (5, 4, {"TIMEOUT": 1})
    assert summary.success_rate.value == 0.8
    assert summary.latency_ms is not None
    assert (summary.latency_ms.min, summary.latency_ms.max, summary.latency_ms.mean) == (1.0, 4.0, 2.5)
    assert summary.latency_ms.stdev == pytest.approx(1.29099, abs=1e-5)


def test_without_a_success_there_is_no_latency(make_call: MakeCall) -> None:
    """If every call failed, there are no latencies and no layers."""
    (summary,) = summaries([make_call(status="error", error_code="TIMEOUT")])
    assert (summary.latency_ms, summary.layers, summary.throughput_per_s) == (None, None, 0.0)


def test_one_summary_per_tool_and_load(make_call: MakeCall) -> None:
    """Calls of one tool under two loads are two groups."""
    some = [make_call(), make_call(load=Load(concurrency=2)), make_call(tool_name="chat")]
    assert [(one.tool_name, one.load.concurrency) for one in summaries(some)] == [("echo", 1), ("echo", 2), ("chat", 1)]


def test_throughput_excludes_pauses(make_call: MakeCall) -> None:
    """Two turns of half a second with two successes each are four per second, regardless of the pause between them."""
    calls = [
        make_call(round=turn, segment=segment, offset_s=start + step, latency_ms=250.0)
        for turn, segment, start in ((1, 1, 0.0), (2, 1, 100.0), (2, 2, 5000.0))
        for step in (0.0, 0.25)
    ]
    assert throughput_per_s(calls) == pytest.approx(4)
    assert throughput_per_s([make_call(latency_ms=0.0)]) is None


def test_tokens_and_cost_are_summed(make_call: MakeCall) -> None:
    """Tokens are summed, and cost per currency."""
    reported = {"tokens": Tokens(input=2, output=3)}
    costs = [Money(amount=0.1, currency="USD"), Money(amount=0.2, currency="USD"), Money(amount=1.0, currency="CNY")]
    (summary,) = summaries([make_call(cost=cost, **reported) for cost in costs])
    assert summary.tokens == Tokens(input=6, output=9)
    assert summary.cost == (Money(amount=1.0, currency="CNY"), Money(amount=0.3, currency="USD"))


def test_record_shows_whether_it_is_complete_and_simulated(
    tmp_path: Path, make_call: MakeCall, make_record: Callable[..., Record]
) -> None:
    """A draft's record is complete once all planned calls are made, and simulated if any answer was."""
    with Draft.begin(tmp_path / "run.ndjson", make_record()) as draft:
        for iteration in (2, 1):
            draft.add(make_call(iteration=iteration, offset_s=float(iteration)))
        part = record_of(draft, 0.1)
        draft.add(make_call(iteration=3, offset_s=3.0, simulated=True))
        whole = record_of(draft, None)
    assert (part.complete, part.simulated, part.contention) == (False, False, 0.1)
    assert [call.iteration for call in part.calls] == [1, 2]
    assert (whole.complete, whole.simulated, whole.contention) == (True, True, None)
