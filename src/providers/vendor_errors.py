"""Maps vendor failures to ``CallError``, for every transport. Pure.

Error codes: Kimi's ``error.type`` (platform.moonshot.ai/docs/api/chat, Error codes) and GLM's numbers
(docs.bigmodel.cn/cn/api/api-code).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ..protocol.error_codes import (
    CallError,
    CallTimeoutError,
    ContextLengthExceededError,
    ProviderError,
    RateLimitedError,
    ServiceUnavailableError,
)
from ..protocol.json_text import InvalidJsonError, parse_json
from ..protocol.retry_after import retry_after_ms
from .vendor_info import VendorInfo

MAX_MESSAGE_CHARS: Final = 500

_KEY_CODES: Final = frozenset({"1000", "1001", "1002", "1003", "1004", "invalid_authentication_error"})
_BALANCE_CODES: Final = frozenset({"1113", "exceeded_current_quota_error", "insufficient_quota"})
_CONTENT_CODES: Final = frozenset({"1301", "content_filter"})
_LENGTH_CODES: Final = frozenset({"1261", "context_length_exceeded"})
_LENGTH_WORDS: Final = re.compile(
    r"exceeded model token limit|token length too long|prompt exceeds max length|maximum context length", re.IGNORECASE
)
"""Kimi has no separate code for this error; it is an ``invalid_request_error``."""

_SECRETS: Final = re.compile(r"sk-[\w-]{8,}|Bearer\s+\S+|\b[0-9a-f]{32}\.\w{8,}", re.IGNORECASE)
"""Patterns of the vendors' API keys, in case a message contains a key other than the one in use. The formats of all
other secrets are in ``audit/redaction.py``."""

_NEVER_CONNECTED: Final = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "UnsupportedProtocol"})
"""Compared by name, because the SDKs may use HTTP clients other than httpx."""


class VendorObjectNotFoundError(ProviderError):
    """HTTP 404: the vendor does not have the requested object. The caller converts it to a specific error."""


@dataclass(frozen=True, slots=True)
class VendorRefusal:
    """An error response of the vendor."""

    status: int
    """The HTTP status; 0 for an error in a stream."""
    code: str = ""
    message: str = ""
    retry_after: str | None = None
    """The raw header."""


def read_refusal(status: int, body: str, headers: Mapping[str, str]) -> VendorRefusal:
    """Parses an error response. A body that is not the vendors' JSON becomes the message."""
    try:
        document = parse_json(body)
    except InvalidJsonError:
        document = None
    code, message = read_error(document) if isinstance(document, dict) else ("", "")
    return VendorRefusal(status, code, message or body, headers.get("retry-after"))


def read_error(document: Mapping[str, Any]) -> tuple[str, str]:
    """Returns code and message of ``{"error": {…}}`` or of the inner object; empty if missing."""
    error = document.get("error", document)
    if not isinstance(error, Mapping):
        return "", str(error)
    return str(error.get("code") or error.get("type") or ""), str(error.get("message") or "")


def refused(vendor: VendorInfo, refusal: VendorRefusal, *, secret: str, now: datetime) -> CallError:
    """Returns the error for an error response. Its message quotes the vendor, its summary does not. ``secret`` is the
    key to redact; ``now`` is timezone-aware.
    """
    error = _refusal_error(vendor, refusal, clean(refusal.message, secret), now)
    error.summary = f"{vendor.label} answered with an error (HTTP {refusal.status or 200})."
    return error


def _refusal_error(vendor: VendorInfo, refusal: VendorRefusal, detail: str, now: datetime) -> CallError:
    code, status = refusal.code, refusal.status
    if status == 401 or code in _KEY_CODES:
        return ProviderError(
            f"{vendor.label} rejected the API key; check {vendor.key_setting} ({detail}).",
            executed="no",
            transient=False,
        )
    if code in _BALANCE_CODES:
        return RateLimitedError(
            f"The balance or quota of the {vendor.label} account is used up; top it up, do not wait ({detail}).",
            transient=False,
        )
    if code in _LENGTH_CODES or _LENGTH_WORDS.search(detail):
        return ContextLengthExceededError(
            f"The request is too long for the model ({detail}); send less, or use a model with a larger window."
        )
    if code in _CONTENT_CODES:
        return ProviderError(
            f"{vendor.label} rejected the content of the request as unsafe; rephrase it ({detail}).",
            executed="maybe" if status == 0 else "no",
        )
    if status == 429:
        return RateLimitedError(
            f"{vendor.label} rate limit exceeded ({detail}).",
            retry_after_ms=retry_after_ms(refusal.retry_after, now),
        )
    if status >= 500 or status == 408:
        return ServiceUnavailableError(
            f"{vendor.label} failed with HTTP {status} ({detail}).",
            executed="maybe",
            retry_after_ms=retry_after_ms(refusal.retry_after, now),
        )
    if 300 <= status < 400:
        return ProviderError(
            f"{vendor.label} redirects to another address (HTTP {status}), to which "
            "the key is not sent; correct its base URL.",
            executed="no",
            transient=False,
        )
    if status == 0:
        return ProviderError(f"{vendor.label} interrupted its answer with an error ({detail}).")
    kind = VendorObjectNotFoundError if status == 404 else ProviderError
    return kind(f"{vendor.label} rejected the request with HTTP {status} ({detail}).", executed="no")


def unreachable(vendor: VendorInfo, error: BaseException) -> ServiceUnavailableError:
    """Returns the error for a failed connection. If no connection was established, nothing was executed."""
    if never_connected(error):
        return ServiceUnavailableError.content_free(
            f"{vendor.label} cannot be reached; check its base URL and the network."
        )
    return ServiceUnavailableError.content_free(
        f"The connection to {vendor.label} broke before the answer.", executed="maybe"
    )


def timed_out(vendor: VendorInfo, seconds: float, *, silent_s: float) -> CallTimeoutError:
    """Returns the error for a timeout of one or all attempts. ``silent_s`` is the time since the last data."""
    return CallTimeoutError.content_free(
        f"{vendor.label} did not finish its answer within {seconds:.3g} s.", details={"silent_s": round(silent_s, 1)}
    )


def not_understood(vendor: VendorInfo, why: str) -> ProviderError:
    """Returns the error for a response that does not have the documented format."""
    return ProviderError(f"{vendor.label} returned an invalid response: {why}.")


def not_json(vendor: VendorInfo, error: Exception) -> ProviderError:
    """Returns the error for a response that could not be parsed; a vendor's SDK passes Python's RecursionError on."""
    deep = isinstance(error, RecursionError)
    return not_understood(vendor, f"it is not JSON: {'it is nested too deeply' if deep else error}")


def never_connected(error: BaseException) -> bool:
    """Whether an exception or one of its causes shows that the request was never sent."""
    return any(type(cause).__name__ in _NEVER_CONNECTED for cause in _causes(error))


def clean(message: str, secret: str) -> str:
    """Returns the message as one line of at most 500 characters, without keys."""
    if secret:
        message = message.replace(secret, "…")
    line = " ".join(_SECRETS.sub("…", message).split())
    return line if len(line) <= MAX_MESSAGE_CHARS else line[: MAX_MESSAGE_CHARS - 1] + "…"


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
