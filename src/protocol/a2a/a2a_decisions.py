"""Reads a person's decisions from a message to a task that waits for them. Pure."""

from collections.abc import Sequence
from typing import Any, Final

from ..input_request import InputRequest
from .a2a_error import A2AError, invalid_field
from .a2a_request import A2AMessage

_WORDS: Final = {"approve": "approve", "yes": "approve", "reject": "reject", "no": "reject"}
"""The texts that decide on a request for approval. Other texts decide nothing, so a remark never approves a call."""
_KINDS: Final = '"approve" | "reject" | "answer" | "provided"'
_FORM: Final = f'{{"decisions": {{"REQUEST_ID": {{"decision": {_KINDS}, "text": …, "arguments": …}}}}}}'


def decisions_in(message: A2AMessage, requests: Sequence[InputRequest]) -> list[dict[str, Any]]:
    """The decisions as arguments of ``agent_decide``. They are in a data part or, if only one request is open, in the
    text.

    Raises:
        A2AError: the message has no decision.
    """
    for data in message.data:
        if isinstance(data, dict) and "decisions" in data:
            return _from_data(data["decisions"])
    if requests and all(request.kind == "credential" for request in requests):
        return _of_credentials(message.text.strip(), requests)
    if len(requests) != 1:
        raise _undecided(f"{len(requests)} requests are open, so a data part must have the decisions", requests)
    request, text = requests[0], message.text.strip()
    if request.kind == "question":
        if not text:
            raise _undecided("answer the question in a text part", requests)
        return [{"id": request.id, "decision": "answer", "text": text}]
    word, _, reason = text.partition(":")
    decision = _WORDS.get(word.strip().lower())
    if decision is None or (decision == "approve" and reason.strip()):
        raise _undecided("send the text approve, reject or reject: REASON to decide on the call", requests)
    decided = {"id": request.id, "decision": decision}
    return [decided | {"text": reason.strip()} if reason.strip() else decided]


def _of_credentials(text: str, requests: Sequence[InputRequest]) -> list[dict[str, Any]]:
    """Any text except a rejection means that the user provided the credentials; the run checks that. The message itself
    must not contain a credential.
    """
    word, _, reason = text.partition(":")
    if word.strip().lower() != "reject":
        return [{"id": request.id, "decision": "provided"} for request in requests]
    rejected = {"decision": "reject"} | ({"text": reason.strip()} if reason.strip() else {})
    return [{"id": request.id, **rejected} for request in requests]


def _from_data(decisions: object) -> list[dict[str, Any]]:
    if isinstance(decisions, dict):
        if not all(isinstance(decision, dict) for decision in decisions.values()):
            raise invalid_field("message.parts", f"with decisions must have the form {_FORM}")
        return [{**decision, "id": request_id} for request_id, decision in decisions.items()]
    if isinstance(decisions, list) and all(isinstance(decision, dict) for decision in decisions):
        return decisions
    raise invalid_field("message.parts", f"with decisions must have the form {_FORM}")


def _undecided(why: str, requests: Sequence[InputRequest]) -> A2AError:
    shown = ", ".join(request.id for request in requests)
    return invalid_field("message.parts", f"have no decision: {why}; or send a data part {_FORM}. Requests: {shown}")
