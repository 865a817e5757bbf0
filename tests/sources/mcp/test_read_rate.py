"""How fast a server is read that says more than it is asked."""

from toold.sources.mcp.read_rate import ReadRate


class Clock:
    """Time as the test has it."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_flood_waits() -> None:
    """Two seconds' worth at once; then as many a second as there may be."""
    pace = ReadRate(10.0, Clock())
    assert [pace.take() for _ in range(20)] == [0.0] * 20
    assert pace.take() == 0.1
    assert pace.take(9) == 1.0


def test_a_pause_pays_for_what_comes_after() -> None:
    """No more than two seconds of it."""
    clock = Clock()
    pace = ReadRate(10.0, clock)
    pace.take(20)
    clock.now = 0.5
    assert pace.take(5) == 0.0
    clock.now = 1000.0
    assert pace.take(20) == 0.0
    assert pace.take() == 0.1


def test_an_answer_is_paid_for_by_its_request() -> None:
    """However many calls there are."""
    pace = ReadRate(10.0, Clock())
    pace.take(20)
    for _ in range(1000):
        pace.earn()
        assert pace.take() == 0.0
