"""The open questions, with their calls and the principals that may answer them. Pure: callers pass times and act on the
results.
"""

from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from .client_question import ClientQuestion

MAX_OPEN: Final = 1_000
"""The maximum number of open questions of all calls. A question may have 256 KiB; most have less than 2 KiB."""
MAX_OPEN_OF_PRINCIPAL: Final = 200
MAX_OPEN_OF_CALL: Final = 16
"""The maximum number of open questions of a call. A client may show all of them at once."""
MAX_OF_CALL: Final = 32
"""The maximum number of questions of a call, including answered ones. Each question stops the call's clock."""

QuestionState = Literal["open", "answered", "withdrawn", "expired"]


class OpenQuestion(msgspec.Struct, eq=False):
    """An open question and its identifiers."""

    id: str
    """Unique within its call."""
    token: str
    """Unique and unguessable."""
    call: str
    """The id of the client's call, even if one of its child calls asks."""
    principal: str
    """The name of the only principal that may answer."""
    question: ClientQuestion
    expires_at: float
    state: QuestionState = "open"


class QuestionTable:
    """The open questions."""

    def __init__(self) -> None:
        self._open: dict[str, OpenQuestion] = {}
        # The number of questions of each running call so far.
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
        """Adds a question that ``refusal`` allows. If the call already has a question with its id, it gets another
        id.
        """
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
        """Forgets an ended call. Its questions must be closed."""
        self._asked.pop(call, None)
