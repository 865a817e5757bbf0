"""The frames that the client sends, with no field that it has nothing to say in. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..protocol.errors import InvalidArgumentsError
from ..protocol.frames import encode


def hello(
    *, session_id: str | None, token: str | None, features: Sequence[str], client: Mapping[str, str | None]
) -> bytes:
    """The first frame. Without features it is a plain client's: ``session_id`` and ``token``, nothing beyond."""
    frame: dict[str, Any] = {"op": "hello", "session_id": session_id, "token": token}
    if features:
        frame["features"] = list(features)
        frame["client"] = {key: value for key, value in client.items() if value is not None}
    return encode(frame)


def call_tool(request_id: str, name: str, arguments: Mapping[str, Any] | None, timeout_s: float | None) -> bytes:
    """One call; ``timeout_s`` None leaves the deadline to the tool.

    Raises:
        InvalidArgumentsError: the arguments hold what JSON cannot.
    """
    frame: dict[str, Any] = {
        "op": "call_tool",
        "request_id": request_id,
        "name": name,
        "arguments": {} if arguments is None else arguments,
    }
    if timeout_s is not None:
        frame["timeout_ms"] = round(timeout_s * 1000, 3)
    try:
        return encode(frame)
    except (TypeError, ValueError, RecursionError) as exc:
        raise InvalidArgumentsError(f"The arguments of {name!r} cannot be written as JSON: {exc}.") from exc


def ask(op: str, request_id: str) -> bytes:
    """``cancel``, ``list_tools``, ``ping`` or ``health``."""
    return encode({"op": op, "request_id": request_id})
