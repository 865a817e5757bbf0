"""The objects of HTTP+JSON in A2A 0.3, made from those of 1.0 and back. Pure.

Version 0.3 has two JSON forms: that of JSON-RPC (``a2a_version.py``), and that of its proto file, which HTTP+JSON uses.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

_MESSAGES: Final = ("message", "msg")
_CODES: Final[Mapping[int, int]] = {400: -32602, 404: -32001, 409: -32002, 415: -32005, 422: -32602, 501: -32004}
"""A2A's codes for statuses of HTTP: errors of 0.3 name no reason."""


def message_to_http_0_3(message: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a message of 1.0 as the body of ``message:send`` has it."""
    parts = [_part_to_proto(part) for part in message["parts"]]
    return {**{name: value for name, value in message.items() if name != "parts"}, "content": parts}


def from_http_0_3(value: Any) -> Any:
    """Returns an answer or an event in the form of 1.0. What is not in the form of 0.3 is returned as it is."""
    if not isinstance(value, dict):
        return value
    for name in _MESSAGES:
        if isinstance(value.get(name), dict):
            return {"message": _message_from_proto(value[name])}
    task, status, artifact = value.get("task"), value.get("statusUpdate"), value.get("artifactUpdate")
    if isinstance(task, dict):
        return {"task": _task_from_proto(task)}
    if isinstance(status, dict):
        return {"statusUpdate": _with_status(status)}
    if isinstance(artifact, dict):
        return {"artifactUpdate": {**artifact, "artifact": _artifact_from_proto(artifact.get("artifact"))}}
    return _task_from_proto(value)


def error_of_http_0_3(value: Any, status: int) -> tuple[int, str] | None:
    """Returns A2A's code and the message of an error; None if the body is not an error of 0.3."""
    if not isinstance(value, dict) or not isinstance(value.get("message"), str) or status not in _CODES:
        return None
    return _CODES[status], value["message"]


def _part_to_proto(part: Mapping[str, Any]) -> dict[str, Any]:
    if "data" in part:
        data = part["data"]
        return {"data": {"data": data if isinstance(data, dict) else {"value": data}}}
    if "text" in part:
        return {"text": part["text"]}
    # The SDKs put base64 into a field of bytes, which JSON encodes once more.
    raw = {"fileWithBytes": base64.b64encode(part["raw"].encode()).decode()} if "raw" in part else {}
    named = {"fileWithUri": part.get("url"), "mimeType": part.get("mediaType"), "name": part.get("filename")}
    return {"file": {**raw, **{name: value for name, value in named.items() if value is not None}}}


def _task_from_proto(task: Mapping[str, Any]) -> dict[str, Any]:
    artifacts = task.get("artifacts")
    listed = [_artifact_from_proto(each) for each in artifacts] if isinstance(artifacts, list) else artifacts
    return {**_with_status(task), "artifacts": listed}


def _with_status(table: Mapping[str, Any]) -> dict[str, Any]:
    status = table.get("status")
    if isinstance(status, dict):
        message = status.get("message", status.get("update"))
        status = {**status, "message": _message_from_proto(message)}
    return {**table, "status": status}


def _message_from_proto(message: Any) -> Any:
    if not isinstance(message, dict):
        return message
    return {**message, "parts": _parts_from_proto(message.get("content", message.get("parts")))}


def _artifact_from_proto(artifact: Any) -> Any:
    return {**artifact, "parts": _parts_from_proto(artifact.get("parts"))} if isinstance(artifact, dict) else artifact


def _parts_from_proto(parts: Any) -> Any:
    return [_part_from_proto(part) for part in parts] if isinstance(parts, list) else parts


def _part_from_proto(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    data, file = part.get("data"), part.get("file")
    if isinstance(data, dict) and "data" in data:
        return {"data": data["data"]}
    if isinstance(file, dict):
        content = {"url": file["fileWithUri"]} if "fileWithUri" in file else {"raw": _base64(file)}
        return {**content, "mediaType": file.get("mimeType"), "filename": file.get("name")}
    return part


def _base64(file: Mapping[str, Any]) -> str:
    """A file's bytes in base64: as it is, or what the SDKs have encoded twice."""
    sent = file.get("fileWithBytes")
    if not isinstance(sent, str):
        return ""
    try:
        once = base64.b64decode(sent, validate=True)
        base64.b64decode(once, validate=True)
    except (binascii.Error, ValueError):
        return sent
    return once.decode("ascii")
