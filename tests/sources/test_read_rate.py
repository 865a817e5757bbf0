"""Limits on reading what a server or an agent sends."""

from toold.sources.read_rate import ReadRate, message_cost


class Clock:
    """A clock that the test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_flood_is_slowed_down() -> None:
    """A burst of two seconds' worth is read at once, then the rate applies."""
    rate = ReadRate(10.0, Clock())
    assert [rate.consume() for _ in range(20)] == [0.0] * 20
    assert rate.consume() == 0.1
    assert rate.consume(9) == 1.0


def test_a_pause_refills_the_bucket() -> None:
    """Up to two seconds' worth."""
    clock = Clock()
    rate = ReadRate(10.0, clock)
    rate.consume(20)
    clock.now = 0.5
    assert rate.consume(5) == 0.0
    clock.now = 1000.0
    assert rate.consume(20) == 0.0
    assert rate.consume() == 0.1


def test_requests_pay_for_their_answers() -> None:
    """Any number of calls is read without a wait."""
    rate = ReadRate(10.0, Clock())
    rate.consume(20)
    for _ in range(1000):
        rate.add_request()
        assert rate.consume() == 0.0


def test_long_messages_cost_more() -> None:
    """By their bytes, and by their values."""
    assert message_cost(b"short") == 1
    assert message_cost(b"x" * 1024**2) == 33
    assert message_cost(b"1," * 5000) == 11
    assert message_cost(b"ab", 7) == 7
