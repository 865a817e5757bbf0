"""Answers of clients, which may be hostile too."""

from typing import Any

import pytest
from toold.protocol.questions.client_question import ELICIT, LIST_ROOTS, SAMPLE, ClientQuestion, read_question
from toold.protocol.questions.question_answer import MAX_ROOTS, InvalidAnswerError, read_answer, refused_answer

FORM = read_question(ELICIT, {"message": "?", "requestedSchema": {"type": "object", "properties": {}}})
URL = read_question(ELICIT, {"message": "?", "mode": "url", "url": "https://a.example"})
ROOTS = read_question(LIST_ROOTS, {})
PROMPT = read_question(SAMPLE, {"messages": [{"role": "user", "content": {}}], "maxTokens": 1})


@pytest.mark.parametrize(
    ("question", "result", "answer"),
    [
        (FORM, {"action": "accept", "content": {"x": 1}}, {"action": "accept", "content": {}}),
        (FORM, {"action": "decline", "content": 7}, {"action": "decline"}),
        (URL, {"action": "accept", "content": {"password": "x"}}, {"action": "accept"}),
        (ROOTS, {"roots": [{"uri": "file:///a", "name": "A", "x": 1}]}, {"roots": [{"uri": "file:///a", "name": "A"}]}),
        (
            PROMPT,
            {"role": "assistant", "content": {}, "model": "m", "x": 1},
            {"role": "assistant", "content": {}, "model": "m"},
        ),
    ],
)
def test_an_answer_is_reduced_to_what_was_asked(question: ClientQuestion, result: Any, answer: Any) -> None:
    """Everything else is dropped."""
    assert read_answer(question, result) == answer


WRONG: list[tuple[ClientQuestion, Any]] = [
    (FORM, None),
    (FORM, []),
    (FORM, {"action": "maybe"}),
    (FORM, {"action": "accept"}),
    (ROOTS, {"roots": None}),
    (ROOTS, {"roots": [{}]}),
    (ROOTS, {"roots": [{"uri": "https://a"}]}),
    (ROOTS, {"roots": [{"uri": "file:///"}] * (MAX_ROOTS + 1)}),
    (PROMPT, {}),
    (PROMPT, {"role": "system", "content": {}, "model": "m"}),
    (PROMPT, {"role": ["user"], "content": {}, "model": "m"}),
    (PROMPT, {"role": "user", "content": {"text": "x" * 1_100_000}, "model": "m"}),
]


@pytest.mark.parametrize(("question", "result"), WRONG)
def test_invalid_answers_are_refused(question: ClientQuestion, result: Any) -> None:
    """The error names the question's method."""
    with pytest.raises(InvalidAnswerError, match=question.method):
        read_answer(question, result)


def test_an_error_of_the_client_is_its_reason() -> None:
    """On one line."""
    assert "elicitation/create: no time" in refused_answer(FORM, {"code": -1, "message": "no\ntime"}).message
    assert "it gave no reason" in refused_answer(FORM, 7).message
