"""Tasks of A2A 1.0, made from what toold knows about a detached call. Pure."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from ..error_codes import ErrorCode, ToolError
from ..input_request import InputRequest
from ..tool_call import ToolResult
from .file_parts import file_parts

WORKING: Final = "TASK_STATE_WORKING"
INPUT_REQUIRED: Final = "TASK_STATE_INPUT_REQUIRED"
AUTH_REQUIRED: Final = "TASK_STATE_AUTH_REQUIRED"
COMPLETED: Final = "TASK_STATE_COMPLETED"
FAILED: Final = "TASK_STATE_FAILED"
CANCELED: Final = "TASK_STATE_CANCELED"
REJECTED: Final = "TASK_STATE_REJECTED"

ANSWER_ID: Final = "answer"
"""The id of a task's one artifact."""
_STATE_OF_ERROR: Final[Mapping[str, str]] = {
    ErrorCode.CANCELLED: CANCELED,
    ErrorCode.VALIDATION_ERROR: REJECTED,
    ErrorCode.PERMISSION_DENIED: REJECTED,
}


class _ArtifactContent(msgspec.Struct, frozen=True, gc=False):
    parts: msgspec.Raw
    metadata: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_content_of: Final = msgspec.json.Decoder(_ArtifactContent).decode


def state_of_result(error: ToolError | None) -> str:
    """The state of a task whose call has ended."""
    return COMPLETED if error is None else _STATE_OF_ERROR.get(error.code, FAILED)


def state_of_requests(requests: Sequence[InputRequest]) -> str:
    """The state of a task that waits for a person. Waiting for a credential is a separate state."""
    return AUTH_REQUIRED if any(request.kind == "credential" for request in requests) else INPUT_REQUIRED


def user_message(message_id: str, parts: msgspec.Raw, context_id: str, task_id: str) -> dict[str, Any]:
    """A message from a client, for the task's history."""
    return _message(message_id, "ROLE_USER", parts, context_id, task_id)


def error_message(error: ToolError, context_id: str, task_id: str) -> dict[str, Any]:
    """The message of a task that failed."""
    about = {"code": error.code, "executed": error.executed, "retryable": error.retryable}
    parts: list[dict[str, Any]] = [{"text": f"{error.code}: {error.message}"}, {"data": about}]
    return _message(f"{task_id}-ended", "ROLE_AGENT", parts, context_id, task_id)


def input_message(requests: Sequence[InputRequest], context_id: str, task_id: str) -> dict[str, Any]:
    """The message of a task that waits for a person: its requests, as text and as data."""
    lines = [_asked(request) for request in requests]
    parts: list[dict[str, Any]] = [{"text": "\n".join(lines)}, {"data": {"wants": msgspec.to_builtins(requests)}}]
    number = "-".join(request.id for request in requests)
    return _message(f"{task_id}-asks-{number}"[:200], "ROLE_AGENT", parts, context_id, task_id)


def artifact_of(result: ToolResult, named: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """The artifact with an agent's answer: data if it is structured, otherwise text; then its files, and the parts of
    the retained results that the answer names.
    """
    structured = result.structured if isinstance(result.structured, dict) else {}
    answer = structured.get("answer", msgspec.UNSET)
    files = file_parts(result.outputs)
    if result.metadata.spilled:
        parts = [{"data": structured, "mediaType": "application/json"}]
    elif isinstance(answer, str) or answer is msgspec.UNSET:
        text = answer if isinstance(answer, str) else result.text
        parts = [{"text": text, "mediaType": "text/plain"}] if text or not files else []
    else:
        parts = [{"data": answer, "mediaType": "application/json"}]
    facts = {name: structured[name] for name in ("state", "stopped_by", "turns", "models") if name in structured}
    metadata = {"metadata": {"toold": facts}} if facts else {}
    return {"artifactId": ANSWER_ID, "name": ANSWER_ID, "parts": [*parts, *files, *named], **metadata}


def answer_message(context_id: str, task_id: str, artifact: msgspec.Raw) -> dict[str, Any]:
    """The message of an agent that answers without a task, with the content of the encoded artifact."""
    content = _content_of(artifact)
    metadata = {} if content.metadata is msgspec.UNSET else {"metadata": content.metadata}
    message = {"messageId": f"{task_id}-{ANSWER_ID}", "role": "ROLE_AGENT", "parts": content.parts}
    return {**message, "contextId": context_id, **metadata}


def artifact_update(task_id: str, context_id: str, artifact: msgspec.Raw) -> dict[str, Any]:
    """The event of a whole, encoded artifact. It replaces the pieces that were sent before."""
    update = {"taskId": task_id, "contextId": context_id, "artifact": artifact, "append": False, "lastChunk": True}
    return {"artifactUpdate": update}


def text_artifact(text: str) -> dict[str, Any]:
    """The artifact with an answer, or the beginning of one, in text."""
    return {"artifactId": ANSWER_ID, "name": ANSWER_ID, "parts": [{"text": text, "mediaType": "text/plain"}]}


def text_update(task_id: str, context_id: str, text: str, *, append: bool) -> dict[str, Any]:
    """The event of a piece of an answer."""
    artifact = text_artifact(text)
    update = {"taskId": task_id, "contextId": context_id, "artifact": artifact, "append": append, "lastChunk": False}
    return {"artifactUpdate": update}


def status_update(
    task_id: str, context_id: str, state: str, changed_at: float, message: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The event of a new state."""
    return {"statusUpdate": {"taskId": task_id, "contextId": context_id, "status": _status(state, changed_at, message)}}


def task_of(
    task_id: str,
    context_id: str,
    state: str,
    changed_at: float,
    *,
    message: Mapping[str, Any] | None = None,
    artifacts: Sequence[msgspec.Raw] = (),
    history: msgspec.Raw | None = None,
) -> dict[str, Any]:
    """A task. ``changed_at``: the Unix time of its status; ``artifacts`` and ``history``: encoded."""
    task: dict[str, Any] = {"id": task_id, "contextId": context_id, "status": _status(state, changed_at, message)}
    if artifacts:
        task["artifacts"] = list(artifacts)
    if history is not None:
        task["history"] = history
    return task


def last_messages(history: Sequence[Any], length: int | None) -> Sequence[Any]:
    """The newest messages, at most ``length``; all messages if ``length`` is None."""
    return history if length is None else history[max(0, len(history) - length) :]


def timestamp_of(at: float) -> str:
    """A Unix time in A2A's format."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _status(state: str, changed_at: float, message: Mapping[str, Any] | None) -> dict[str, Any]:
    status = {"state": state, "timestamp": timestamp_of(changed_at)}
    return status if message is None else {**status, "message": message}


def _message(
    message_id: str, role: str, parts: list[dict[str, Any]] | msgspec.Raw, context_id: str, task_id: str
) -> dict[str, Any]:
    return {"messageId": message_id, "role": role, "parts": parts, "contextId": context_id, "taskId": task_id}


def _asked(request: InputRequest) -> str:
    if request.kind != "approve":
        return f"{request.id}: {request.text}"
    arguments = msgspec.json.encode(request.arguments).decode()
    reason = f" ({request.text})" if request.text else ""
    return f"{request.id}: approve or reject the call {request.tool}({arguments}){reason}"
