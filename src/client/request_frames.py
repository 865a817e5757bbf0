"""The frames that the client sends, with no field that it has nothing to say in. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ..protocol.error_codes import InvalidArgumentsError
from ..protocol.frames import encode


def hello(
    *,
    session_id: str | None,
    token: str | None,
    features: Sequence[str],
    client: Mapping[str, str | None],
    toolset: str | None = None,
    resume_key: str | None = None,
) -> bytes:
    """The first frame. Without features and toolset it is a plain client's: ``session_id`` and ``token`` alone."""
    frame: dict[str, Any] = {"op": "hello", "session_id": session_id, "token": token}
    if features:
        frame["features"] = list(features)
        frame["client"] = {key: value for key, value in client.items() if value is not None}
    if toolset is not None:
        frame["toolset"] = toolset
    if resume_key is not None:
        frame["resume"] = {"key": resume_key}
    return encode(frame)


class CallFrame(msgspec.Struct, frozen=True, gc=False):
    """A call as it goes out, once or again: to the daemon, it is the same call however much time it has left."""

    body: bytes
    """Its frame without a time."""
    deadline: float | None
    """On the loop's clock; None leaves it to the tool."""
    outlasts: bool
    """Whether it is waited for over the end of a connection."""

    def frame(self, now: float) -> bytes:
        """The frame to send now. Past the deadline it has a moment, in which the daemon says that nothing ran."""
        if self.deadline is None:
            return self.body
        left_ms = max(round((self.deadline - now) * 1000, 3), 1.0)
        return b'%b,"timeout_ms":%b}' % (self.body[:-1], encode(left_ms))


def call_tool(request_id: str, name: str, arguments: Mapping[str, Any] | None) -> bytes:
    """One call, whose deadline is left to the tool.

    Raises:
        InvalidArgumentsError: the arguments hold what JSON cannot.
    """
    frame: dict[str, Any] = {
        "op": "call_tool",
        "request_id": request_id,
        "name": name,
        "arguments": {} if arguments is None else arguments,
    }
    try:
        return encode(frame)
    except (TypeError, ValueError, RecursionError) as exc:
        raise InvalidArgumentsError(f"The arguments of {name!r} cannot be written as JSON: {exc}.") from exc


def ask(op: str, request_id: str) -> bytes:
    """``cancel``, ``list_tools``, ``ping`` or ``health``."""
    return encode({"op": op, "request_id": request_id})


def about(op: str, request_ids: Sequence[str]) -> bytes:
    """``call_status`` or ``acknowledge``."""
    return encode({"op": op, "request_ids": request_ids})
