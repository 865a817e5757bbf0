"""The knee: where a curve of throughput bends, and nowhere where it does not."""

import pytest

from baseline.knee import knee


def test_the_knee_is_where_it_bends() -> None:
    """A throughput that rises up to 8 at once and then stays has its knee there."""
    assert knee([(1, 100), (2, 200), (4, 400), (8, 800), (16, 810), (32, 815)]) == 8


def test_a_fall_after_the_top_changes_nothing() -> None:
    """Beyond its highest point a curve may fall; the knee stays."""
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
def test_without_a_bend_there_is_none(points: list[tuple[float, float]]) -> None:
    """Too few points, a straight line, or a throughput that never rises have no knee."""
    assert knee(points) is None
