"""Tasks, messages and events of remote agents, of A2A 1.0 and 0.3, as far as a client needs them. Pure."""

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

MAX_REMOTE_PARTS: Final = 1000
"""The maximum number of parts of an artifact or a message, and of all artifacts together."""

PartKind = Literal["text", "data", "raw", "url"]
_CONTENTS: Final[tuple[PartKind, ...]] = ("text", "raw", "url")
_STATE: Final = "TASK_STATE_"
TaskOutlook = Literal["working", "input", "auth", "completed", "failed", "canceled", "rejected"]
_OUTLOOKS: Final[Mapping[str, TaskOutlook]] = {
    "SUBMITTED": "working",
    "WORKING": "working",
    "INPUT_REQUIRED": "input",
    "AUTH_REQUIRED": "auth",
    "COMPLETED": "completed",
    "FAILED": "failed",
    "CANCELED": "canceled",
    "REJECTED": "rejected",
}


class UnreadableAgentAnswerError(ValueError):
    """An agent's answer does not conform to A2A; the message gives the reason, without a period."""


class RemotePart(NamedTuple):
    """A part of a message or an artifact."""

    kind: PartKind
    content: Any
    """A text, a JSON value, a file in base64, or a file's URL."""
    media_type: str = ""
    name: str = ""


class RemoteMessage(NamedTuple):
    """A message of an agent."""

    id: str
    parts: tuple[RemotePart, ...]
    context_id: str

    @property
    def text(self) -> str:
        """Its text parts."""
        return "\n".join(part.content for part in self.parts if part.kind == "text")


class RemoteStatus(NamedTuple):
    """The state of a task."""

    outlook: TaskOutlook
    message: RemoteMessage | None
    timestamp: str

    @property
    def ends(self) -> bool:
        """Whether the task has ended or waits for its client."""
        return self.outlook != "working"

    @property
    def mark(self) -> str:
        """Distinguishes this status from later ones in the same state: a message id or a time; empty if there is
        neither.
        """
        return (self.message.id if self.message is not None else "") or self.timestamp


class RemoteArtifact(NamedTuple):
    """A part of a task's answer."""

    id: str
    parts: tuple[RemotePart, ...]


class RemoteTask(NamedTuple):
    """A task of an agent."""

    id: str
    context_id: str
    status: RemoteStatus
    artifacts: tuple[RemoteArtifact, ...]


class StatusChange(NamedTuple):
    """An event: a new state of a task."""

    task_id: str
    context_id: str
    status: RemoteStatus


class ArtifactChange(NamedTuple):
    """An event: an artifact, or a further piece of one."""

    task_id: str
    artifact: RemoteArtifact
    append: bool


RemoteEvent = RemoteTask | RemoteMessage | StatusChange | ArtifactChange


def read_event(value: object) -> RemoteEvent:
    """Reads the answer of ``SendMessage`` or an event of a stream, of either version.

    Raises:
        UnreadableAgentAnswerError: the value is not a task, a message or a change of a task.
    """
    table = _table(value, "the answer")
    match table.get("kind"):
        case "task":
            return read_remote_task(table)
        case "message":
            return _message(table)
        case "status-update":
            return _status_change(table)
        case "artifact-update":
            return _artifact_change(table)
    for field, read in (
        ("task", read_remote_task),
        ("message", _message),
        ("statusUpdate", _status_change),
        ("artifactUpdate", _artifact_change),
    ):
        if isinstance(table.get(field), dict):
            return read(table[field])
    raise UnreadableAgentAnswerError("it has neither a task nor a message")


def read_remote_task(value: object) -> RemoteTask:
    """Reads a task.

    Raises:
        UnreadableAgentAnswerError: the value is not a task, or its state is unknown.
    """
    task = _table(value, "the task")
    listed = task.get("artifacts") or []
    if not isinstance(listed, list):
        raise UnreadableAgentAnswerError("artifacts is not a list")
    artifacts = tuple(map(_artifact, listed))
    if sum(len(artifact.parts) for artifact in artifacts) > MAX_REMOTE_PARTS or len(artifacts) > MAX_REMOTE_PARTS:
        raise UnreadableAgentAnswerError(f"the artifacts have more than {MAX_REMOTE_PARTS} parts")
    return RemoteTask(_id(task, "id"), _text(task, "contextId"), _status(task.get("status")), artifacts)


def _status_change(table: Mapping[str, Any]) -> StatusChange:
    return StatusChange(_id(table, "taskId"), _text(table, "contextId"), _status(table.get("status")))


def _artifact_change(table: Mapping[str, Any]) -> ArtifactChange:
    return ArtifactChange(_id(table, "taskId"), _artifact(table.get("artifact")), table.get("append") is True)


def _status(value: object) -> RemoteStatus:
    status = _table(value, "status")
    state = _text(status, "state")
    outlook = _OUTLOOKS.get(state.removeprefix(_STATE).upper().replace("-", "_"))
    if outlook is None:
        raise UnreadableAgentAnswerError(f"the task is in the unknown state {state[:40]!r}")
    message = status.get("message")
    return RemoteStatus(outlook, _message(message) if isinstance(message, dict) else None, _text(status, "timestamp"))


def _message(table: Mapping[str, Any]) -> RemoteMessage:
    return RemoteMessage(_text(table, "messageId"), _parts(table.get("parts")), _text(table, "contextId"))


def _artifact(value: object) -> RemoteArtifact:
    artifact = _table(value, "an artifact")
    return RemoteArtifact(_text(artifact, "artifactId"), _parts(artifact.get("parts")))


def _parts(value: object) -> tuple[RemotePart, ...]:
    if not isinstance(value, list):
        raise UnreadableAgentAnswerError("parts is not a list")
    if len(value) > MAX_REMOTE_PARTS:
        raise UnreadableAgentAnswerError(f"a message or artifact has more than {MAX_REMOTE_PARTS} parts")
    return tuple(map(_part, value))


def _part(value: object) -> RemotePart:
    part = _table(value, "a part")
    file = part.get("file")
    if isinstance(file, dict):
        named = {"mediaType": file.get("mimeType"), "filename": file.get("name")}
        part = {"raw": file["bytes"], **named} if "bytes" in file else {"url": file.get("uri"), **named}
    if "data" in part:
        return RemotePart("data", part["data"])
    for kind in _CONTENTS:
        content: object = part.get(kind)
        if isinstance(content, str):
            return RemotePart(kind, content, _text(part, "mediaType"), _text(part, "filename"))
    raise UnreadableAgentAnswerError("a part has neither text, data nor a file")


def _id(table: Mapping[str, Any], field: str) -> str:
    value = _text(table, field)
    if not value or len(value) > 1000:
        raise UnreadableAgentAnswerError(f"{field} is missing or too long")
    return value


def _table(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise UnreadableAgentAnswerError(f"{what} is not a JSON object")
    return value


def _text(table: Mapping[str, Any], field: str) -> str:
    value = table.get(field)
    return value if isinstance(value, str) else ""
