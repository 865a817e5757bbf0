"""Reads the parameters of each method of A2A 1.0. Pure.

Fields may have their JSON name (``messageId``) or their name in the specification's proto file (``message_id``),
because readers of ProtoJSON accept both.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from .a2a_error import invalid_field
from .file_reading import MAX_FILES, ReadFile, read_file

MAX_ID_CHARS: Final = 200
"""The maximum length of ids that clients choose: of messages, contexts and tasks."""

MAX_PARTS: Final = 1000
"""The maximum number of parts of a message. Each part is read, stored and written separately; 49,000 parts blocked the
event loop for 0.37 s (decision 54).
"""

_CAPITAL: Final = re.compile(r"[A-Z]")
_ROLES: Final = ("ROLE_USER", "user")
_FILES: Final = ("raw", "url")
_CONTENTS: Final = ("text", "data", *_FILES)


class A2AMessage(NamedTuple):
    """A message to an agent."""

    id: str
    prompt: str
    """Its texts, data and files, as the agent reads them."""
    data: tuple[Any, ...]
    """Its data parts."""
    text: str
    """Its text parts."""
    context_id: str | None
    task_id: str | None
    parts: msgspec.Raw
    """The message for the task's history, encoded, with the fields that agents read."""
    images: tuple[str, ...] = ()
    """Its images, as ``https:`` and ``data:`` URLs."""
    has_files: bool = False


class SendRequest(NamedTuple):
    """The parameters of ``SendMessage`` and ``SendStreamingMessage``."""

    message: A2AMessage
    return_immediately: bool
    history_length: int | None
    push: Mapping[str, Any] | None = None
    """The configuration of push notifications that the client requests."""


class TaskRequest(NamedTuple):
    """The parameters of the methods for one task."""

    task_id: str
    history_length: int | None = None


def read_send(params: Mapping[str, Any]) -> SendRequest:
    """Reads the parameters of ``SendMessage``. Call it in a thread if the request is long.

    Raises:
        A2AError: a parameter is invalid, or a part has an unknown kind.
    """
    message = _object(params, "message", "message", required=True)
    configuration = _object(params, "configuration", "configuration")
    return SendRequest(
        _message(message),
        _flag(configuration, "returnImmediately", "configuration"),
        history_length(configuration, "configuration"),
        _object(configuration, "taskPushNotificationConfig", "configuration.taskPushNotificationConfig") or None,
    )


def read_task(params: Mapping[str, Any]) -> TaskRequest:
    """Reads the parameters of ``GetTask``, ``CancelTask`` and ``SubscribeToTask``.

    Raises:
        A2AError: a parameter is invalid.
    """
    task_id = field_of(params, "id")
    if not isinstance(task_id, str) or not task_id:
        raise invalid_field("id", "must be the id of a task")
    return TaskRequest(task_id, history_length(params, ""))


def field_of(values: Mapping[str, Any], name: str) -> Any:
    """A field by its JSON name or its proto name; None if it is absent."""
    value = values.get(name)
    return values.get(_CAPITAL.sub(lambda found: f"_{found[0].lower()}", name)) if value is None else value


def history_length(values: Mapping[str, Any], path: str) -> int | None:
    """The field ``historyLength``.

    Raises:
        A2AError: the field is not an integer from 0.
    """
    length = field_of(values, "historyLength")
    if length is not None and (not isinstance(length, int) or isinstance(length, bool) or length < 0):
        raise invalid_field(_join(path, "historyLength"), "must be a number from 0")
    return length


def _message(message: Mapping[str, Any]) -> A2AMessage:
    message_id = _id(message, "messageId")
    if message_id is None:
        raise invalid_field("message.messageId", "is required; use an id that no other message of yours has")
    role = field_of(message, "role")
    if role not in _ROLES:
        raise invalid_field("message.role", "must be ROLE_USER: agents get messages from users")
    parts = field_of(message, "parts")
    if not isinstance(parts, list) or not parts:
        raise invalid_field("message.parts", "must be a list with at least one part")
    if len(parts) > MAX_PARTS:
        raise invalid_field("message.parts", f"has {len(parts)} parts, more than {MAX_PARTS}; join texts into one part")
    texts: list[str] = []
    data: list[Any] = []
    shown: list[str] = []
    kept: list[dict[str, Any]] = []
    files: list[ReadFile] = []
    for number, part in enumerate(parts):
        kind, content = _part(part, path := f"message.parts[{number}]")
        if kind in _FILES:
            if len(files) == MAX_FILES:
                raise invalid_field("message.parts", f"have more than {MAX_FILES} files; send them in several messages")
            media_type, filename = _words(part, "mediaType", path), _words(part, "filename", path)
            files.append(read_file(part, kind, media_type, filename, path))
            kept.append(files[-1].kept)
            shown.append(files[-1].prompt)
        elif kind == "text":
            kept.append({kind: content})
            texts.append(content)
            shown.append(content)
        else:
            encoded = msgspec.json.encode(content)
            kept.append({kind: msgspec.Raw(encoded)})
            data.append(content)
            shown.append(encoded.decode())
    return A2AMessage(
        id=message_id,
        prompt="\n\n".join(shown),
        data=tuple(data),
        text="\n\n".join(texts),
        context_id=_id(message, "contextId"),
        task_id=_id(message, "taskId"),
        parts=msgspec.Raw(msgspec.json.encode(kept)),
        images=tuple(file.image for file in files if file.image is not None),
        has_files=bool(files),
    )


def _part(part: object, path: str) -> tuple[str, Any]:
    """The kind and content of a part that agents can read."""
    if not isinstance(part, dict):
        raise invalid_field(path, "must be an object")
    kinds = [kind for kind in _CONTENTS if part.get(kind) is not None]
    if len(kinds) != 1:
        raise invalid_field(path, "must have one of text, data, raw and url")
    kind = kinds[0]
    if kind == "text" and not isinstance(part["text"], str):
        raise invalid_field(f"{path}.text", "must be text")
    return kind, part[kind]


def _words(part: Mapping[str, Any], name: str, path: str) -> str:
    value = field_of(part, name) or ""
    if not isinstance(value, str) or len(value) > MAX_ID_CHARS:
        raise invalid_field(f"{path}.{name}", f"must be text of up to {MAX_ID_CHARS} characters")
    return value


def _id(values: Mapping[str, Any], name: str) -> str | None:
    value = field_of(values, name)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > MAX_ID_CHARS or not value.isprintable():
        raise invalid_field(f"message.{name}", f"must be text of up to {MAX_ID_CHARS} printable characters")
    return value


def _object(values: Mapping[str, Any], name: str, path: str, *, required: bool = False) -> Mapping[str, Any]:
    value = field_of(values, name)
    if value is None and not required:
        return {}
    if not isinstance(value, dict):
        raise invalid_field(path, "must be an object")
    return value


def _flag(values: Mapping[str, Any], name: str, path: str) -> bool:
    value = field_of(values, name)
    if value is not None and not isinstance(value, bool):
        raise invalid_field(_join(path, name), "must be true or false")
    return bool(value)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
