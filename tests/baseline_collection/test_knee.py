"""The knee: the point at which a throughput curve bends, if there is one."""

import pytest

from baseline.knee import knee


def test_knee_is_at_the_bend() -> None:
    """If the throughput rises up to a concurrency of 8 and is flat beyond it, the knee is at 8."""
    assert knee([(1, 100), (2, 200), (4, 400), (8, 800), (16, 810), (32, 815)]) == 8


def test_fall_after_the_maximum_is_ignored() -> None:
    """A fall beyond the maximum does not move the knee."""
    assert knee([(1, 100), (4, 400), (8, 780), (16, 800), (32, 500)]) == 8


@pytest.mark.parametrize(
    "points",
    [
        [(1, 100), (2, 200)],
        [(1, 100), (2, 200), (3, 300), (4, 400)],
        [(1, 100), (2, 90), (4, 80)],
        [(2, 1), (2, 2), (2, 3)],
        [],
    ],
)
def test_curve_without_a_bend_has_no_knee(points: list[tuple[float, float]]) -> None:
    """Too few points, a straight line, or a throughput that never rises have no knee."""
    assert knee(points) is None
