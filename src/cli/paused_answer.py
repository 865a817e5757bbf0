"""The requests of a paused call for a person, and the commands that decide on them."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from .status_command import when


def is_paused(structured: object) -> bool:
    """Whether this is the answer of a call that paused, instead of its result."""
    return (
        isinstance(structured, Mapping)
        and structured.get("paused") is True
        and isinstance(structured.get("requests"), list)
    )


def paused_lines(call: Mapping[str, Any]) -> Iterator[str]:
    """The requests of a paused call for people, each with the commands that decide on it."""
    call_id = call["call_id"]
    until = f" until {when(call['expires_at'])}" if call.get("expires_at") else ""
    yield f"The call {call_id} is paused: it waits for a person{until}."
    for request in call["requests"]:
        command = f"toold agents decide {shlex.quote(call_id)} {shlex.quote(request['id'])}"
        yield ""
        if request["kind"] == "question":
            yield f"{request['id']}: it asks: {request.get('text', '')}"
            yield f"  {command} --answer TEXT"
            continue
        if request["kind"] == "credential":
            yield f"{request['id']}: it wants to call {request.get('tool')}. {request.get('text', '')}"
            yield "  It continues automatically once the credential is stored."
            yield f"  {command} --reject REASON"
            continue
        arguments = msgspec.json.encode(request.get("arguments") or {}).decode()
        yield f"{request['id']}: it wants to call {request.get('tool')} with {arguments}"
        if request.get("text"):
            yield f"  {request['text']}"
        yield f"  {command} --approve"
        yield f"  {command} --edit JSON"
        yield f"  {command} --reject REASON"
