"""The questions of a tool to the person who tries it, as forms, and their answers. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from ....dashboard import argument_form, form_arguments
from ....protocol.error_codes import InvalidArgumentsError
from ....protocol.questions.client_question import ClientQuestion, QuestionKind
from ....protocol.questions.question_answer import InvalidAnswerError, read_answer
from ....protocol.questions.question_table import OpenQuestion
from ....protocol.tool_call import Json

ANSWERED_KINDS: Final[tuple[QuestionKind, ...]] = ("form", "url")
"""The kinds that a person can answer. A question to a model is refused, with the reason."""


def question_values(entry: OpenQuestion, tool: str) -> dict[str, Any]:
    """The values of the template ``tool_question``."""
    params: Mapping[str, Any] = entry.question.params
    return {
        "token": entry.token,
        "prefix": _prefix(entry),
        "tool": tool,
        "source": entry.question.source,
        "message": params["message"],
        "url": params.get("url"),
        "form": argument_form(params.get("requestedSchema", {})),
    }


def answer_of(entry: OpenQuestion, values: Mapping[str, str]) -> dict[str, Json]:
    """The answer in a form, in MCP's format.

    Raises:
        InvalidArgumentsError: a value is missing or does not fit.
    """
    if values.get("decision") != "accept":
        return {"action": "decline"}
    prefix = _prefix(entry)
    named = {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}
    read = form_arguments(argument_form(entry.question.params.get("requestedSchema", {})), named)
    if read.problems:
        raise InvalidArgumentsError(" ".join(read.problems))
    answer: dict[str, Json] = {"action": "accept", "content": read.arguments}
    _check(entry.question, answer)
    return answer


def _check(question: ClientQuestion, answer: Mapping[str, Json]) -> None:
    """Checks an answer before it is given, because an invalid answer would end the question."""
    try:
        read_answer(question, answer)
    except InvalidAnswerError as error:
        raise InvalidArgumentsError(error.message) from None


def _prefix(entry: OpenQuestion) -> str:
    """The prefix of the names of the form's fields, because several questions may be open on one page."""
    return f"|{entry.token}"
