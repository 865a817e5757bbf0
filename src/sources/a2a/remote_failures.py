"""Maps failures of a remote agent to errors of calls. Pure."""

from datetime import UTC, datetime
from typing import Any, Final

from ...protocol.a2a.remote_task import RemoteMessage, RemoteStatus
from ...protocol.error_codes import (
    CallCancelledError,
    CallError,
    ErrorCode,
    Executed,
    InvalidArgumentsError,
    NotFoundError,
    OutcomeUnknownError,
    PermissionDeniedError,
    ProviderError,
    RateLimitedError,
    ServiceUnavailableError,
    ToolError,
    ToolExecutionError,
    error_from_wire,
)
from ...protocol.name_suggestions import as_sentence
from ...protocol.retry_after import retry_after_ms
from ...protocol.terminal_text import one_line, terminal_safe
from ..source import secret_rejected

_MAX_MESSAGE_CHARS: Final = 2000
_MAX_RPC_MESSAGE_CHARS: Final = 500
_MAX_ID_CHARS: Final = 100

TASK_NOT_FOUND: Final = -32001
_NOT_EXECUTED: Final = frozenset({-32700, -32600, -32601, -32602, -32003, -32004, -32005, -32007, -32008, -32009})
"""The error codes of JSON-RPC and A2A with which an agent refuses a request that it did not start."""
_INVALID_PARAMS: Final = -32602


class RemoteLostError(ServiceUnavailableError):
    """The agent may have the request, but its answer did not arrive. ``executed`` is ``maybe``."""


def lost(source: str, how: str) -> RemoteLostError:
    """The error of a request that was sent, but whose answer did not arrive."""
    return RemoteLostError.content_free(f"{source} {how} after the request was sent.", executed="maybe")


def unreachable(source: str, how: str) -> ServiceUnavailableError:
    """The error of a request that was not sent."""
    return ServiceUnavailableError.content_free(f"{source} {how}.", executed="no")


def unreadable(source: str, reason: str, executed: Executed = "maybe") -> ProviderError:
    """The error of an answer that is not A2A."""
    return ProviderError(
        f"{source}'s answer cannot be read: {reason}.", executed=executed, summary=f"{source}'s answer cannot be read."
    )


def redirected(source: str, status: int) -> ProviderError:
    """The error of a redirect. Requests to agents are not redirected."""
    return ProviderError.content_free(
        f"{source} redirects (HTTP {status}), which is refused; its card must name the new URL.", executed="no"
    )


def rpc_failure(source: str, code: int, message: str) -> CallError:
    """The error for an error object of JSON-RPC or HTTP+JSON."""
    text = as_sentence(f"{source} answered with an error ({code}): {one_line(message, _MAX_RPC_MESSAGE_CHARS)}")
    summary = f"{source} answered with an error ({code})."
    if code == TASK_NOT_FOUND:
        return NotFoundError(text, summary=summary)
    if code == _INVALID_PARAMS:
        return InvalidArgumentsError(text, summary=summary)
    return ProviderError(text, executed="no" if code in _NOT_EXECUTED else "maybe", summary=summary)


def http_failure(source: str, status: int, retry_after: str | None) -> CallError:
    """The error for an HTTP status without an error object."""
    prefix = f"{source} answered HTTP {status}"
    wait_ms = retry_after_ms(retry_after, datetime.now(UTC))
    match status:
        case 401:
            return PermissionDeniedError.content_free(f"{prefix}. {secret_rejected(source)}")
        case 403:
            return PermissionDeniedError.content_free(f"{prefix}.")
        case 429:
            return RateLimitedError.content_free(f"{prefix}.", retry_after_ms=wait_ms)
        case 503:
            return ServiceUnavailableError.content_free(f"{prefix}.", executed="maybe", retry_after_ms=wait_ms)
        case _ if status >= 500:
            return RemoteLostError.content_free(f"{prefix}.", executed="maybe", retry_after_ms=wait_ms)
        case _:
            return ProviderError.content_free(f"{prefix}.", executed="no")


def unknown_outcome(source: str, task_id: str, why: str) -> OutcomeUnknownError:
    """The error of a message whose task is unknown, or of a task that cannot be read."""
    about = f"the task {shown(task_id)}" if task_id else "a task of this message"
    return OutcomeUnknownError.content_free(
        f"{source}: {why} Ask the agent about {about} before you send the message again.",
        details={"task_id": shown(task_id)} if task_id else None,
    )


def task_failure(source: str, task_id: str, status: RemoteStatus) -> CallError:
    """The error of a task that ended without an answer, or waits for a credential."""
    said = terminal_safe(status.message.text[:_MAX_MESSAGE_CHARS], keep="\n") if status.message is not None else ""
    details = {"task_id": shown(task_id), "state": status.outlook}
    if status.outlook == "auth":
        return PermissionDeniedError(
            as_sentence(
                f"{source} needs a credential to continue its task {shown(task_id)}: {said or 'it did not say which'}"
            ),
            executed="maybe",
            details=details,
            summary=f"{source} needs a credential to continue a task.",
        )
    own = _own_failure(source, status.message, said)
    if own is not None:
        return own
    verb = {"failed": "failed", "rejected": "rejected", "canceled": "canceled"}[status.outlook]
    text = as_sentence(f"{source} {verb} its task {shown(task_id)}: {said or 'it did not say why'}")
    summary = f"{source} {verb} its task."
    if status.outlook == "rejected":
        return PermissionDeniedError(text, executed="no", details=details, summary=summary)
    if status.outlook == "canceled":
        return CallCancelledError(text, executed="maybe", details=details, summary=summary)
    return ToolExecutionError(text, executed="maybe", details=details, summary=summary)


def shown(task_id: str) -> str:
    """A task's id for a message."""
    return one_line(task_id, _MAX_ID_CHARS)


def _own_failure(source: str, message: RemoteMessage | None, said: str) -> CallError | None:
    """The error that another toold put into its task's message as data, if there is one."""
    data: list[Any] = [part.content for part in message.parts if part.kind == "data"] if message is not None else []
    for about in data:
        if isinstance(about, dict) and about.get("code") in list(ErrorCode) and about.get("executed") in _EXECUTED:
            code = ErrorCode(about["code"])
            text = as_sentence(f"{source}: {said.removeprefix(f'{code}: ')}")
            return error_from_wire(ToolError(code, text, about["executed"], about.get("retryable") is True))
    return None


_EXECUTED: Final = ("no", "maybe", "yes")
