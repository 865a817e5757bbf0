"""``tools/call`` requests, their progress notifications, and the errors that are not tool results. Pure."""

import math
from typing import Any, Final

import msgspec

from ..error_codes import ErrorCode, ToolError
from ..frames import canonical_tool_name
from ..json_rpc import INVALID_PARAMS, MISSING_CLIENT_CAPABILITY, MessageProblem, RpcRequest
from ..questions.client_question import REQUIRED_KEY, required_capabilities
from ..request_meta import passed_meta
from ..tool_call import Progress, RequestId, ToolCall
from ..trace_context import TRACEPARENT, usable_traceparent
from .mcp_revision import McpRevision

TIMEOUT_KEY: Final = "toold/timeout_ms"
"""The key in a request's ``_meta`` for ``timeout_ms`` of ``call_tool``."""


_NOT_ARGUMENTS: Final = frozenset({"_meta", "requestState", "inputResponses"})
"""Parameters of the request or the round. They are not arguments, which are the same in all rounds of a call."""


def parse_call(
    request: RpcRequest,
    call_id: RequestId,
    size: int,
    traceparent: str | None = None,
    answers: tuple[str, ...] = (),
) -> ToolCall | MessageProblem:
    """Parses a ``tools/call`` of ``size`` bytes. The call gets its own id, since JSON-RPC ids are unique per client
    only. ``traceparent`` comes from the HTTP request; a ``traceparent`` in ``_meta`` takes precedence. ``answers`` are
    the kinds of questions that the client answers.
    """
    params = request.params
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str) or not name:
        return MessageProblem(INVALID_PARAMS, "params.name must be the name of a tool; tools/list lists them.")
    if arguments is not None and not isinstance(arguments, dict):
        return MessageProblem(INVALID_PARAMS, "params.arguments must be an object or absent.")
    call = _call(request, call_id, canonical_tool_name(name), arguments or {}, size, traceparent)
    return msgspec.structs.replace(call, answers=answers) if answers and isinstance(call, ToolCall) else call


def parse_method_call(
    request: RpcRequest,
    call_id: RequestId,
    size: int,
    traceparent: str | None = None,
    answers: tuple[str, ...] = (),
) -> ToolCall | MessageProblem:
    """Parses a request whose method is called like a tool, with its parameters as arguments. ``answers`` is as for
    ``parse_call``.
    """
    arguments = {name: value for name, value in request.params.items() if name not in _NOT_ARGUMENTS}
    call = _call(request, call_id, request.method, arguments, size, traceparent)
    return msgspec.structs.replace(call, answers=answers) if answers and isinstance(call, ToolCall) else call


def _call(
    request: RpcRequest, call_id: RequestId, name: str, arguments: dict[str, Any], size: int, traceparent: str | None
) -> ToolCall | MessageProblem:
    meta: Any = request.params.get("_meta")
    timeout_ms = meta.get(TIMEOUT_KEY) if isinstance(meta, dict) else None
    if timeout_ms is not None and not _is_duration(timeout_ms):
        return MessageProblem(
            INVALID_PARAMS, f"params._meta[{TIMEOUT_KEY!r}] must be a positive number of milliseconds."
        )
    if isinstance(meta, dict):
        traceparent = meta.get(TRACEPARENT, traceparent)
    return ToolCall(
        call_id,
        name,
        arguments,
        timeout_ms,
        size,
        traceparent=None if traceparent is None else usable_traceparent(traceparent),
        meta=passed_meta(meta),
    )


def request_error(error: ToolError | None, revision: McpRevision) -> MessageProblem | None:
    """Returns the JSON-RPC error if the specification requires one instead of a tool result: for an unknown tool, and
    in the stateless revisions for a capability that the client has not declared. All other errors are results, for the
    model to read.
    """
    if error is None or error.code != ErrorCode.TOOL_NOT_FOUND:
        return missing_capability(error, revision)
    return MessageProblem(INVALID_PARAMS, error.message, error)


def missing_capability(error: ToolError | None, revision: McpRevision) -> MessageProblem | None:
    """Returns the JSON-RPC error for a call whose client has not declared a required capability (decision 121); None
    for other errors, and in revisions without this error.
    """
    required = None if error is None or not revision.stateless else required_capabilities(error.details)
    if error is None or required is None:
        return None
    data: dict[str, Any] = {**msgspec.to_builtins(error), REQUIRED_KEY: required}
    return MessageProblem(MISSING_CLIENT_CAPABILITY, error.message, data)


def _is_duration(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


class ProgressCounter:
    """Makes progress values that increase with every notification, as MCP requires, even if the tool's values do
    not.
    """

    def __init__(self) -> None:
        self._last = -1.0
        self._tool_counts = False

    def count(self, progress: Progress, token: str | int) -> dict[str, Any]:
        """Returns the parameters of the next ``notifications/progress``.

        If the tool reports no numbers, the notifications are counted. Otherwise the tool's number is used; if it has
        not increased, the next larger double is used.
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
