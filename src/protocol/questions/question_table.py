"""The open questions, with their calls and the principals that may answer them. Pure: callers pass times and act on the
results.
"""

from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from .client_question import ClientQuestion

MAX_OPEN: Final = 1_000
"""The most open questions of all calls together. A question may have 256 KiB; most have less than 2."""
MAX_OPEN_OF_PRINCIPAL: Final = 200
MAX_OPEN_OF_CALL: Final = 16
"""A client may show all of them at once."""
MAX_OF_CALL: Final = 32
"""The most questions of a call, including answered ones. No person answers more, and each stops the call's clock."""

QuestionState = Literal["open", "answered", "withdrawn", "expired"]


class OpenQuestion(msgspec.Struct, eq=False):
    """A question, with what identifies it."""

    id: str
    """Unique within its call."""
    token: str
    """Unique and not guessable."""
    call: str
    """The id of the client's call, which may have asked through its child calls."""
    principal: str
    """The only principal that may answer."""
    question: ClientQuestion
    expires_at: float
    state: QuestionState = "open"


class QuestionTable:
    """The open questions."""

    def __init__(self) -> None:
        self._open: dict[str, OpenQuestion] = {}
        # By call: the questions so far, while the call runs.
        self._asked: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._open)

    def refusal(self, call: str, principal: str) -> str | None:
        """Returns why a call may not ask one more question; None if it may."""
        if self._asked.get(call, 0) >= MAX_OF_CALL:
            return f"The call has asked {MAX_OF_CALL} questions, the limit"
        if sum(1 for _ in self.of_call(call)) >= MAX_OPEN_OF_CALL:
            return f"{MAX_OPEN_OF_CALL} questions of the call are open, the limit"
        if sum(entry.principal == principal for entry in self._open.values()) >= MAX_OPEN_OF_PRINCIPAL:
            return f"{MAX_OPEN_OF_PRINCIPAL} questions to you are open, the limit of a principal"
        return f"{MAX_OPEN:,} questions are open, the limit of this daemon" if len(self._open) >= MAX_OPEN else None

    def add(self, entry: OpenQuestion) -> None:
        """Adds a question that ``refusal`` allows. If its id is taken within the call, it gets another one."""
        asked = self._asked[entry.call] = self._asked.get(entry.call, 0) + 1
        if not entry.id or any(other.id == entry.id for other in self.of_call(entry.call)):
            entry.id = f"question-{asked}"
        self._open[entry.token] = entry

    def answerable(self, token: str, principal: str) -> OpenQuestion | None:
        """Returns the open question with this token, if the principal may answer it."""
        entry = self._open.get(token)
        return entry if entry is not None and entry.principal == principal else None

    def of_call(self, call: str) -> Iterator[OpenQuestion]:
        """The open questions of a client's call, in the order in which they were asked."""
        return (entry for entry in self._open.values() if entry.call == call)

    def close(self, entry: OpenQuestion, state: QuestionState) -> bool:
        """Closes a question. Returns False if it was already closed, so that a second or late answer has no effect."""
        if entry.state != "open":
            return False
        entry.state = state
        del self._open[entry.token]
        return True

    def forget(self, call: str) -> None:
        """Forgets a call that has ended, whose questions are closed."""
        self._asked.pop(call, None)
