"""The saved inputs of the fuzz targets, among them all that failed once, satisfy the properties that are fuzzed."""

from collections.abc import Iterator

import pytest

from .fuzz_targets import TARGETS, seeds
from .target_result import TooSlowError, run_target


@pytest.mark.parametrize("name", TARGETS)
def test_saved_inputs_satisfy_the_properties(name: str) -> None:
    """Among the inputs are some that the parser accepts and some that it rejects."""
    verdicts = set()
    for file, data in seeds(name):
        try:
            verdicts.add(run_target(TARGETS[name], data))
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
