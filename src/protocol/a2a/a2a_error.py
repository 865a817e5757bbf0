"""A2A's errors, as JSON-RPC and as HTTP+JSON. The codes are from sections 5.4 and 9.5 of the specification. Pure."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ..error_codes import CallError, ErrorCode, ToolError

_ANY: Final = "type.googleapis.com/google.rpc."
_DOMAIN: Final = "a2a-protocol.org"
_OWN_DOMAIN: Final = "toold"
"""The domain of errors for which A2A has no name. Their reason is an ``ErrorCode``."""

_MESSAGE_ID: Final = "message.messageId"
_ID_IN_USE: Final = "belongs to an earlier message with different content; send this message with a new messageId."


class A2AErrorKind(NamedTuple):
    """One kind of error, as each binding names it."""

    code: int
    """JSON-RPC."""
    status: int
    """HTTP."""
    grpc: str
    """The name of the status in the body of HTTP+JSON."""
    reason: str | None = None
    """The reason in ``ErrorInfo``; None for the errors of JSON-RPC itself."""


PARSE: Final = A2AErrorKind(-32700, 400, "INVALID_ARGUMENT")
INVALID_REQUEST: Final = A2AErrorKind(-32600, 400, "INVALID_ARGUMENT")
UNKNOWN_METHOD: Final = A2AErrorKind(-32601, 404, "UNIMPLEMENTED")
INVALID_PARAMS: Final = A2AErrorKind(-32602, 400, "INVALID_ARGUMENT")
INTERNAL: Final = A2AErrorKind(-32603, 500, "INTERNAL")
TASK_NOT_FOUND: Final = A2AErrorKind(-32001, 404, "NOT_FOUND", "TASK_NOT_FOUND")
TASK_NOT_CANCELABLE: Final = A2AErrorKind(-32002, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE")
PUSH_NOT_SUPPORTED: Final = A2AErrorKind(-32003, 400, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED")
UNSUPPORTED_OPERATION: Final = A2AErrorKind(-32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION")
CONTENT_TYPE: Final = A2AErrorKind(-32005, 400, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED")
VERSION: Final = A2AErrorKind(-32009, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED")

_OF_CALLS: Final[Mapping[str, A2AErrorKind]] = {
    ErrorCode.VALIDATION_ERROR: INVALID_PARAMS,
    ErrorCode.INVALID_REQUEST: INVALID_PARAMS,
    ErrorCode.REQUEST_ID_CONFLICT: INVALID_PARAMS,
    ErrorCode.PERMISSION_DENIED: A2AErrorKind(-32000, 403, "PERMISSION_DENIED"),
    ErrorCode.TOOL_NOT_FOUND: A2AErrorKind(-32000, 404, "NOT_FOUND"),
    ErrorCode.OVER_CAPACITY: A2AErrorKind(-32000, 429, "RESOURCE_EXHAUSTED"),
    ErrorCode.RATE_LIMITED: A2AErrorKind(-32000, 429, "RESOURCE_EXHAUSTED"),
    ErrorCode.SERVICE_UNAVAILABLE: A2AErrorKind(-32000, 503, "UNAVAILABLE"),
}
"""Errors of calls, except internal errors. -32000 is JSON-RPC's code for errors that the server defines."""


class A2AError(Exception):
    """A request that is answered with an error."""

    def __init__(
        self,
        kind: A2AErrorKind,
        message: str,
        *,
        fields: Mapping[str, str] | None = None,
        metadata: Mapping[str, str] | None = None,
        own_reason: str | None = None,
        retry_after_ms: int | None = None,
    ) -> None:
        """``fields`` maps each wrong field to its problem; ``own_reason`` is the ``ErrorCode`` if A2A does not name the
        error.
        """
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.retry_after_ms = retry_after_ms
        self._fields = fields or {}
        self._metadata = metadata or {}
        self._own_reason = own_reason

    @property
    def details(self) -> list[dict[str, Any]]:
        """The objects of ``google.rpc`` that describe the error."""
        details: list[dict[str, Any]] = []
        reason = self.kind.reason or self._own_reason
        if reason is not None:
            domain = _DOMAIN if self.kind.reason else _OWN_DOMAIN
            info = {"@type": f"{_ANY}ErrorInfo", "reason": reason, "domain": domain, "metadata": dict(self._metadata)}
            details.append(info)
        if self._fields:
            violations = [{"field": field, "description": problem} for field, problem in self._fields.items()]
            details.append({"@type": f"{_ANY}BadRequest", "fieldViolations": violations})
        if self.retry_after_ms is not None:
            details.append({"@type": f"{_ANY}RetryInfo", "retryDelay": f"{self.retry_after_ms / 1000:.3f}s"})
        return details

    def http_body(self) -> dict[str, Any]:
        """The body of the error in HTTP+JSON."""
        error = {"code": self.kind.status, "status": self.kind.grpc, "message": self.message, "details": self.details}
        return {"error": error}


def invalid_field(field: str, problem: str) -> A2AError:
    """The error for a field of the request."""
    return A2AError(INVALID_PARAMS, f"{field} {problem}", fields={field: problem})


def task_not_found(task_id: str) -> A2AError:
    """The error for a task that does not exist, has been deleted, or belongs to another principal or agent."""
    shown = task_id[:120]
    message = f"Task not found: you have no task {shown!r} of this agent, or it is too old."
    return A2AError(TASK_NOT_FOUND, message, metadata={"taskId": shown})


def error_of_call(error: ToolError | CallError) -> A2AError:
    """The error of a call that was refused or could not be made."""
    executed = error.executed
    metadata = {"executed": executed, "retryable": str(error.retryable).lower()}
    message, fields = error.message, (error.details or {}).get("fields")
    if error.code == ErrorCode.REQUEST_ID_CONFLICT:  # the id of a message is the request id of its call
        message, fields = f"{_MESSAGE_ID} {_ID_IN_USE}", {_MESSAGE_ID: _ID_IN_USE}
    return A2AError(
        _OF_CALLS.get(error.code, INTERNAL),
        message,
        fields=fields,
        metadata=metadata,
        own_reason=str(error.code),
        retry_after_ms=error.retry_after_ms,
    )
