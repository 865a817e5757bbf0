"""The frames of questions from running calls, and of their answers."""

import time

from ...protocol.error_codes import CallError, InvalidRequestError, NotFoundError
from ...protocol.frames import AnswerQuestion, ErrorFrame, QuestionClosed, QuestionFrame
from ...protocol.questions.question_table import OpenQuestion
from ..dispatch import ClientQuestions, RunningCall, Session


def question_frame(running: RunningCall, entry: OpenQuestion) -> QuestionFrame:
    """The question as a frame. Its id is the token, which only this client gets."""
    question = entry.question
    timeout_ms = max(0.0, entry.expires_at - time.monotonic()) * 1000
    return QuestionFrame(
        running.request.request_id,
        entry.token,
        question.kind,
        question.method,
        question.params,
        round(timeout_ms, 3),
        question.source,
    )


def closed_frame(running: RunningCall, entry: OpenQuestion) -> QuestionClosed:
    return QuestionClosed(running.request.request_id, entry.token)


def take_answer(questions: ClientQuestions, session: Session, frame: AnswerQuestion) -> ErrorFrame | None:
    """Passes on a client's answer. Returns an error if the answer is refused; the error has no request id, because it
    is not the answer of the call.
    """
    waiting = questions.find(frame.question_id, session.principal)
    error: CallError | None
    if (
        waiting is None
        or waiting[1].session is not session
        or waiting[1].request.request_id != frame.request_id  # an integer may come as a float
    ):
        error = NotFoundError(
            "question_id: no question of this call is open under this id; it was answered or withdrawn.", executed="no"
        )
    else:
        invalid = questions.answer(waiting[0], frame.result, frame.error)
        error = None if invalid is None else InvalidRequestError(invalid.message)
    return None if error is None else ErrorFrame(error.to_tool_error())
