"""The linearizability check: it explains what a correct service may do, and finds each way to break the promises."""

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.chaos.history import Effect, EffectWatch, history
from tests.chaos.linearizability import Operation, State, apply, check, load, main, save
from tests.chaos.tally import DETACHED, Answer, Call, Row

UNKNOWN = ("OUTCOME_UNKNOWN", "maybe")


def asked(at: float, content: str = "c") -> Operation:
    return Operation("c", "asked", at, at, content=content)


def executed(begin: float, end: float) -> Operation:
    return Operation("c", "executed", begin, end)


def answered(begin: float, end: float, outcome: str = "ok", executed: str = "yes", content: str = "c") -> Operation:
    return Operation("c", "answered", begin, end, outcome, executed, content if outcome == "ok" else None)


def looked_up(begin: float, end: float, outcome: str = "open") -> Operation:
    return Operation("c", "looked up", begin, end, outcome)


def recorded(outcome: str) -> Operation:
    return Operation("c", "recorded", 100.0, 100.0, outcome)


EXPLAINED = {
    "executed once, answered, replayed, recorded": [
        asked(0), executed(1, 2), answered(0, 3), answered(4, 5), recorded("ok"),
    ],
    "the effect is seen after the answer": [asked(0), answered(0, 2), executed(1, 3)],
    "an unknown outcome without an effect": [asked(0), answered(0, 2, *UNKNOWN), recorded("OUTCOME_UNKNOWN")],
    "an unknown outcome, then its late effect": [asked(0), answered(0, 2, *UNKNOWN), executed(3, 4)],
    "refused, then sent again and executed": [
        asked(0), answered(0, 1, "SERVICE_UNAVAILABLE", "no"), executed(2, 3), answered(2, 4),
    ],
    "cancelled before it ran": [asked(0), answered(0, 1, "CANCELLED", "no"), answered(2, 3, "CANCELLED", "no")],
    "two readers at once, one of whom sees the end": [
        asked(0), executed(1, 2), looked_up(3, 8, "ok"), looked_up(4, 7), answered(9, 10),
    ],
    "expired after it was answered": [
        asked(0), executed(1, 2), answered(0, 3), answered(4, 5, "RESULT_EXPIRED", "yes"),
    ],
    "the same answer, delivered again and again": [
        asked(0), executed(1, 2), *(answered(0, 3 + number) for number in range(200)),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", EXPLAINED)
def test_a_correct_history_is_explained(name: str) -> None:
    """In each of these some order of the observations is one that a single, correct object would have."""
    assert check(EXPLAINED[name]) == []


IMPOSSIBLE = {
    "two executions": ([asked(0), executed(1, 2), executed(3, 4)], executed(3, 4)),
    "two different answers": (
        [asked(0), executed(1, 2), answered(0, 3), answered(4, 5, *UNKNOWN)],
        answered(4, 5, *UNKNOWN),
    ),
    "no answer": ([asked(0), executed(1, 2), Operation("c", "waited", 0, 9)], Operation("c", "waited", 0, 9)),
    "the answer of another call": (
        [asked(0), executed(1, 2), answered(0, 3, content="d")],
        answered(0, 3, content="d"),
    ),
    "a stale read after a later one": (
        [asked(0), executed(1, 2), looked_up(3, 4, "ok"), looked_up(5, 6)],
        looked_up(5, 6),
    ),
    "a stale read after the answer": ([asked(0), executed(1, 2), answered(0, 3), looked_up(4, 5)], looked_up(4, 5)),
    "an execution after a final refusal": (
        [asked(0), answered(0, 1, "CANCELLED", "no"), executed(2, 3)],
        executed(2, 3),
    ),
    "a refusal of what was executed": (
        [asked(0), executed(1, 2), answered(3, 4, "SERVICE_UNAVAILABLE", "no")],
        answered(3, 4, "SERVICE_UNAVAILABLE", "no"),
    ),
    "success without an execution": ([asked(0), answered(0, 2)], answered(0, 2)),
    "success before the execution": ([asked(0), answered(0, 2), executed(3, 4)], answered(0, 2)),
    "an execution that nobody asked for": ([executed(1, 2), asked(3)], executed(1, 2)),
    "an id with two contents": ([asked(0), asked(1, "d")], asked(1, "d")),
    "an audit row with another outcome": (
        [asked(0), executed(1, 2), answered(0, 3), recorded("OUTCOME_UNKNOWN")],
        recorded("OUTCOME_UNKNOWN"),
    ),
    "lost state: unknown after it was known": (
        [asked(0), looked_up(1, 2), looked_up(3, 4, "unknown"), executed(5, 6), answered(5, 7)],
        answered(5, 7),
    ),
    "an answer that is back after it had expired": (
        [asked(0), executed(1, 2), answered(0, 3), answered(4, 5, "RESULT_EXPIRED", "yes"), answered(6, 7)],
        answered(6, 7),
    ),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_each_violation_is_found(name: str) -> None:
    """The check names the call, and the first observation that no order explains, among others that are correct."""
    operations, culprit = IMPOSSIBLE[name]
    others = [replace(each, call="other") for each in EXPLAINED["an unknown outcome, then its late effect"]]
    shuffled = [*others, *operations]
    random.Random(name).shuffle(shuffled)
    (violation,) = check(shuffled)
    assert (violation.call, violation.operation) == ("c", culprit)
    assert str(culprit) in str(violation)


TIMES = st.tuples(st.integers(0, 6), st.integers(0, 6)).map(sorted)
MAKERS: list[Callable[[float, float], Operation]] = [
    executed,
    answered,
    lambda begin, end: answered(begin, end, *UNKNOWN),
    looked_up,
    lambda begin, end: looked_up(begin, end, "ok"),
    lambda begin, end: answered(begin, end, "SERVICE_UNAVAILABLE", "no"),
]
OBSERVATIONS = st.builds(lambda make, times: make(float(times[0]), float(times[1])), st.sampled_from(MAKERS), TIMES)


def explained_by_trying_all(operations: list[Operation]) -> bool:
    """The definition itself: some permutation respects the times and is possible."""
    for order in permutations(operations):
        if any(later.end < earlier.begin for index, earlier in enumerate(order) for later in order[index:]):
            continue
        state: State | None = State()
        for operation in order:
            state = state and apply(state, operation)
        if state is not None:
            return True
    return False


@given(st.lists(OBSERVATIONS, max_size=5))
def test_the_search_agrees_with_the_definition(operations: list[Operation]) -> None:
    """For any small history, it finds an explanation if and only if one of all permutations is one."""
    whole = [asked(0), *operations]
    assert (check(whole) == []) == explained_by_trying_all(whole)


def test_what_a_run_observed_becomes_a_history() -> None:
    """Asked, executed, answered, looked up and recorded; local calls are not judged, and a refused call has no row."""
    calls = [
        Call("c", "sim_effect", [Answer("ok", "yes", own=True, asked_at=1, at=4)], asked_at=1),
        Call("f", "chat", [Answer("ok", "yes", own=False, asked_at=1, at=4)], asked_at=1),
        Call("l", "echo", [Answer("ok", "yes", own=True, asked_at=1, at=4)], asked_at=1),
        Call("d", DETACHED, looks=[Answer("open", "maybe", own=True, asked_at=2, at=3)], given_up=True, asked_at=1),
        Call("w", "sim_effect", asked_at=1),
        Call("n", "sim_effect", asked_at=1, sent=False),
    ]
    rows = [Row("1", "c", "ok", "yes"), Row("2", "w", "SERVICE_UNAVAILABLE", "no"), Row("3", "l", "ok", "yes")]
    found = list(history(calls, [Effect("c", 2, 3)], rows))
    assert {(each.call, each.kind) for each in found} == {
        *(("c", kind) for kind in ("asked", "answered", "executed", "recorded")),
        *(("f", kind) for kind in ("asked", "answered")),
        *(("d", kind) for kind in ("asked", "looked up")),
        *(("w", kind) for kind in ("asked", "waited")),
    }
    assert {violation.call for violation in check(found)} == {"f", "w"}


def test_a_recorded_history_is_judged_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file has all that the check needs; the exit code says whether there is an explanation."""
    correct, broken = EXPLAINED["refused, then sent again and executed"], IMPOSSIBLE["no answer"][0]
    save(tmp_path / "correct", correct)
    save(tmp_path / "broken", broken)
    assert list(load(tmp_path / "correct")) == correct
    assert (main(str(tmp_path / "correct")), main(str(tmp_path / "broken"))) == (0, 1)
    assert "c: no order explains" in capsys.readouterr().out


def test_a_line_that_is_half_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    """A look that finds only the beginning of a line does not take it for an execution."""
    log = tmp_path / "sim_effect.log"
    watch = EffectWatch([log])
    log.write_text("a-1\nlibr", encoding="utf-8")
    watch.look()
    assert [effect.line for effect in watch.effects] == ["a-1"]
    log.write_text("a-1\nlibrary-5\n", encoding="utf-8")
    watch.look()
    assert [effect.line for effect in watch.effects] == ["a-1", "library-5"]
