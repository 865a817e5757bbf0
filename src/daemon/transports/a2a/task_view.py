"""The state of an A2A task at one moment, from its stored row and the state of its call. Pure, except for the time."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ....protocol.a2a.a2a_task import (
    COMPLETED,
    FAILED,
    WORKING,
    answer_message,
    artifact_of,
    artifact_update,
    error_message,
    input_message,
    last_messages,
    state_of_requests,
    state_of_result,
    status_update,
    task_of,
)
from ....protocol.a2a.a2a_version import is_final, is_interrupted
from ....protocol.error_codes import ErrorCode, ToolError
from ....protocol.input_request import InputRequest
from ....store import A2AEvent, A2ATaskRow
from ....tools import CallInfo

MAX_HISTORY_BYTES: Final = 256 * 1024
"""The maximum bytes of a task's messages, as JSON; beyond it the oldest are deleted."""
_NO_MESSAGES: Final = b"[]"
_GONE: Final = ToolError(
    ErrorCode.RESULT_EXPIRED, "The task has ended, and its result is no longer stored.", "maybe", retryable=False
)


class _StoredMessage(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    message_id: str


messages_of: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
"""A task's history → its messages, encoded."""
_ids_of: Final = msgspec.json.Decoder(list[_StoredMessage]).decode


class TaskView(msgspec.Struct, frozen=True, gc=False):
    """A task at one moment."""

    row: A2ATaskRow
    requests: tuple[InputRequest, ...] = ()
    """The open requests for a person."""
    message: dict[str, Any] | None = None
    artifacts: tuple[msgspec.Raw, ...] = ()
    """Encoded."""

    @property
    def state(self) -> str:
        return self.row.state

    @property
    def waits(self) -> bool:
        """Whether it has ended, or waits for its client."""
        return is_final(self.state) or is_interrupted(self.state)

    def has_message(self, message_id: str) -> bool:
        """Whether its history has the message with this id."""
        return any(stored.message_id == message_id for stored in _ids_of(self.row.history))

    @property
    def size(self) -> int:
        """The size of its messages and artifacts in bytes."""
        return len(self.row.history) + sum(memoryview(artifact).nbytes for artifact in self.artifacts)

    def as_answer(self) -> dict[str, Any]:
        """The answer of an agent that answers with messages: the message if the task is completed; otherwise the task,
        which says what happened or what input it needs.
        """
        if self.state != COMPLETED or not self.artifacts:
            return {"task": self.as_task()}
        return {"message": answer_message(self.row.context_id, self.row.id, self.artifacts[0])}

    def as_task(self, history_length: int | None = None, *, with_artifacts: bool = True) -> dict[str, Any]:
        """The task in the format of A2A 1.0, with encoded artifacts and messages."""
        return task_of(
            self.row.id,
            self.row.context_id,
            self.state,
            self.row.changed_at,
            message=self.message,
            artifacts=self.artifacts if with_artifacts else (),
            history=_newest(self.row.history, history_length),
        )


def view_of(row: A2ATaskRow, info: CallInfo, now: float, files: Sequence[dict[str, Any]] = ()) -> TaskView:
    """The task according to the state of its call. If the state has changed, the row has the new state and the events
    to store. ``files``: the parts of the retained results that its answer names.

    Call it in a thread if the result is long.
    """
    if info.is_unfinished:
        if info.state != "paused":
            return _changed(TaskView(_in_state(row, WORKING, now)), row)
        message = input_message(info.requests, row.context_id, row.id)
        return _changed(TaskView(_in_state(row, state_of_requests(info.requests), now), info.requests, message), row)
    if info.result is None:
        ended = row if row.ended else _in_state(row, FAILED, now)
        return _changed(TaskView(ended, message=error_message(_GONE, row.context_id, row.id)), row)
    error = info.result.error
    ended = _in_state(row, state_of_result(error), now)
    if error is not None:
        return _changed(TaskView(ended, message=error_message(error, row.context_id, row.id)), row)
    artifact = msgspec.Raw(msgspec.json.encode(artifact_of(info.result, files)))
    return _changed(TaskView(ended, artifacts=(artifact,)), row)


def with_events(row: A2ATaskRow, events: Sequence[dict[str, Any]], *, partial: bool = False) -> A2ATaskRow:
    """The row with further events to store."""
    numbered = enumerate(events, row.last_event + 1)
    new = tuple(A2AEvent(number, msgspec.json.encode(event), partial) for number, event in numbered)
    return msgspec.structs.replace(row, last_event=row.last_event + len(new), new_events=new)


def encode_history(history: Sequence[dict[str, Any] | msgspec.Raw]) -> bytes:
    """The newest messages that fit into ``MAX_HISTORY_BYTES``, as JSON."""
    kept: list[msgspec.Raw] = []
    size = 2
    for message in reversed(history):
        encoded = msgspec.json.encode(message)
        size += len(encoded) + 1
        if size > MAX_HISTORY_BYTES:
            break
        kept.insert(0, msgspec.Raw(encoded))
    return msgspec.json.encode(kept)


def encoded_bytes(fields: Mapping[str, Any]) -> int:
    """The size of the encoded parts of a task or an event, in bytes."""
    values = [part for value in fields.values() for part in (value if isinstance(value, list) else (value,))]
    return sum(memoryview(value).nbytes for value in values if isinstance(value, msgspec.Raw))


def _newest(history: bytes, length: int | None) -> msgspec.Raw | None:
    """The newest messages, as many as were requested; None if there are none."""
    if length == 0 or history == _NO_MESSAGES:
        return None
    if length is None:
        return msgspec.Raw(history)
    return msgspec.Raw(msgspec.json.encode(last_messages(messages_of(history), length)))


def _changed(view: TaskView, before: A2ATaskRow) -> TaskView:
    if view.row == before:
        return view
    row = view.row
    events = [artifact_update(row.id, row.context_id, artifact) for artifact in view.artifacts]
    events.append(status_update(row.id, row.context_id, row.state, row.changed_at, view.message))
    return msgspec.structs.replace(view, row=with_events(row, events))


def _in_state(row: A2ATaskRow, state: str, now: float) -> A2ATaskRow:
    if row.state == state:
        return row
    return msgspec.structs.replace(row, state=state, changed_at=now, ended=is_final(state))
