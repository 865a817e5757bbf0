"""The error table: one code, one class, one meaning, one piece of advice.

Exceptions that end a call, all below ``CallError``::

    CallError
    ├── InvalidRequestError         INVALID_REQUEST
    ├── ProtocolError               PROTOCOL_ERROR
    ├── UnauthorizedError           UNAUTHORIZED
    ├── PermissionDeniedError       PERMISSION_DENIED
    ├── ToolNotFoundError           TOOL_NOT_FOUND
    ├── InvalidArgumentsError       VALIDATION_ERROR
    ├── OverCapacityError           OVER_CAPACITY
    ├── RateLimitedError            RATE_LIMITED
    ├── CallTimeoutError            TIMEOUT
    ├── CallCancelledError          CANCELLED
    ├── ProviderError               PROVIDER_ERROR
    ├── ServiceUnavailableError     SERVICE_UNAVAILABLE
    ├── ContextLengthExceededError  CONTEXT_LENGTH_EXCEEDED
    ├── ToolExecutionError          TOOL_EXECUTION_ERROR
    ├── ResultTooLargeError         RESULT_TOO_LARGE
    ├── ResultExpiredError          RESULT_EXPIRED
    ├── RequestIdConflictError      REQUEST_ID_CONFLICT
    ├── OutcomeUnknownError         OUTCOME_UNKNOWN
    ├── NotFoundError               NOT_FOUND
    └── InternalError               INTERNAL_ERROR

A message is for the person who has to act on it: what was wrong, which field, what to do. It never holds a secret,
a traceback or a path of the server that the caller did not name.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import msgspec

Executed = Literal["no", "maybe", "yes"]
"""Whether the call had an effect: it did not start, it may have, it did."""


class ErrorCode(StrEnum):
    """Every code that can stand in ``error.code`` on the wire."""

    INVALID_REQUEST = "INVALID_REQUEST"
    PROTOCOL_ERROR = "PROTOCOL_ERROR"
    UNAUTHORIZED = "UNAUTHORIZED"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    TOOL_NOT_FOUND = "TOOL_NOT_FOUND"
    VALIDATION_ERROR = "VALIDATION_ERROR"
    OVER_CAPACITY = "OVER_CAPACITY"
    RATE_LIMITED = "RATE_LIMITED"
    TIMEOUT = "TIMEOUT"
    CANCELLED = "CANCELLED"
    PROVIDER_ERROR = "PROVIDER_ERROR"
    SERVICE_UNAVAILABLE = "SERVICE_UNAVAILABLE"
    CONTEXT_LENGTH_EXCEEDED = "CONTEXT_LENGTH_EXCEEDED"
    TOOL_EXECUTION_ERROR = "TOOL_EXECUTION_ERROR"
    RESULT_TOO_LARGE = "RESULT_TOO_LARGE"
    RESULT_EXPIRED = "RESULT_EXPIRED"
    REQUEST_ID_CONFLICT = "REQUEST_ID_CONFLICT"
    OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"
    NOT_FOUND = "NOT_FOUND"
    INTERNAL_ERROR = "INTERNAL_ERROR"


class ToolError(msgspec.Struct, frozen=True, omit_defaults=True):
    """``error`` on the wire: what went wrong with one call, or with one frame.

    ``retryable`` is true only where the same call may be sent again without a second effect.
    """

    code: str
    message: str
    executed: Executed
    retryable: bool
    retry_after_ms: int | None = None
    details: dict[str, Any] | None = None


class CallError(Exception):
    """The call could not be answered with a result.

    Raise a subclass from a tool or a provider. ``executed`` says whether an effect may have happened, where the
    raiser knows better than the class does; ``transient`` whether the same call may succeed later. From both follows
    ``retryable``: it may be sent again without a second effect. Dispatch says so too where the tool's annotations
    allow it; an error that came over the wire has what the daemon said.
    """

    code: ClassVar[ErrorCode] = ErrorCode.INTERNAL_ERROR
    default_executed: ClassVar[Executed] = "maybe"
    default_transient: ClassVar[bool] = False
    advice: ClassVar[str] = "Report it with the request id; the daemon's log has the cause."

    def __init__(
        self,
        message: str | None = None,
        *,
        executed: Executed | None = None,
        transient: bool | None = None,
        retry_after_ms: int | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        self.message = message or (type(self).__doc__ or "").splitlines()[0]
        self.executed: Executed = executed or self.default_executed
        self.transient = self.default_transient if transient is None else transient
        self.retryable = self.transient and self.executed == "no"
        self.retry_after_ms = retry_after_ms
        self.details = details
        super().__init__(self.message)

    def to_tool_error(self, *, repeatable: bool = False) -> ToolError:
        """The wire record; ``repeatable`` says that the tool is read-only or idempotent."""
        return ToolError(
            code=self.code.value,
            message=self.message,
            executed=self.executed,
            retryable=self.retryable or (self.transient and repeatable),
            retry_after_ms=self.retry_after_ms,
            details=self.details,
        )


class InvalidRequestError(CallError):
    """The frame's fields are wrong."""

    code = ErrorCode.INVALID_REQUEST
    default_executed = "no"
    advice = "Correct the field that the message names."


class ProtocolError(CallError):
    """The frame is not one that the protocol knows at this point."""

    code = ErrorCode.PROTOCOL_ERROR
    default_executed = "no"
    advice = "Send one JSON object a text frame, with an op from docs/protocol.md."


class UnauthorizedError(CallError):
    """The token is missing or wrong."""

    code = ErrorCode.UNAUTHORIZED
    default_executed = "no"
    advice = "Send the daemon's token in hello; `toold token` prints it."


class PermissionDeniedError(CallError):
    """The principal may not do this."""

    code = ErrorCode.PERMISSION_DENIED
    default_executed = "no"
    advice = "Ask for something that the operator allowed, or ask the operator."


class ToolNotFoundError(CallError):
    """There is no tool of this name."""

    code = ErrorCode.TOOL_NOT_FOUND
    default_executed = "no"
    advice = "List the tools (list_tools, `toold tools`) and use one of those names."


class InvalidArgumentsError(CallError):
    """The arguments do not fit the tool's schema."""

    code = ErrorCode.VALIDATION_ERROR
    default_executed = "no"
    advice = "Correct the arguments that details.fields names; the tool's inputSchema says what is meant."


class OverCapacityError(CallError):
    """Too many calls are running or waiting."""

    code = ErrorCode.OVER_CAPACITY
    default_executed = "no"
    default_transient = True
    advice = "Wait retry_after_ms and send the call again; keep fewer calls in flight."


class RateLimitedError(CallError):
    """A rate limit or a quota was reached."""

    code = ErrorCode.RATE_LIMITED
    default_executed = "no"
    default_transient = True
    advice = "Wait retry_after_ms and send the call again."


class CallTimeoutError(CallError):
    """The call's deadline passed before it had a result."""

    code = ErrorCode.TIMEOUT
    default_transient = True
    advice = "Send it again with a larger timeout_ms, where error.retryable is true."


class CallCancelledError(CallError):
    """The call was cancelled."""

    code = ErrorCode.CANCELLED
    advice = "Nothing: somebody asked for it."


class ProviderError(CallError):
    """The vendor answered with an error."""

    code = ErrorCode.PROVIDER_ERROR
    advice = "Read the message: it says what the vendor objected to."


class ServiceUnavailableError(CallError):
    """The daemon or the vendor cannot take the call now."""

    code = ErrorCode.SERVICE_UNAVAILABLE
    default_executed = "no"
    default_transient = True
    advice = "Send it again later, after retry_after_ms where it is given."


class ContextLengthExceededError(CallError):
    """The request is longer than the model's context window."""

    code = ErrorCode.CONTEXT_LENGTH_EXCEEDED
    default_executed = "no"
    advice = "Send less, or name a model with a larger window (`listmodels`)."


class ToolExecutionError(CallError):
    """The tool failed."""

    code = ErrorCode.TOOL_EXECUTION_ERROR
    advice = "Read the message; if the tool is at fault, report it with the request id."


class ResultTooLargeError(CallError):
    """The result does not fit into a frame."""

    code = ErrorCode.RESULT_TOO_LARGE
    default_executed = "yes"
    advice = "Ask for less at a time."


class ResultExpiredError(CallError):
    """The call has run, and its result is not kept any more; make it again only where that does no harm."""

    code = ErrorCode.RESULT_EXPIRED
    default_executed = "yes"
    advice = "Decide whether the call may be made again, and send it under a new request id."


class RequestIdConflictError(CallError):
    """This request id belongs to another call of this session, with other content; use a new one."""

    code = ErrorCode.REQUEST_ID_CONFLICT
    default_executed = "no"
    advice = "Use a new request id for each new call."


class OutcomeUnknownError(CallError):
    """The call was cut off and nobody knows whether it had its effect."""

    code = ErrorCode.OUTCOME_UNKNOWN
    advice = "Look whether the effect is there before you send it again."


class NotFoundError(CallError):
    """What was asked for does not exist."""

    code = ErrorCode.NOT_FOUND
    default_executed = "no"
    advice = "Check the name."


class InternalError(CallError):
    """The daemon made a mistake."""

    code = ErrorCode.INTERNAL_ERROR


def _subclasses() -> Mapping[ErrorCode, type[CallError]]:
    return MappingProxyType({cls.code: cls for cls in CallError.__subclasses__()})


ERROR_CLASSES: Mapping[ErrorCode, type[CallError]] = _subclasses()
"""Code → exception class; complete in both directions."""


def error_from_wire(error: ToolError) -> CallError:
    """The exception for an error that came over the wire; an unknown code becomes ``InternalError``."""
    try:
        cls = ERROR_CLASSES[ErrorCode(error.code)]
    except ValueError:
        cls = InternalError
    raised = cls(
        error.message,
        executed=error.executed,
        transient=error.retryable,
        retry_after_ms=error.retry_after_ms,
        details=error.details,
    )
    raised.retryable = error.retryable
    return raised
