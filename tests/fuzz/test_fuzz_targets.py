"""The saved inputs of the fuzz targets, among them all that failed once, satisfy the properties that are fuzzed."""

import random
from collections.abc import Iterator
from typing import Final

import msgspec
import pytest

from .fuzz_targets import TARGETS, seeds
from .json_mutation import JsonMutation
from .target_result import TooSlowError, run_target

BUSY: Final = 20.0
"""A machine that shares its cores takes longer, and what no parser may do takes minutes."""


@pytest.mark.parametrize("name", TARGETS)
def test_saved_inputs_satisfy_the_properties(name: str) -> None:
    """Among the inputs are some that the parser accepts and some that it rejects."""
    verdicts = set()
    for file, data in seeds(name):
        try:
            verdicts.add(run_target(TARGETS[name], data, slowdown=BUSY))
        except Exception as error:
            raise AssertionError(f"{file} fails") from error
    assert verdicts == {True, False}


@pytest.mark.parametrize(("seconds", "fails"), [(0.2, False), (0.4, True)])
def test_the_time_of_an_input_is_bounded_by_its_size(seconds: float, fails: bool) -> None:
    """Each attempt has to exceed the bound, so that a garbage collection does not."""
    ticks: Iterator[float] = iter(seconds * n for n in range(10))
    try:
        run_target(lambda _: True, b"x" * 1000, cpu=lambda: next(ticks))
    except TooSlowError:
        assert fails
    else:
        assert not fails


def test_changed_json_is_json() -> None:
    """One line of an input changes; the same draw makes the same change."""
    mutation = JsonMutation([b'{"a":[1,{"b":"x"}]}'])
    data = b'name: value\n{"c":[2,{"d":null}]}'
    changed = {mutation.mutate(data, random.Random(seed)) for seed in range(50)}
    assert changed == {mutation.mutate(data, random.Random(seed)) for seed in range(50)}
    assert len(changed) > 10
    for item in changed - {None}:
        assert item is not None
        head, _, line = item.partition(b"\n")
        assert head == b"name: value"
        msgspec.json.decode(line)
