"""The order of calls: each call once, spread over the run, and only the remaining calls of an interrupted run."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from baseline.plan import MAX_ROUNDS, planned, remaining_turns, rounds_for, turns
from baseline.record import Call, Configuration, Load, Record

LOADS = (Load(concurrency=1), Load(concurrency=4))


@pytest.fixture(scope="session")
def configuration(make_record: Callable[..., Record]) -> Configuration:
    asked = make_record().configuration
    return msgspec.structs.replace(asked, tools=("echo", "chat"), loads=LOADS, iterations=10, rounds=3)


@given(iterations=st.integers(1, 60), rounds=st.integers(1, 30))
def test_each_iteration_has_one_turn(configuration: Configuration, iterations: int, rounds: int) -> None:
    """For any number of rounds, each iteration of each tool and load is in exactly one turn."""
    asked = msgspec.structs.replace(configuration, iterations=iterations, rounds=min(rounds, iterations))
    seen = [(turn.tool, turn.load, number) for turn in turns(asked) for number in turn.iterations]
    wanted = {(tool, load, n) for tool in asked.tools for load in LOADS for n in range(1, iterations + 1)}
    assert len(seen) == len(wanted) == planned(asked)
    assert set(seen) == wanted


def test_each_round_has_every_tool_and_load(configuration: Configuration) -> None:
    """Each round has every tool under every load, so changes of the machine's speed affect all tools."""
    order = [(turn.load.concurrency, turn.tool) for turn in turns(configuration)]
    assert order == [(1, "echo"), (1, "chat"), (4, "echo"), (4, "chat")] * 3


def test_remaining_turns_exclude_recorded_calls(configuration: Configuration, make_call: Callable[..., Call]) -> None:
    """The remaining turns of an interrupted run contain every iteration without a call."""
    made = [make_call(iteration=number, load=LOADS[0]) for number in (1, 2, 3, 5)]
    left = remaining_turns(configuration, made)
    echo = [n for turn, numbers in left.items() if turn.tool == "echo" and turn.load == LOADS[0] for n in numbers]
    assert echo == [4, 6, 7, 8, 9, 10]
    assert sum(len(numbers) for numbers in left.values()) == planned(configuration) - 4


def test_number_of_rounds_depends_on_concurrency() -> None:
    """With one call at a time tools may change after each call; with a high concurrency a turn needs enough calls to
    reach it.
    """
    assert rounds_for(10, [Load(concurrency=1)]) == 10
    assert rounds_for(1000, [Load(concurrency=1)]) == MAX_ROUNDS
    assert rounds_for(320, [Load(concurrency=1), Load(concurrency=16)]) == 5
    assert rounds_for(3, [Load(concurrency=16)]) == 1


def test_rate_has_one_turn() -> None:
    """With a rate there is one turn, so that no call waits for the answers of an earlier turn."""
    assert rounds_for(2000, [Load(rate_per_s=200)]) == 1
