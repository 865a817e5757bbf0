"""The versions of A2A: reads the version of a request, and converts objects between 0.3 and 1.0. Pure.

Requests are converted on arrival, and answers before they are sent; the code in between uses the objects of 1.0.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from .a2a_error import VERSION, A2AError, invalid_field
from .a2a_request import MAX_PARTS

VERSION_HEADER: Final = "a2a-version"
A2AVersion = Literal["1.0", "0.3"]
VERSIONS: Final[tuple[A2AVersion, ...]] = ("1.0", "0.3")

_OPERATIONS: Final[Mapping[str, str]] = {
    "message/send": "SendMessage",
    "message/stream": "SendStreamingMessage",
    "tasks/get": "GetTask",
    "tasks/cancel": "CancelTask",
    "tasks/resubscribe": "SubscribeToTask",
    "agent/getAuthenticatedExtendedCard": "GetExtendedAgentCard",
    "tasks/pushNotificationConfig/set": "CreateTaskPushNotificationConfig",
    "tasks/pushNotificationConfig/get": "GetTaskPushNotificationConfig",
    "tasks/pushNotificationConfig/list": "ListTaskPushNotificationConfigs",
    "tasks/pushNotificationConfig/delete": "DeleteTaskPushNotificationConfig",
}
"""The methods of 0.3 and their equivalents in 1.0."""
_NEW_OPERATIONS: Final = frozenset({*_OPERATIONS.values(), "ListTasks"})
_STATE: Final = "TASK_STATE_"
_ROLE: Final = "ROLE_"


def version_of(requested: str) -> A2AVersion:
    """The version that a request names in its header or query; 0.3 if it names none, as the specification requires.
    Patch numbers are ignored.

    Raises:
        A2AError: the version is not supported.
    """
    wanted = ".".join(requested.strip().split(".")[:2])
    if not wanted:
        return "0.3"
    for version in VERSIONS:
        if wanted == version:
            return version
    message = f"A2A-Version {requested[:40]!r} is not supported; this agent has {' and '.join(VERSIONS)}."
    raise A2AError(VERSION, message, metadata={"supportedVersions": ", ".join(VERSIONS)})


def operation_of(method: str, version: A2AVersion) -> str | None:
    """The method of 1.0 for a method of this version; None if the version does not have it."""
    if version == "0.3":
        return _OPERATIONS.get(method)
    return method if method in _NEW_OPERATIONS else None


def methods_of(version: A2AVersion) -> list[str]:
    """The methods of a version."""
    return sorted(_OPERATIONS if version == "0.3" else _NEW_OPERATIONS)


def send_params_of_0_3(params: Mapping[str, Any]) -> dict[str, Any]:
    """Converts the parameters of ``message/send`` to those of ``SendMessage``.

    Raises:
        A2AError: a part is not valid in 0.3.
    """
    message = params.get("message")
    if not isinstance(message, dict):
        raise invalid_field("message", "must be an object")
    configuration = params.get("configuration") or {}
    if not isinstance(configuration, dict):
        raise invalid_field("configuration", "must be an object")
    role = message.get("role")
    parts = message.get("parts")
    return {
        "message": {
            **{name: value for name, value in message.items() if name != "kind"},
            "role": f"{_ROLE}{role.upper()}" if isinstance(role, str) else role,
            # Longer lists are refused later.
            "parts": [_part_of_0_3(part, number) for number, part in enumerate(parts)]
            if isinstance(parts, list) and len(parts) <= MAX_PARTS
            else parts,
        },
        "configuration": {
            "returnImmediately": configuration.get("blocking") is False,
            "historyLength": configuration.get("historyLength"),
            "taskPushNotificationConfig": configuration.get("pushNotificationConfig"),
        },
    }


def _part_of_0_3(part: object, number: int) -> dict[str, Any]:
    path = f"message.parts[{number}]"
    if not isinstance(part, dict):
        raise invalid_field(path, "must be an object")
    metadata = {"metadata": part["metadata"]} if part.get("metadata") is not None else {}
    match part.get("kind"):
        case "text":
            return {"text": part.get("text"), **metadata}
        case "data":
            return {"data": part.get("data"), **metadata}
        case "file":
            file = part.get("file")
            file = file if isinstance(file, dict) else {}
            content = {"url": file["uri"]} if "uri" in file else {"raw": file.get("bytes", "")}
            return {**content, "mediaType": file.get("mimeType"), "filename": file.get("name"), **metadata}
        case other:
            raise invalid_field(f"{path}.kind", f"must be text or data, not {str(other)[:40]!r}")


def to_0_3(answer: Mapping[str, Any]) -> dict[str, Any]:
    """A ``StreamResponse`` or an answer of ``SendMessage`` in the form of 0.3. In 1.0, both have a single field, which
    may be encoded.
    """
    ((kind, encoded),) = answer.items()
    value = _decoded(encoded)
    match kind:
        case "task":
            return task_to_0_3(value)
        case "message":
            return message_to_0_3(value)
        case "statusUpdate":
            final = is_final(value["status"]["state"]) or is_interrupted(value["status"]["state"])
            return {**value, "kind": "status-update", "status": _status_to_0_3(value["status"]), "final": final}
        case _:
            return {**value, "kind": "artifact-update", "artifact": _artifact_to_0_3(value["artifact"])}


def task_to_0_3(task: Mapping[str, Any]) -> dict[str, Any]:
    """Converts a task to 0.3. Its artifacts and messages may be encoded."""
    changed: dict[str, Any] = {"kind": "task", "status": _status_to_0_3(task["status"])}
    if "artifacts" in task:
        changed["artifacts"] = [_artifact_to_0_3(_decoded(artifact)) for artifact in task["artifacts"]]
    if "history" in task:
        changed["history"] = [message_to_0_3(message) for message in _decoded(task["history"])]
    return {**task, **changed}


def message_to_0_3(message: Mapping[str, Any]) -> dict[str, Any]:
    """Converts a message to 0.3. Its parts may be encoded."""
    role = str(message["role"]).removeprefix(_ROLE).lower()
    return {**message, "kind": "message", "role": role, "parts": _parts_to_0_3(_decoded(message["parts"]))}


def is_final(state: str) -> bool:
    """Whether a task in this state of 1.0 has ended."""
    return state.removeprefix(_STATE) in {"COMPLETED", "FAILED", "CANCELED", "REJECTED"}


def is_interrupted(state: str) -> bool:
    """Whether a task in this state of 1.0 waits for its client."""
    return state.removeprefix(_STATE) in {"INPUT_REQUIRED", "AUTH_REQUIRED"}


def _decoded(value: Any) -> Any:
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value


def _status_to_0_3(status: Mapping[str, Any]) -> dict[str, Any]:
    state = status["state"].removeprefix(_STATE).lower().replace("_", "-")
    message = {"message": message_to_0_3(status["message"])} if "message" in status else {}
    return {**status, "state": state, **message}


def _artifact_to_0_3(artifact: Mapping[str, Any]) -> dict[str, Any]:
    return {**artifact, "parts": _parts_to_0_3(artifact["parts"])}


def _parts_to_0_3(parts: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [_part_to_0_3(part) for part in parts]


def _part_to_0_3(part: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {"metadata": part["metadata"]} if part.get("metadata") is not None else {}
    if "text" in part:
        return {"kind": "text", "text": part["text"], **metadata}
    if "data" in part:
        data = part["data"]
        return {"kind": "data", "data": data if isinstance(data, dict) else {"value": data}, **metadata}
    content = {"uri": part["url"]} if "url" in part else {"bytes": part["raw"]}
    named = {"mimeType": part.get("mediaType"), "name": part.get("filename")}
    return {
        "kind": "file",
        "file": content | {name: value for name, value in named.items() if value is not None},
        **metadata,
    }
