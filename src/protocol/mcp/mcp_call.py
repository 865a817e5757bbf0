"""``tools/call`` as a call, and the answers that are none of a tool's. Pure."""

import math
from typing import Any, Final

from ..error_codes import ErrorCode, ToolError
from ..frames import canonical_tool_name
from ..tool_call import Progress, RequestId, ToolCall
from .json_rpc import INVALID_PARAMS, MessageProblem, RpcRequest

TIMEOUT_KEY: Final = "toold/timeout_ms"
"""In a request's ``_meta``: what ``timeout_ms`` of a ``call_tool`` is."""


def parse_call(request: RpcRequest, call_id: RequestId, size: int) -> ToolCall | MessageProblem:
    """The call that a ``tools/call`` of ``size`` bytes asks for, under an id of its own: a JSON-RPC id is only its
    client's.
    """
    params = request.params
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str) or not name:
        return MessageProblem(INVALID_PARAMS, "params.name must be the name of a tool; tools/list has them.")
    if arguments is not None and not isinstance(arguments, dict):
        return MessageProblem(INVALID_PARAMS, "params.arguments must be an object, or be left out.")
    meta: Any = params.get("_meta")
    timeout_ms = meta.get(TIMEOUT_KEY) if isinstance(meta, dict) else None
    if timeout_ms is not None and not _is_duration(timeout_ms):
        return MessageProblem(
            INVALID_PARAMS, f"params._meta[{TIMEOUT_KEY!r}] must be a number of milliseconds above 0."
        )
    return ToolCall(call_id, canonical_tool_name(name), arguments or {}, timeout_ms, size)


def request_error(error: ToolError | None) -> MessageProblem | None:
    """The problem where a call did not start and it is the request's fault by the specification: a tool that is not
    there. All else is an answer, for a model to read.
    """
    if error is None or error.code != ErrorCode.TOOL_NOT_FOUND:
        return None
    return MessageProblem(INVALID_PARAMS, error.message, error)


def _is_duration(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


class ProgressCounter:
    """Progress has to grow with every notification, whatever the tool counts."""

    def __init__(self) -> None:
        self._last = -1.0
        self._tool_counts = False

    def count(self, progress: Progress, token: str | int) -> dict[str, Any]:
        """The parameters of the next ``notifications/progress``.

        Where the tool counts nothing, its reports are counted. Where it does, its number is taken; one that has not
        grown becomes the next that a double can hold.
        """
        self._tool_counts = self._tool_counts or progress.done is not None
        if not self._tool_counts:
            self._last = max(self._last, 0.0) + 1
        elif progress.done is not None and progress.done > self._last:
            self._last = progress.done
        else:
            self._last = math.nextafter(self._last, math.inf)
        params: dict[str, Any] = {"progressToken": token, "progress": self._last, "message": progress.message}
        if progress.total is not None:
            params["total"] = progress.total
        return params
