"""The verdict on limits names each that was exceeded, and counts the requests of dead nodes fairly."""

from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.chaos.cluster_evidence import judge_chains, with_ends
from tests.chaos.limit_verdict import (
    Judged,
    LimitEvidence,
    LimitSettings,
    NodeProcess,
    at_once_with_dead,
    fastest,
    judge_limits,
    load_limits,
    most_at_once,
    most_within,
    process_of,
    save_limits,
)
from tests.chaos.stand_in_vendor import COST, VendorRequest

LIMITS = LimitSettings(
    permits=2,
    running=1,
    budget=4 * COST,
    provider_budget=2 * COST,
    calls_per_day=2,
    calls_per_minute=2,
    rate_per_minute=60,
    burst=2,
    late_s=0.0,
)


def asked(provider: str, begin: float, end: float, *, call: str = "x-1", node: str = "a") -> VendorRequest:
    return VendorRequest(provider, node, call, begin, answered=end, done=end)


def cut(provider: str, begin: float, gone: float, done: float, *, call: str = "x-1", node: str = "a") -> VendorRequest:
    return VendorRequest(provider, node, call, begin, gone=gone, done=done)


REQUESTS = [
    *(asked("permits", begin, begin + 1) for begin in (10, 10.5, 11, 11.5)),
    *(asked("free", begin, begin + 1, call="running-1") for begin in (10, 11)),
    *(asked("budget", begin, begin + 1, call="spending-1") for begin in (10, 10)),
    *(asked("free", begin, begin + 1, call="spending-1") for begin in (12, 12)),
]
EVIDENCE = LimitEvidence(
    requests=REQUESTS,
    processes=[NodeProcess("a", 0), NodeProcess("b", 0)],
    effects=[("daily-1", 1.0), ("daily-2", 2.0), ("minutely-1", 1.0), ("minutely-2", 30.0), ("minutely-3", 70.0)],
    looks=[1.0, 1.0, 2.0, 3.0, 5.0],
    booked={"principal:token:spending": 4 * COST, "provider:budget": 2 * COST},
    refused={"spending": 1, "daily": 1, "minutely": 1},
)


def exceeded(evidence: LimitEvidence) -> set[str]:
    return {each.name for each in judge_limits(LIMITS, evidence) if each.exceeded}


def test_a_run_that_reaches_each_limit_exceeds_none() -> None:
    """And each limit was reached, so that the run shows something."""
    judged = judge_limits(LIMITS, EVIDENCE)
    assert [each.name for each in judged if each.exceeded] == []
    assert [each.name for each in judged if not each.reached] == []


def test_a_run_that_calls_nothing_reaches_no_limit() -> None:
    """Its verdict would show nothing."""
    nothing = LimitEvidence([], [], [], [], {}, {})
    assert not any(each.reached or each.exceeded for each in judge_limits(LIMITS, nothing))


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"requests": [*REQUESTS, asked("permits", 10.6, 10.7)]}, "requests to the vendor at once"),
        ({"requests": [*REQUESTS, asked("free", 10.6, 10.7, call="running-2")]}, "running calls of a token"),
        ({"requests": [*REQUESTS, asked("free", 30, 31, call="spending-2")]}, "budget of a token, charged"),
        ({"requests": [*REQUESTS, asked("budget", 30, 31)]}, "budget of a provider, charged"),
        ({"booked": {"principal:token:spending": 5 * COST}}, "budget of a token, booked"),
        ({"booked": {"principal:token:spending": 3 * COST}}, "budget of a token, charged of booked"),
        ({"effects": [*EVIDENCE.effects, ("daily-3", 999.0)]}, "calls of a day"),
        ({"effects": [*EVIDENCE.effects, ("minutely-4", 59.0)]}, "calls of a minute"),
        ({"looks": [*EVIDENCE.looks, 2.1]}, "calls of a source beyond its rate"),
    ],
)
def test_one_more_than_a_limit_exceeds_it(changed: dict[str, Any], name: str) -> None:
    """Each check can fail."""
    assert name in exceeded(replace(EVIDENCE, **changed))


THIRD = "requests to the vendor at once"


@pytest.mark.parametrize(
    ("third", "process", "counts"),
    [
        # Its node is killed: its connection is closed, and its permit is free once it is declared dead.
        (cut("permits", 5, 9, 20, node="b"), NodeProcess("b", 0, dead=9.5, lost=9), False),
        # It is paused: its connection stays open, and it counts until the node is declared dead.
        (asked("permits", 5, 20, node="b"), NodeProcess("b", 0, dead=9.5, lost=9.5), False),
        (asked("permits", 5, 20, node="b"), NodeProcess("b", 0, dead=10.7, lost=10.7), True),
        # It continues after it was declared dead, and sends what it was admitted to send before.
        (asked("permits", 10.6, 10.7, node="b"), NodeProcess("b", 0, dead=9.5, lost=9.5), False),
        # Its caller gives up at 10.5; the vendor sees it a little later.
        (cut("permits", 5, 10.6, 20, node="b"), NodeProcess("b", 0), False),
        (cut("permits", 5, 11.6, 20, node="b"), NodeProcess("b", 0), True),
    ],
)
def test_a_request_counts_as_long_as_other_nodes_can_know_of_it(
    third: VendorRequest, process: NodeProcess, *, counts: bool
) -> None:
    """In addition to two requests of a node that lives, from 10.5 to 12."""
    requests = [*(asked("permits", 10.5, 12) for _ in range(2)), third]
    evidence = replace(EVIDENCE, requests=requests, processes=[NodeProcess("a", 0), process])
    assert (THIRD in exceeded(evidence)) == counts


def test_a_vendor_that_goes_on_for_a_dead_node_is_a_figure() -> None:
    """It works on three requests, of which one has lost its caller."""
    assert at_once_with_dead([asked("p", 1, 3), asked("p", 1, 3), cut("p", 0, 0.5, 2)]) == 3


def test_a_vendor_charges_for_what_a_dead_node_asked() -> None:
    """But not for what a living one gave up."""
    lost, given_up = cut("budget", 30, 31, 40, node="b"), cut("budget", 30, 31, 40)
    processes = [NodeProcess("a", 0), NodeProcess("b", 0, dead=35, lost=30.9)]
    evidence = replace(EVIDENCE, processes=processes)
    assert exceeded(replace(evidence, requests=[*REQUESTS, given_up])) == set()
    assert "budget of a provider, charged" in exceeded(replace(evidence, requests=[*REQUESTS, lost]))


def test_a_process_is_known_by_its_node_and_its_start() -> None:
    """One that was killed is lost from then on, and declared dead later; one that stopped is not lost."""
    started = [
        NodeProcess("a", 1, 11, 11),
        NodeProcess("a", 12, 20, 20),
        NodeProcess("b", 2, 9, 9),
        NodeProcess("a", 21),
    ]
    processes = with_ends(started, {"a": ([10.0], [20.1]), "b": ([], [])})
    assert processes == [NodeProcess("a", 1, 11, 10), NodeProcess("a", 12, 20, inf), started[2], started[3]]
    assert process_of("a", 15, processes).started == 12
    assert process_of("b", 1, processes).started == 0


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20))))
def test_most_at_once_is_the_most_at_any_instant(intervals: list[tuple[int, int]]) -> None:
    """As counted at every beginning."""
    running = [sum(begin <= at < end for begin, end in intervals) for at, _ in intervals]
    assert most_at_once(intervals) == max(running, default=0)


@given(st.lists(st.integers(0, 50)), st.integers(1, 10))
def test_most_within_is_the_most_of_any_interval(times: list[int], seconds: int) -> None:
    """As counted from every time."""
    assert most_within(times, seconds) == max((sum(t <= u <= t + seconds for u in times) for t in times), default=0)


@given(st.lists(st.integers(0, 50), min_size=1), st.integers(1, 3))
def test_the_fastest_interval_has_the_largest_excess(times: list[int], rate: int) -> None:
    """As counted for every interval that begins and ends with a time."""
    excess = [sum(t <= u <= v for u in times) - rate * (v - t) for t in times for v in times if v >= t]
    assert fastest(times, per_second=rate, late_s=0.0) == max(excess)


def test_a_judged_limit_allows_for_rounding() -> None:
    """Sums of amounts are not exact."""
    assert not Judged("x", 0.3, 0.1 + 0.2, reached=True).exceeded


def test_what_was_counted_can_be_judged_again(tmp_path: Path) -> None:
    """Times that never came are infinite again."""
    evidence = replace(EVIDENCE, requests=[*REQUESTS, cut("permits", 1, 2, 3)], effects=[("daily-1", 1.0)])
    save_limits(tmp_path / "limits.json", LIMITS, evidence)
    settings, loaded = load_limits(tmp_path / "limits.json")
    assert (settings, list(loaded.requests), list(loaded.processes)) == (LIMITS, evidence.requests, evidence.processes)
    assert judge_limits(settings, loaded) == judge_limits(LIMITS, evidence)


CHAIN: dict[str, Any] = {"number": 0, "checked": 3, "problems": []}


def test_chains_are_intact_if_each_row_was_verified() -> None:
    """The rows of two nodes."""
    found = {"intact": True, "chains": [CHAIN, CHAIN | {"number": 1}]}
    assert judge_chains(found, 0, "", 6).problems == []


@pytest.mark.parametrize(
    ("found", "code", "rows", "said"),
    [
        ({"intact": True, "chains": [CHAIN]}, 0, 4, "4 rows, but 3 were verified"),
        ({"intact": False, "chains": [CHAIN]}, 1, 3, "ended with 1"),
        ({"intact": False, "chains": []}, 2, 0, "ended with 2: no key"),
        (
            {"intact": False, "chains": [CHAIN | {"problems": [{"fault": "changed", "message": "row 2"}]}]},
            1,
            3,
            "chain 0: changed: row 2",
        ),
    ],
)
def test_a_broken_chain_is_named(found: dict[str, Any], code: int, rows: int, said: str) -> None:
    """So is a row that no chain has, and a command that fails."""
    assert any(said in problem for problem in judge_chains(found, code, "no key", rows).problems)
