"""Failures of an upstream server: the error of a call, and why a server is unavailable.

The class of a call's error depends only on codes, never on the server's message.
"""

from datetime import UTC, datetime
from typing import Any, Final

from pydantic import ValidationError

from ...protocol.error_codes import (
    CallError,
    CallTimeoutError,
    Executed,
    InvalidArgumentsError,
    NotFoundError,
    PermissionDeniedError,
    ProviderError,
    RateLimitedError,
    ResultTooLargeError,
    ServiceUnavailableError,
    ToolExecutionError,
)
from ...protocol.json_rpc import MISSING_CLIENT_CAPABILITY
from ...protocol.questions.client_question import ABILITIES, REQUIRED_KEY, kinds_declared, missing_capabilities
from ...protocol.retry_after import retry_after_ms
from ...protocol.terminal_text import one_line
from ..source import secret_rejected
from .upstream_exchange import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    REQUEST_TIMEOUT,
    TOO_LONG,
    UNREADABLE,
    UpstreamExchange,
)

_MAX_MESSAGE_CHARS: Final = 500
_NO_MESSAGE: Final = "Server returned an error response"
"""The SDK's message for an HTTP status without an MCP error."""
_PART_OF: Final = {"npx": "Node.js", "npm": "Node.js", "node": "Node.js", "uvx": "uv", "uv": "uv"}
"""Maps the commands that usually start published servers to the program to install."""


class UpstreamUnavailableError(Exception):
    """The server cannot be used at present; the message says why, without the server's name."""


def unavailable_reason(error: BaseException) -> str:
    """Returns why a connection failed, from the SDK's exception: the first cause in its groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, UpstreamUnavailableError):
        return str(error)
    if isinstance(error, FileNotFoundError):
        part_of = _PART_OF.get(str(error.filename))
        install = f"; install {part_of}, which contains it (in the container: docs/container.md)" if part_of else ""
        return f"its command or working directory does not exist ({error.filename}){install}"
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"its answer is not valid MCP ({'.'.join(map(str, first['loc']))}: {first['msg']})"
    if isinstance(error, OSError):
        return f"it cannot be started or reached ({error.strerror or type(error).__name__})"
    return f"it cannot be used ({type(error).__name__}: {one_line(str(error), 300)})"


def unavailable(source: str, problem: str, reconnect_in_s: float) -> ServiceUnavailableError:
    """Returns the error of a call that was not sent, because the server is not connected."""
    wait_ms = max(100, round(reconnect_in_s * 1000))
    reason = problem.rstrip(".")
    return ServiceUnavailableError(
        f"{source} is not available: {reason}. The daemon reconnects automatically.",
        executed="no",
        retry_after_ms=wait_ms,
    )


def not_connected(source: str, problem: str) -> ServiceUnavailableError:
    """Returns the error of a call that was not sent, because the daemon could not connect to the server."""
    return ServiceUnavailableError(f"{source} is not available: {problem.rstrip('.')}.", executed="no")


def call_failure(source: str, code: int, message: str, exchange: UpstreamExchange, data: Any = None) -> CallError:
    """Returns the error of a call that ended with this JSON-RPC error and its ``data``. Over HTTP, ``exchange`` has the
    details.
    """
    if isinstance(exchange.refused, CallError):
        return exchange.refused
    if exchange.refused is not None:
        return PermissionDeniedError(f"{source} is not available: {exchange.refused}.", executed="no")
    http_failure = _http_failure(source, exchange, message)
    if http_failure is not None:
        return http_failure
    error = _protocol_failure(source, code, one_line(message, _MAX_MESSAGE_CHARS), exchange, data)
    error.summary = error.summary or f"{source} answered with an error ({code})."
    return error


def _protocol_failure(source: str, code: int, message: str, exchange: UpstreamExchange, data: Any) -> CallError:
    prefix = f"{source} answered with an error ({code}): {message.rstrip('.')}"
    match code:
        case _ if code == CONNECTION_CLOSED:
            return connection_lost(source, sent=True)
        case _ if code == REQUEST_TIMEOUT:
            return CallTimeoutError(f"{prefix}.", executed="maybe")
        case _ if code == TOO_LONG:
            return too_large(source)
        case _ if code == UNREADABLE:
            return _unreadable(source, message)
        case _ if code == PARSE_ERROR and exchange.status == 200:
            return _unreadable(source, "it is not an MCP message")
        case _ if code == INVALID_PARAMS:
            return InvalidArgumentsError(f"{prefix}.")
        case _ if code == METHOD_NOT_FOUND:
            return NotFoundError(f"{prefix}.")
        case _ if code == HEADER_MISMATCH:
            return ServiceUnavailableError(f"{prefix}. The daemon lists its tools again.", executed="no")
        case _ if code == MISSING_CLIENT_CAPABILITY and (required := missing_capabilities(data)) is not None:
            able = " and ".join(ABILITIES[kind] for kind in kinds_declared(required))
            return ToolExecutionError(
                f"{source} would ask its caller, but this client has not declared that it can {able}.",
                details={REQUIRED_KEY: required},
            )
        case _:
            return ProviderError(f"{prefix}.")


def _http_failure(source: str, exchange: UpstreamExchange, message: str = "") -> CallError | None:
    """``message`` is the message of the JSON-RPC error."""
    if exchange.forbidden is not None:
        return PermissionDeniedError(f"{source}: {exchange.forbidden}.")
    if exchange.too_large:
        return too_large(source)
    if exchange.unreadable is not None:
        return _unreadable(source, exchange.unreadable, executed="maybe")
    if exchange.broken:
        return connection_lost(source, sent=exchange.sent)
    return _status_failure(source, exchange, message)


def _status_failure(source: str, exchange: UpstreamExchange, message: str) -> CallError | None:
    prefix = f"{source} answered HTTP {exchange.status}"
    match exchange.status:
        case 401:
            return PermissionDeniedError.content_free(f"{prefix}. {secret_rejected(source)}")
        case 403:
            return PermissionDeniedError.content_free(f"{prefix}.")
        case 404:  # in a session: the server has forgotten the session, so it has not executed the call
            return ServiceUnavailableError.content_free(
                f"{prefix}: it no longer knows the session.", retry_after_ms=1000
            )
        case 429:
            return RateLimitedError.content_free(f"{prefix}.", retry_after_ms=_wait_ms(exchange))
        case int(status) if status >= 500:
            wait_ms = _wait_ms(exchange)
            return ServiceUnavailableError.content_free(f"{prefix}.", executed="maybe", retry_after_ms=wait_ms)
        case int(status) if status >= 400 and message == _NO_MESSAGE:
            return ProviderError.content_free(f"{prefix}.")
        case _:
            return None


def http_connect_problem(source: str, exchange: UpstreamExchange) -> str | None:
    """Returns why connecting to a server at a URL failed; None if HTTP does not show the reason."""
    if isinstance(exchange.refused, str):
        return exchange.refused
    if exchange.broken and not exchange.sent:
        return "it cannot be reached"
    if exchange.broken:
        return "it closed the connection before it answered"
    if exchange.status in {404, 405}:
        return f"it answered HTTP {exchange.status}; check url in [sources.{source}]"
    failure = _http_failure(source, exchange)
    return None if failure is None else without_name(source, failure)


def without_name(source: str, error: CallError) -> str:
    """Returns the message of an error as a clause that follows the source's name."""
    message = error.message.rstrip(".")
    for named, unnamed in ((f"{source}: ", ""), (f"{source} ", "it "), (f"{source}'s ", "its ")):
        if message.startswith(named):
            return unnamed + message.removeprefix(named)
    return message


def connection_lost(source: str, *, sent: bool) -> CallError:
    """Returns the error of a call whose connection failed, before or after the call was sent."""
    executed: Executed = "maybe" if sent else "no"
    how = "disconnected before it answered" if sent else "cannot be reached"
    return ServiceUnavailableError.content_free(f"{source} {how}; the daemon reconnects.", executed=executed)


def timed_out(source: str, *, sent: bool) -> CallError:
    """Returns the error of a call that exceeded its deadline; the server was asked to cancel it."""
    return CallTimeoutError.content_free(f"{source} did not answer in time.", executed="maybe" if sent else "no")


def too_large(source: str) -> CallError:
    """Returns the error of a call whose answer exceeds ``max_answer_bytes``."""
    return ResultTooLargeError.content_free(
        f"{source}'s answer is larger than its max_answer_bytes; request less at a time."
    )


def _unreadable(source: str, reason: str, executed: Executed = "yes") -> CallError:
    return ProviderError.content_free(f"{source}'s answer cannot be read: {reason}.", executed=executed)


def _wait_ms(exchange: UpstreamExchange) -> int | None:
    return retry_after_ms(exchange.retry_after, datetime.now(UTC))
