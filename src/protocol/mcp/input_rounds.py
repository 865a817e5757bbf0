"""Multi-round-trip requests of the stateless revisions. A call that needs input is answered with its questions and an
opaque state; the client repeats the call with the answers and the state.

Between two rounds the call is parked: it keeps running without a request. Pure.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Generic, TypeVar

import msgspec

from ..json_rpc import INVALID_PARAMS, MessageProblem
from ..questions.question_table import OpenQuestion
from .mcp_result import SERVER_INFO
from .request_envelope import SERVER_KEY

CallT = TypeVar("CallT")


class InputRound(msgspec.Struct, frozen=True):
    """The state and the answers that a call has in addition to its arguments."""

    state: str | None
    """The state of the call that this call repeats; None for a new call that already has answers to its questions."""
    responses: Mapping[str, Any]
    """The answers by the ids of their questions. Other answers are ignored, as the specification requires."""


class ParkedCall(msgspec.Struct, Generic[CallT], frozen=True):
    """A call between two rounds, and the properties that its repetition must match."""

    owner: str
    name: str
    arguments: Any
    call: CallT


class ParkedCalls(Generic[CallT]):
    """The parked calls by their states. Each has an open question; the number of open questions is bounded, and each
    ends after ``question_timeout_s``.
    """

    def __init__(self) -> None:
        self._parked: dict[str, ParkedCall[CallT]] = {}

    def __len__(self) -> int:
        return len(self._parked)

    def park(self, state: str, parked: ParkedCall[CallT]) -> None:
        """Parks a call under a state that cannot be guessed."""
        self._parked[state] = parked

    def take(self, state: str | None, owner: str, name: str, arguments: Any) -> CallT | MessageProblem:
        """Returns the call with this state, if the same caller repeats it. A state is valid for one round."""
        parked = None if state is None else self._parked.get(state)
        if state is None or parked is None or parked.owner != owner:
            return UNKNOWN_STATE
        if (parked.name, parked.arguments) != (name, arguments):
            message = (
                "A call with params.requestState must have the same name and arguments as the call that it repeats."
            )
            return MessageProblem(INVALID_PARAMS, message, {"reason": "invalid_request_state"})
        del self._parked[state]
        return parked.call

    def drop(self, state: str) -> None:
        """Forgets a call that has ended."""
        self._parked.pop(state, None)


UNKNOWN_STATE: Final = MessageProblem(
    INVALID_PARAMS,
    "params.requestState belongs to no call of yours that waits for input; call the tool again without it.",
    {"reason": "invalid_request_state"},
)


def read_round(params: Mapping[str, Any]) -> InputRound | MessageProblem | None:
    """Reads the round of a call; None for a new call without answers."""
    state, responses = params.get("requestState"), params.get("inputResponses", {})
    if state is None and "inputResponses" not in params:
        return None
    if state is not None and not isinstance(state, str):
        return MessageProblem(INVALID_PARAMS, "params.requestState must be a string.")
    if not isinstance(responses, dict):
        return MessageProblem(INVALID_PARAMS, "params.inputResponses must be an object.")
    return InputRound(state, responses)


def input_required_result(questions: Iterable[tuple[str, str, Mapping[str, Any]]], state: str) -> dict[str, Any]:
    """The result of a call that needs input."""
    return {
        "resultType": "input_required",
        "inputRequests": input_requests(questions),
        "requestState": state,
        "_meta": {SERVER_KEY: SERVER_INFO},
    }


def asked(questions: Iterable[OpenQuestion]) -> Iterable[tuple[str, str, Mapping[str, Any]]]:
    """The ids, methods and parameters of questions."""
    return ((entry.id, entry.question.method, entry.question.params) for entry in questions)


def input_requests(questions: Iterable[tuple[str, str, Mapping[str, Any]]]) -> dict[str, Any]:
    """The questions, given by id, method and parameters, in the form of the stateless revisions."""
    return {
        # In the stateless revisions, the question's id identifies the visit of a URL.
        question_id: {
            "method": method,
            "params": {name: value for name, value in params.items() if name != "elicitationId"},
        }
        for question_id, method, params in questions
    }
