"""What the results of a call's parts may take together."""

from toold.tools.orchestration.result_budget import ResultBudget


def test_what_has_no_room_takes_none() -> None:
    """A result that is too large is refused as one that ran, and a smaller one after it still fits."""
    room = ResultBudget(100)
    assert room.take("x" * 60) is None
    refused = room.take("x" * 60)
    assert refused is not None
    assert (refused.code, refused.executed, refused.retryable) == ("RESULT_TOO_LARGE", "yes", False)
    assert room.take("x" * 40) is None
    assert room.take("x") is not None
