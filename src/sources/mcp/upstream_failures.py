"""What becomes of a call whose server did not answer with a result, by codes alone."""

from datetime import UTC, datetime
from typing import Final

from mcp_types import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    REQUEST_TIMEOUT,
)

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
)
from ...protocol.retry_after import retry_after_ms
from ..one_line import one_line
from ..source_secret import secret_refused
from .message_lines import TOO_LONG, UNREADABLE
from .upstream_http import UpstreamExchange

_MAX_WORDS_CHARS: Final = 500


def refused(source: str, code: int, said: str, exchange: UpstreamExchange) -> CallError:
    """A call that ended with this JSON-RPC error, and what became of its request where it went by HTTP."""
    by_http = _by_http(source, exchange)
    if by_http is not None:
        return by_http
    named = f"{source} answered with an error ({code}): {one_line(said, _MAX_WORDS_CHARS)}"
    match code:
        case _ if code == CONNECTION_CLOSED:
            return broken(source, sent=True)
        case _ if code == REQUEST_TIMEOUT:
            return CallTimeoutError(f"{named}.", executed="maybe")
        case _ if code == TOO_LONG:
            return too_large(source)
        case _ if code == UNREADABLE or (code == PARSE_ERROR and exchange.status == 200):
            return ProviderError(f"{source}'s answer cannot be read: it is no message of MCP's.", executed="yes")
        case _ if code == INVALID_PARAMS:
            return InvalidArgumentsError(f"{named}.")
        case _ if code == METHOD_NOT_FOUND:
            return NotFoundError(f"{named}.")
        case _ if code == HEADER_MISMATCH:
            return ServiceUnavailableError(f"{named}. Its tools are listed again.", executed="no")
        case _:
            return ProviderError(f"{named}.")


def _by_http(source: str, exchange: UpstreamExchange) -> CallError | None:
    if exchange.forbidden is not None:
        return PermissionDeniedError(f"{source}: {exchange.forbidden}.")
    if exchange.too_large:
        return too_large(source)
    if exchange.unreadable is not None:
        return ProviderError(f"{source}'s answer cannot be read: {exchange.unreadable}.")
    if exchange.broken:
        return broken(source, sent=exchange.sent)
    named = f"{source} answered HTTP {exchange.status}"
    match exchange.status:
        case 401:
            return PermissionDeniedError(f"{named}. {secret_refused(source)}")
        case 403:
            return PermissionDeniedError(f"{named}.")
        case 404:  # only of a session: the server has forgotten it, and so has not looked at the call
            return ServiceUnavailableError(f"{named}: it knows the connection no more.", retry_after_ms=1000)
        case 429:
            return RateLimitedError(f"{named}.", retry_after_ms=_wait_ms(exchange))
        case int(status) if status >= 500:
            wait_ms = _wait_ms(exchange)
            return ServiceUnavailableError(f"{named}.", executed="maybe", retry_after_ms=wait_ms)
        case _:
            return None


def not_connected(source: str, exchange: UpstreamExchange) -> str | None:
    """Why a server at an address could not be connected to, as far as HTTP tells."""
    if exchange.broken and not exchange.sent:
        return "it cannot be reached"
    if exchange.broken:
        return "it broke the connection off before it answered"
    if exchange.status in {404, 405}:
        return f"it answered HTTP {exchange.status}; the operator looks whether url of [sources.{source}] is right"
    known = _by_http(source, exchange)
    return None if known is None else known.message.rstrip(".")


def broken(source: str, *, sent: bool) -> CallError:
    """The connection was not made, or broke before the answer."""
    executed: Executed = "maybe" if sent else "no"
    how = "went away before it answered" if sent else "cannot be reached"
    return ServiceUnavailableError(f"{source} {how}; it is looked for.", executed=executed)


def timed_out(source: str, *, sent: bool) -> CallError:
    """The call's time was up; the server was told."""
    return CallTimeoutError(f"{source} did not answer in time.", executed="maybe" if sent else "no")


def too_large(source: str) -> CallError:
    """The answer was left out, or not read to its end."""
    return ResultTooLargeError(f"{source}'s answer is larger than its max_answer_bytes; ask for less at a time.")


def _wait_ms(exchange: UpstreamExchange) -> int | None:
    return retry_after_ms(exchange.retry_after, datetime.now(UTC))
