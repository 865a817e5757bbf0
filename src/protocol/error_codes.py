"""The error table: each code has one class, one meaning and one advice.

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

A message is written for the person who has to act on it: what is wrong, which field, what to do. It never contains a
secret, a traceback, or a server path that the caller did not name.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self

import msgspec

Executed = Literal["no", "maybe", "yes"]
"""Whether the call had an effect."""


class ErrorCode(StrEnum):
    """Every value of ``error.code`` on the wire."""

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
    """``error`` on the wire: why one call or one frame failed.

    ``retryable`` is true only if the same call can be sent again without a second effect.
    """

    code: str
    message: str
    executed: Executed
    retryable: bool
    retry_after_ms: int | None = None
    details: dict[str, Any] | None = None


class CallError(Exception):
    """A call failed.

    Tools and providers raise a subclass. ``executed`` overrides the class's default; ``transient`` says whether the
    same call may succeed later. A transient error with ``executed="no"`` is ``retryable``; dispatch also marks
    transient errors of read-only and idempotent tools as retryable. An error decoded from the wire keeps the daemon's
    value.

    The message may quote the call's arguments, its result or another system, so only the caller gets it. ``summary`` is
    the text for the audit and the log, without such content (decision 59). It is None unless it is passed, or the error
    is made by ``content_free``.
    """

    code: ClassVar[ErrorCode] = ErrorCode.INTERNAL_ERROR
    default_executed: ClassVar[Executed] = "maybe"
    default_transient: ClassVar[bool] = False
    advice: ClassVar[str] = "Report the error with its request id; the daemon's log has the cause."

    def __init__(
        self,
        message: str | None = None,
        *,
        executed: Executed | None = None,
        transient: bool | None = None,
        retry_after_ms: int | None = None,
        details: dict[str, Any] | None = None,
        summary: str | None = None,
    ) -> None:
        self.message = message or (type(self).__doc__ or "").splitlines()[0]
        self.executed: Executed = executed or self.default_executed
        self.transient = self.default_transient if transient is None else transient
        self.retryable = self.transient and self.executed == "no"
        self.retry_after_ms = retry_after_ms
        self.details = details
        self.summary = summary if message else self.message
        self.output: object = None
        """A ``ToolOutput``: the content with which an MCP server's tool failed, for clients that get it unchanged."""
        super().__init__(self.message)

    @classmethod
    def content_free(
        cls,
        message: str,
        *,
        executed: Executed | None = None,
        transient: bool | None = None,
        retry_after_ms: int | None = None,
        details: dict[str, Any] | None = None,
    ) -> Self:
        """Returns an error whose message is also its summary, because it contains only text of toold, numbers, and
        names of tools, providers and sources.
        """
        return cls(
            message,
            executed=executed,
            transient=transient,
            retry_after_ms=retry_after_ms,
            details=details,
            summary=message,
        )

    def to_tool_error(self, *, repeatable: bool = False) -> ToolError:
        """Returns the wire record. ``repeatable``: the tool is read-only or idempotent."""
        return ToolError(
            code=self.code.value,
            message=self.message,
            executed=self.executed,
            retryable=self.retryable or (self.transient and repeatable),
            retry_after_ms=self.retry_after_ms,
            details=self.details,
        )


class InvalidRequestError(CallError):
    """A field of the frame is invalid."""

    code = ErrorCode.INVALID_REQUEST
    default_executed = "no"
    advice = "Correct the field named in the message."


class ProtocolError(CallError):
    """The frame is not valid, or not allowed at this point of the protocol."""

    code = ErrorCode.PROTOCOL_ERROR
    default_executed = "no"
    advice = "Send one JSON object per text frame, with an op from docs/protocol.md."


class UnauthorizedError(CallError):
    """The token is missing or wrong."""

    code = ErrorCode.UNAUTHORIZED
    default_executed = "no"
    advice = "Send the daemon's token in `hello`; `toold token` prints it."


class PermissionDeniedError(CallError):
    """The principal is not permitted to do this."""

    code = ErrorCode.PERMISSION_DENIED
    default_executed = "no"
    advice = "Do what the message says, or ask the operator for permission."


class ToolNotFoundError(CallError):
    """No tool has this name."""

    code = ErrorCode.TOOL_NOT_FOUND
    default_executed = "no"
    advice = "List the tools (`list_tools`, `toold tools`) and use one of their names."


class InvalidArgumentsError(CallError):
    """The arguments do not match the tool's schema."""

    code = ErrorCode.VALIDATION_ERROR
    default_executed = "no"
    advice = "Correct the arguments listed in details.fields; the tool's inputSchema describes them."


class OverCapacityError(CallError):
    """Too many calls are running or waiting."""

    code = ErrorCode.OVER_CAPACITY
    default_executed = "no"
    default_transient = True
    advice = "Wait retry_after_ms, then send the call again; keep fewer calls in flight."


class RateLimitedError(CallError):
    """A rate limit, a quota or a budget is exhausted."""

    code = ErrorCode.RATE_LIMITED
    default_executed = "no"
    default_transient = True
    advice = "Wait retry_after_ms, then send the call again."


class BudgetSpentError(RateLimitedError):
    """The daily budget does not allow the completion. No fallback is asked, because that would evade the budget."""


class CallTimeoutError(CallError):
    """The call's deadline passed before it produced a result."""

    code = ErrorCode.TIMEOUT
    default_transient = True
    advice = "If error.retryable is true, send the call again with a larger timeout_ms."


class CallCancelledError(CallError):
    """The call was cancelled."""

    code = ErrorCode.CANCELLED
    advice = "None needed: the client or the operator cancelled the call."


class ProviderError(CallError):
    """The vendor returned an error."""

    code = ErrorCode.PROVIDER_ERROR
    advice = "Read the message: it says what the vendor rejected."


class ServiceUnavailableError(CallError):
    """The daemon or the vendor cannot accept the call now."""

    code = ErrorCode.SERVICE_UNAVAILABLE
    default_executed = "no"
    default_transient = True
    advice = "If error.retryable is true, send the call again after retry_after_ms; otherwise do what the message says."


class ContextLengthExceededError(CallError):
    """The request exceeds the model's context window."""

    code = ErrorCode.CONTEXT_LENGTH_EXCEEDED
    default_executed = "no"
    advice = "Send less, or choose a model with a larger context window (`listmodels`)."


class ToolExecutionError(CallError):
    """The tool failed."""

    code = ErrorCode.TOOL_EXECUTION_ERROR
    advice = "Read the message; if the tool is at fault, report it with the request id."


class ResultTooLargeError(CallError):
    """The result does not fit into a frame."""

    code = ErrorCode.RESULT_TOO_LARGE
    default_executed = "yes"
    advice = "Request less data per call."


class ResultExpiredError(CallError):
    """The call has run, but its result is no longer stored; repeat it only if a second run does no harm."""

    code = ErrorCode.RESULT_EXPIRED
    default_executed = "yes"

    @classmethod
    def of_call(cls, *, started: bool) -> "ResultExpiredError":
        """Returns the error for an answered call; ``started`` says whether its tool had started."""
        if started:
            return cls()
        message = "The call did not run, and its answer is no longer stored; send it again under a new request id."
        return cls.content_free(message, executed="no")

    advice = "If a second run does no harm, send the call again under a new request id."


class RequestIdConflictError(CallError):
    """Another call of this session with different content has this request id."""

    code = ErrorCode.REQUEST_ID_CONFLICT
    default_executed = "no"
    advice = "Use a new request id for each new call."


class OutcomeUnknownError(CallError):
    """The call was interrupted; whether it had its effect is unknown."""

    code = ErrorCode.OUTCOME_UNKNOWN
    advice = "Check whether the effect happened before you send the call again."


class NotFoundError(CallError):
    """The requested object does not exist."""

    code = ErrorCode.NOT_FOUND
    default_executed = "no"
    advice = "Check the name."


class InternalError(CallError):
    """The daemon failed; this is a bug."""

    code = ErrorCode.INTERNAL_ERROR


def _subclasses() -> Mapping[ErrorCode, type[CallError]]:
    return MappingProxyType({cls.code: cls for cls in CallError.__subclasses__()})


ERROR_CLASSES: Mapping[ErrorCode, type[CallError]] = _subclasses()
"""Every code → its exception class."""


def error_from_wire(error: ToolError) -> CallError:
    """Returns the exception for an error received over the wire; an unknown code becomes ``InternalError``."""
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
