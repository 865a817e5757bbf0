"""Which connections may receive a large frame at the same time."""

from toold.daemon.transports.large_frames import LargeFrames, TurnLimits


class Waiter:
    """A connection that records its turn."""

    def __init__(self) -> None:
        self.turn = False

    def go_on(self) -> None:
        self.turn = True


def requested(frames: LargeFrames, principal: str, now: float = 0.0) -> Waiter:
    waiter = Waiter()
    waiter.turn = frames.request(waiter, principal, now)
    return waiter


def test_turns_are_limited_per_principal_and_in_total() -> None:
    """The next one waits, and one of another principal does not wait for it."""
    frames = LargeFrames(lambda: TurnLimits(2, 3))
    turns = [requested(frames, principal).turn for principal in ("a", "a", "a", "b", "b")]
    assert turns == [True, True, False, True, False]


def test_a_released_turn_goes_to_the_first_that_may_have_it() -> None:
    """Turns are given in the order of arrival; a connection that closes while it waits changes nothing."""
    frames = LargeFrames(lambda: TurnLimits(1, 2))
    first, missing, second, third = (requested(frames, principal) for principal in ("a", "a", "a", "b"))
    assert third.turn
    frames.release(missing, 1.0)
    frames.release(first, 1.0)
    assert (missing.turn, second.turn) == (False, True)
    frames.release(second, 2.0)
    frames.release(third, 2.0)
    assert repr(frames) == "<LargeFrames turns=0 waiting=0>"


def test_a_late_receiver_gives_its_turn_to_one_that_waits() -> None:
    """Only if another one waits. The principal with the most turns loses its oldest."""
    frames = LargeFrames(lambda: TurnLimits(2, 3))
    late, _, other = requested(frames, "a"), requested(frames, "a", 5.0), requested(frames, "b")
    assert frames.overdue(100.0, 20.0) is None
    requested(frames, "b", 6.0)
    assert frames.overdue(20.0, 20.0) is None
    assert frames.overdue(20.1, 20.0) is late
    frames.release(late, 21.0)
    assert frames.overdue(100.0, 20.0) is None
    requested(frames, "b", 21.0)
    assert frames.overdue(100.0, 20.0) is other


def test_a_limit_below_one_frame_still_allows_one() -> None:
    """Otherwise no large frame could ever be received."""
    frames = LargeFrames(lambda: TurnLimits(0, 0))
    first, second = requested(frames, "a"), requested(frames, "b")
    assert (first.turn, second.turn) == (True, False)
    frames.release(first, 1.0)
    assert second.turn
