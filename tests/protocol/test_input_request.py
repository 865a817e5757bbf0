"""The requests of a pause: their ids, their number and their size."""

import pytest
from toold.protocol.input_request import (
    MAX_REQUESTS,
    MAX_REQUESTS_BYTES,
    CallPausedError,
    InputDecision,
    InputRequest,
    decision_problem,
)

APPROVAL = InputRequest("t2.1", "approve", "send", {"to": "a@example.org"}, "send writes")


def test_the_requests_of_a_child_carry_its_name() -> None:
    """A parent that pauses with its child asks the same, under ids that begin with the child's name."""
    paused = CallPausedError((APPROVAL,), 7.0).of_child("writer").of_child("desk")
    (request,) = paused.requests
    assert request.id == "desk/writer/t2.1"
    assert (request.kind, request.tool, request.arguments) == (APPROVAL.kind, APPROVAL.tool, APPROVAL.arguments)
    assert paused.expires_at == 7.0


@pytest.mark.parametrize(
    ("requests", "problem"),
    [
        ((), "1 to 100"),
        ((APPROVAL,) * 2, "share an id"),
        ((InputRequest("a b", "question"),), "'a b' does not match"),
        (tuple(InputRequest(str(number), "question") for number in range(MAX_REQUESTS + 1)), "not 101"),
        ((InputRequest("q", "question", text="x" * MAX_REQUESTS_BYTES),), "bytes, more than"),
    ],
)
def test_requests_that_no_one_could_decide_are_refused(requests: tuple[InputRequest, ...], problem: str) -> None:
    """A pause without requests, with ambiguous ids, or beyond a limit is the tool's mistake."""
    with pytest.raises(ValueError, match=problem):
        CallPausedError(requests, 0.0)


def test_changed_arguments_are_bounded() -> None:
    """They are stored until the call ends, as the requests are."""
    largest = {"text": "x" * (MAX_REQUESTS_BYTES - len('{"text":""}'))}
    assert decision_problem(APPROVAL, InputDecision("approve", largest)) is None
    larger = {"text": largest["text"] + "x"}
    assert "more than 262,144 bytes" in str(decision_problem(APPROVAL, InputDecision("approve", larger)))
