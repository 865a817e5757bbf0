"""The answer of a remote agent so far: the task's state, and the parts of its artifacts. Pure."""

from collections.abc import Iterator
from typing import Any, Final

from ...protocol.a2a.remote_task import (
    MAX_REMOTE_PARTS,
    ArtifactChange,
    RemoteEvent,
    RemoteMessage,
    RemotePart,
    RemoteStatus,
    RemoteTask,
)
from ...protocol.error_codes import ResultTooLargeError
from ...protocol.tool_call import Json
from ...tools import ToolOutput
from ..content_blocks import read_answer
from .remote_failures import unreadable

_MEDIA: Final = ("image", "audio")


class _GrowingPart:
    """A part whose text may come in pieces."""

    __slots__ = ("_pieces", "part")

    def __init__(self, part: RemotePart) -> None:
        self.part = part
        self._pieces = [part.content] if part.kind == "text" else []

    def add(self, text: str) -> None:
        self._pieces.append(text)

    @property
    def whole(self) -> RemotePart:
        return self.part._replace(content="".join(self._pieces)) if self.part.kind == "text" else self.part


class RemoteAnswerState:
    """Collects the events of one task, or the message with which an agent answers."""

    def __init__(self, source: str, max_chars: int) -> None:
        """``max_chars`` limits the total size of the answer's texts and files."""
        self._source = source
        self._max_chars = max_chars
        self._chars = 0
        self._artifacts: dict[str, list[_GrowingPart]] = {}
        self.task_id = ""
        self.context_id = ""
        self.status: RemoteStatus | None = None
        self.message: RemoteMessage | None = None
        """The whole answer of an agent that created no task."""

    @property
    def ended(self) -> bool:
        """Whether the task has ended or waits for its client."""
        return self.message is not None or (self.status is not None and self.status.ends)

    def take(self, event: RemoteEvent) -> str | None:
        """Processes an event. Returns the text that the event appended to the answer; None if it changed the answer in
        another way, or not at all.

        Raises:
            ResultTooLargeError: the answer is too long.
            ProviderError: the event is about another task.
        """
        about = "" if isinstance(event, RemoteMessage) else event.id if isinstance(event, RemoteTask) else event.task_id
        if about and self.task_id and about != self.task_id:
            # The answer may belong to another caller, and a cancellation would end work that this call did not begin.
            raise unreadable(self._source, "it is about another task")
        if isinstance(event, RemoteMessage):
            self.message = event
            self.context_id = event.context_id or self.context_id
            self._count(event.parts)
            return None
        if isinstance(event, ArtifactChange):
            return self._change(event)
        if isinstance(event, RemoteTask):
            self.task_id = event.id
            self._artifacts, self._chars = {}, 0
            for number, artifact in enumerate(event.artifacts):
                self._count(artifact.parts)
                self._artifacts[artifact.id or str(number)] = list(map(_GrowingPart, artifact.parts))
        self.task_id = self.task_id or (event.id if isinstance(event, RemoteTask) else event.task_id)
        self.context_id = event.context_id or self.context_id
        self.status = event.status
        return None

    def _change(self, change: ArtifactChange) -> str | None:
        self.task_id = self.task_id or change.task_id
        artifact, name = change.artifact, change.artifact.id
        if not change.append or name not in self._artifacts:
            is_new = name not in self._artifacts
            self._artifacts[name] = list(map(_GrowingPart, artifact.parts))
            if is_new:
                self._count(artifact.parts)
            else:
                self._chars = 0
                self._count(self.parts())
            return None
        parts = self._artifacts[name]
        self._count(artifact.parts)
        is_last = name == next(reversed(self._artifacts))
        if len(artifact.parts) == 1 and artifact.parts[0].kind == "text" and parts and parts[-1].part.kind == "text":
            parts[-1].add(artifact.parts[0].content)
            return str(artifact.parts[0].content) if is_last else None
        if sum(map(len, self._artifacts.values())) + len(artifact.parts) > MAX_REMOTE_PARTS:
            raise ResultTooLargeError.content_free(f"{self._source}'s answer has more than {MAX_REMOTE_PARTS} parts.")
        parts += map(_GrowingPart, artifact.parts)
        return None

    def parts(self) -> tuple[RemotePart, ...]:
        """The parts of the answer: of its artifacts, or else of the message in the status."""
        if self.message is not None:
            return self.message.parts
        parts = tuple(part.whole for artifact in self._artifacts.values() for part in artifact)
        if not parts and self.status is not None and self.status.message is not None:
            return self.status.message.parts
        return parts

    def text(self) -> str:
        """The text of the artifacts so far."""
        whole = (part.whole for artifact in self._artifacts.values() for part in artifact)
        return "\n".join(part.content for part in whole if part.kind == "text")

    def _count(self, parts: tuple[RemotePart, ...]) -> None:
        self._chars += sum(len(part.content) for part in parts if isinstance(part.content, str))
        if self._chars > self._max_chars:
            raise ResultTooLargeError.content_free(f"{self._source}'s answer is larger than its max_answer_bytes.")


def output_of(parts: tuple[RemotePart, ...], about: dict[str, Json]) -> ToolOutput:
    """An answer's text, data and files. ``about`` are further fields of the data."""
    data = [part.content for part in parts if part.kind == "data"]
    texts = [part.content for part in parts if part.kind == "text"]
    only_data = len(data) == 1 and not texts
    structured: dict[str, Json] = {"answer": data[0] if only_data else "\n".join(texts), **about}
    if data and not only_data:
        structured["data"] = data
    output = read_answer(list(map(_block, _files_and_texts(parts))), structured)
    return output if isinstance(output, ToolOutput) else ToolOutput(output, structured)


def _files_and_texts(parts: tuple[RemotePart, ...]) -> Iterator[RemotePart]:
    return (part for part in parts if part.kind != "data")


def _block(part: RemotePart) -> dict[str, Any]:
    """A part as a content block of MCP; a link is passed on, never followed."""
    if part.kind == "text":
        return {"type": "text", "text": part.content}
    name = part.name or "file"
    media_type = part.media_type or "application/octet-stream"
    if part.kind == "url":
        return {"type": "resource_link", "uri": part.content, "name": name, "mimeType": media_type}
    kind = media_type.partition("/")[0]
    if kind in _MEDIA:
        return {"type": kind, "mimeType": media_type, "data": part.content}
    return {"type": "resource", "resource": {"uri": f"a2a:{name}", "mimeType": media_type, "blob": part.content}}
