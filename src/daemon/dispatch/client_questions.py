"""Asks the clients of running calls, and waits for their answers.

A question goes to the client that made the call, even if a child call asks it. While a call waits for an answer, it
holds no permit and its clock is stopped, so afterwards it has as much time left as before. ``QuestionTable`` decides
which questions are allowed, and who may answer.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from secrets import token_urlsafe
from typing import Final

import msgspec

from ...protocol.questions.client_question import (
    ABILITIES,
    ClientQuestion,
    QuestionRefusedError,
    UndeclaredCapabilityError,
)
from ...protocol.questions.question_answer import InvalidAnswerError, read_answer, refused_answer
from ...protocol.questions.question_table import OpenQuestion, QuestionTable
from ...protocol.tool_call import Json, Principal
from .call_deadlines import CallDeadlines
from .node_tokens import NodeTokens
from .running_call import RunningCall

_TOKEN_BYTES: Final = 18


class _Waiting(msgspec.Struct, eq=False):
    """A question and the call that waits for its answer."""

    entry: OpenQuestion
    asking: RunningCall
    asked: RunningCall
    """The client's call."""
    answer: asyncio.Future[dict[str, Json]]


class _StoppedClock(msgspec.Struct, eq=False):
    """The clock of a call with open questions."""

    left_s: float
    questions: int = 1


class ClientQuestions:
    """The questions of all running calls."""

    def __init__(self, *, timeout_s: Callable[[], float], deadlines: CallDeadlines) -> None:
        self._timeout_s = timeout_s
        self.deadlines = deadlines
        self._clock: Callable[[], float] = time.monotonic
        self._table = QuestionTable()
        self.node_tokens = NodeTokens()
        self._waiting: dict[str, _Waiting] = {}
        self._stopped: dict[RunningCall, _StoppedClock] = {}
        # The clients' calls that have asked questions; other calls have no entry.
        self._asked: set[RunningCall] = set()

    def __len__(self) -> int:
        return len(self._table)

    async def ask(self, call: RunningCall, question: ClientQuestion, name: str = "") -> dict[str, Json]:
        """Asks the client and returns its answer, which fits the question. The question gets the id ``name``, if no
        other question of the call has it.

        Raises:
            QuestionRefusedError: the client cannot answer such questions, did not answer in time or refused; there are
                too many questions; or the call has ended.
        """
        call.asked_client, root = True, root_of(call)
        if root.answered or call.answered or call.end_reason is not None:
            raise QuestionRefusedError("The call has ended, so no client can be asked.")
        if question.kind not in root.request.answers:
            raise UndeclaredCapabilityError(cannot_answer(question), question.kind)
        principal = root.session.principal.name
        refusal = self._table.refusal(root.id, principal)
        if refusal is not None:
            raise QuestionRefusedError(f"{refusal}; the question was not asked.")
        timeout_s, token = self._timeout_s(), self.node_tokens.named(token_urlsafe(_TOKEN_BYTES))
        entry = OpenQuestion(
            id=name,
            token=token,
            call=root.id,
            principal=principal,
            question=question,
            expires_at=self._clock() + timeout_s,
        )
        self._asked.add(root)
        self._table.add(entry)
        waiting = self._waiting[token] = _Waiting(entry, call, root, asyncio.get_running_loop().create_future())
        chain = tuple(_chain(call))
        self._stop_clocks(chain, timeout_s)
        try:
            root.port.question(root, entry)
            async with call.permit.paused():
                outcome = await self._outcome(waiting, timeout_s)
        finally:
            del self._waiting[token]
            if self._table.close(entry, "withdrawn"):
                root.port.question_closed(root, entry)
            self._start_clocks(chain)
        if isinstance(outcome, QuestionRefusedError):
            raise outcome
        return outcome

    def open_questions(self, call: RunningCall) -> Sequence[OpenQuestion]:
        """The open questions of a client's call, in the order in which they were asked."""
        return tuple(self._table.of_call(call.id)) if call in self._asked else ()

    def find(self, token: str, principal: Principal) -> tuple[OpenQuestion, RunningCall] | None:
        """The open question with this token, with the client's call, if this principal may answer it."""
        entry = self._table.answerable(token, principal.name)
        return None if entry is None else (entry, self._waiting[token].asked)

    def answer(self, entry: OpenQuestion, result: object, error: object = None) -> InvalidAnswerError | None:
        """Answers a question from ``find`` or ``open_questions`` with a result or an error of JSON-RPC. An invalid
        result also ends the question; its problem is returned. A second answer has no effect.
        """
        waiting = self._waiting.get(entry.token)
        if waiting is None or waiting.answer.done() or not self._table.close(entry, "answered"):
            return None
        if error is not None:
            waiting.answer.set_exception(refused_answer(entry.question, error))
            return None
        try:
            waiting.answer.set_result(read_answer(entry.question, result))
        except InvalidAnswerError as invalid:
            waiting.answer.set_exception(invalid)
            return invalid
        return None

    def ask_again(self, calls: Iterable[RunningCall]) -> None:
        """Sends the open questions of these calls again, through their current ports."""
        for call in calls:
            for entry in self.open_questions(call):
                call.port.question(call, entry)

    def withdraw(self, call: RunningCall) -> None:
        """Ends the questions of a call that ends."""
        if not self._asked:
            return
        for waiting in tuple(self._waiting.values()):
            if call in (waiting.asking, waiting.asked) and not waiting.answer.done():
                waiting.answer.set_exception(QuestionRefusedError("The call has ended before the answer."))
        if call.answered and call in self._asked:
            self._asked.discard(call)
            self._table.forget(call.id)

    async def _outcome(self, waiting: _Waiting, timeout_s: float) -> dict[str, Json] | QuestionRefusedError:
        """The answer, or the reason why there is none. The reason is returned, because after an exception the permit
        would not be taken again.
        """
        try:
            async with asyncio.timeout(timeout_s):
                return await waiting.answer
        except QuestionRefusedError as refused:
            return refused
        except TimeoutError:
            if self._table.close(waiting.entry, "expired"):
                waiting.asked.port.question_closed(waiting.asked, waiting.entry)
            return QuestionRefusedError(
                f"The client did not answer {waiting.entry.question.method} in {timeout_s:g} s (question_timeout_s)."
            )

    def _stop_clocks(self, calls: Sequence[RunningCall], timeout_s: float) -> None:
        now = self._clock()
        for call in calls:
            stopped = self._stopped.get(call)
            if stopped is None:
                stopped = self._stopped[call] = _StoppedClock(max(0.0, call.deadline - now))
            else:
                stopped.questions += 1
            self.deadlines.move(call, now + timeout_s + stopped.left_s)

    def _start_clocks(self, calls: Sequence[RunningCall]) -> None:
        now = self._clock()
        for call in calls:
            stopped = self._stopped[call]
            stopped.questions -= 1
            if stopped.questions == 0:
                del self._stopped[call]
                self.deadlines.move(call, now + stopped.left_s)


def root_of(call: RunningCall) -> RunningCall:
    """The client's call or the detached call to which a call belongs."""
    while call.parent is not None:
        call = call.parent
    return call


def cannot_answer(question: ClientQuestion) -> str:
    """The reason for not asking a question of a kind that the client has not declared."""
    who = question.source or "The tool"
    return f"{who} asked its caller, but this client has not declared that it can {ABILITIES[question.kind]}."


def _chain(call: RunningCall) -> Iterator[RunningCall]:
    """A call and its parents, up to the client's call."""
    current: RunningCall | None = call
    while current is not None:
        yield current
        current = current.parent
