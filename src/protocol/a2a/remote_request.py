"""The requests of a client to a remote agent, for each version and binding. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import msgspec

from .a2a_version import message_to_0_3
from .remote_card import RemoteInterface

ACCEPTED_MODES: Final = ["text/plain", "application/json", "image/*", "audio/*", "application/octet-stream"]
_METHODS_0_3: Final[Mapping[str, str]] = {
    "SendMessage": "message/send",
    "SendStreamingMessage": "message/stream",
    "GetTask": "tasks/get",
    "CancelTask": "tasks/cancel",
    "SubscribeToTask": "tasks/resubscribe",
}


class RemoteHttpRequest(NamedTuple):
    """An HTTP request to an agent."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None


def outgoing_message(
    message_id: str, parts: Sequence[Mapping[str, Any]], *, context_id: str = "", task_id: str = "", skill: str = ""
) -> dict[str, Any]:
    """A message to an agent in the form of A2A 1.0. ``skill`` names the skill that the sender expects, in the
    metadata.
    """
    optional = {"contextId": context_id, "taskId": task_id}
    named = {name: value for name, value in optional.items() if value}
    metadata = {"metadata": {"skillId": skill}} if skill else {}
    return {"messageId": message_id, "role": "ROLE_USER", "parts": list(parts), **named, **metadata}


def send_request(interface: RemoteInterface, message: Mapping[str, Any], *, stream: bool) -> RemoteHttpRequest:
    """The request that sends a message. The answer is a stream if ``stream`` is true."""
    if interface.version == "0.3":
        params: dict[str, Any] = {
            "message": message_to_0_3(message),
            "configuration": {"acceptedOutputModes": ACCEPTED_MODES, "blocking": False},
        }
    else:
        configuration = {"acceptedOutputModes": ACCEPTED_MODES, "returnImmediately": True, "historyLength": 0}
        params = {"message": message, "configuration": configuration}
    if interface.binding == "HTTP+JSON":
        return _rest(interface, "POST", "/message:stream" if stream else "/message:send", params, stream=stream)
    return _rpc(interface, "SendStreamingMessage" if stream else "SendMessage", params, stream=stream)


def get_request(interface: RemoteInterface, task_id: str) -> RemoteHttpRequest:
    """The request that reads a task without its messages."""
    if interface.binding == "HTTP+JSON":
        return _rest(interface, "GET", f"/tasks/{quote(task_id, safe='')}?historyLength=0", None)
    return _rpc(interface, "GetTask", {"id": task_id, "historyLength": 0})


def subscribe_request(interface: RemoteInterface, task_id: str) -> RemoteHttpRequest:
    """The request for a new stream of a task, which begins with the task's current state."""
    if interface.binding == "HTTP+JSON":
        return _rest(interface, "GET", f"/tasks/{quote(task_id, safe='')}:subscribe", None, stream=True)
    return _rpc(interface, "SubscribeToTask", {"id": task_id}, stream=True)


def cancel_request(interface: RemoteInterface, task_id: str) -> RemoteHttpRequest:
    """The request that cancels a task."""
    if interface.binding == "HTTP+JSON":
        return _rest(interface, "POST", f"/tasks/{quote(task_id, safe='')}:cancel", {})
    return _rpc(interface, "CancelTask", {"id": task_id})


def _rpc(
    interface: RemoteInterface, method: str, params: Mapping[str, Any], *, stream: bool = False
) -> RemoteHttpRequest:
    if interface.version == "0.3":
        method = _METHODS_0_3[method]
    elif interface.tenant:
        params = {**params, "tenant": interface.tenant}
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    return RemoteHttpRequest("POST", interface.url, _headers(interface, "application/json", stream=stream), body)


def _rest(
    interface: RemoteInterface, method: str, path: str, params: Mapping[str, Any] | None, *, stream: bool = False
) -> RemoteHttpRequest:
    tenant = f"/{quote(interface.tenant, safe='')}" if interface.tenant else ""
    headers = _headers(interface, "application/json", stream=stream)
    body = None if params is None else msgspec.json.encode(params)
    return RemoteHttpRequest(method, f"{interface.url}{tenant}{path}", headers, body)


def _headers(interface: RemoteInterface, content_type: str, *, stream: bool) -> dict[str, str]:
    return {
        "Content-Type": content_type,
        "Accept": "text/event-stream, application/json" if stream else "application/json",
        "A2A-Version": interface.version,
    }
