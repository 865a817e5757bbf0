"""The answers of clients to questions, validated and bounded."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ..terminal_text import one_line
from ..tool_call import Json
from .client_question import ELICIT, LIST_ROOTS, ROLES, ClientQuestion, QuestionRefusedError
from .elicitation_form import ElicitationFormError, check_content

MAX_ROOTS: Final = 200
MAX_ROOT_CHARS: Final = 4_096
"""The maximum length of a root's URI: the maximum length of a path in Linux."""
MAX_ANSWER_BYTES: Final = 1024 * 1024
"""The maximum size of an answer as JSON: a completion of about 250,000 tokens, or an image."""
_ACTIONS: Final = ("accept", "decline", "cancel")


class InvalidAnswerError(QuestionRefusedError):
    """The client's answer does not fit the question."""


def read_answer(question: ClientQuestion, result: object) -> dict[str, Json]:
    """Returns an answer in MCP's format, without fields that the question did not ask for.

    Raises:
        InvalidAnswerError: the answer does not fit the question.
    """
    fields = result if isinstance(result, Mapping) else {}
    try:
        if question.method == ELICIT:
            return _elicited(question, fields)
        if question.method == LIST_ROOTS:
            return {"roots": _roots(fields.get("roots"))}
        return _completion(fields)
    except ElicitationFormError as error:
        raise InvalidAnswerError(f"The client's answer to {question.method} is invalid: {error}.") from None


def fits(question: ClientQuestion, result: object) -> bool:
    """Whether an answer fits the question."""
    try:
        read_answer(question, result)
    except InvalidAnswerError:
        return False
    return True


def refused_answer(question: ClientQuestion, error: object) -> QuestionRefusedError:
    """Returns the error for a client that answered a question with a JSON-RPC error."""
    message = error.get("message") if isinstance(error, Mapping) else None
    reason = one_line(message, 300) if isinstance(message, str) else "it gave no reason"
    return QuestionRefusedError(f"The client did not answer {question.method}: {reason.rstrip('.')}.")


def _elicited(question: ClientQuestion, result: Mapping[str, Any]) -> dict[str, Json]:
    action = result.get("action")
    if action not in _ACTIONS:
        raise ElicitationFormError(f"action must be {', '.join(_ACTIONS)}")
    if action != "accept" or question.kind == "url":
        return {"action": action}
    return {"action": action, "content": check_content(question.params["requestedSchema"], result.get("content"))}


def _roots(roots: object) -> list[Json]:
    if not isinstance(roots, list) or len(roots) > MAX_ROOTS:
        raise ElicitationFormError(f"roots must be a list of up to {MAX_ROOTS}")
    listed: list[Json] = []
    for root in roots:
        uri = root.get("uri") if isinstance(root, Mapping) else None
        if not isinstance(uri, str) or not uri.startswith("file://") or len(uri) > MAX_ROOT_CHARS:
            raise ElicitationFormError(
                f"each root needs a uri that begins with file://, of up to {MAX_ROOT_CHARS} characters"
            )
        name = root.get("name")
        listed.append({"uri": uri, "name": name[:200]} if isinstance(name, str) else {"uri": uri})
    return listed


def _completion(result: Mapping[str, Any]) -> dict[str, Json]:
    if result.get("role") not in ROLES or not isinstance(result.get("content"), dict | list):
        raise ElicitationFormError("a completion needs role and content")
    if not isinstance(result.get("model"), str):
        raise ElicitationFormError("a completion needs the name of its model")
    answer = {name: result[name] for name in ("role", "content", "model", "stopReason") if result.get(name) is not None}
    try:
        size = len(msgspec.json.encode(answer))
    except (TypeError, ValueError, RecursionError):
        raise ElicitationFormError("it is not JSON") from None
    if size > MAX_ANSWER_BYTES:
        raise ElicitationFormError(f"it has {size:,} bytes, more than {MAX_ANSWER_BYTES:,}")
    return answer
