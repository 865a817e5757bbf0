"""Maps vendor failures to ``CallError``, for every transport. Pure.

Error codes: Kimi's ``error.type`` (platform.moonshot.ai/docs/api/chat, Error codes), GLM's numbers
(docs.bigmodel.cn/cn/api/api-code), and those of the pages in docs/providers.md. ``error_bodies`` reads them.
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
    Executed,
    ProviderError,
    RateLimitedError,
    ServiceUnavailableError,
)
from ..protocol.json_text import InvalidJsonError, parse_json
from .error_bodies import DAILY_QUOTA, MODERATION, read_error, status_in
from .retry_delay import retry_delay_ms
from .vendor_info import VendorInfo

MAX_MESSAGE_CHARS: Final = 500

_KEY_CODES: Final = frozenset(
    {"1000", "1001", "1002", "1003", "1004", "invalid_authentication_error", "API_KEY_INVALID"}
)
_KEY_WORDS: Final = re.compile(r"incorrect api key|api key not valid", re.IGNORECASE)
"""xAI and Gemini reject a key with HTTP 400."""
_BALANCE_CODES: Final = frozenset({"1113", "exceeded_current_quota_error", "insufficient_quota", DAILY_QUOTA})
_BALANCE_WORDS: Final = re.compile(r"credit balance is too low", re.IGNORECASE)
"""Anthropic reports an exhausted balance as ``invalid_request_error``."""
_CONTENT_CODES: Final = frozenset({"1301", "content_filter", "content_policy_violation", MODERATION})
_LENGTH_CODES: Final = frozenset({"1261", "context_length_exceeded", "exceed_context_size_error"})
_LENGTH_WORDS: Final = re.compile(
    r"exceeded model token limit|token length too long|prompt exceeds max length|maximum context length"
    r"|prompt is too long|maximum prompt length|exceeds the maximum number of tokens"
    r"|exceeds the available context size|\[input_too_large\]",
    re.IGNORECASE,
)
"""Kimi, Anthropic, xAI, Gemini and llama.cpp have no separate code for a prompt that is too long."""

_SECRETS: Final = re.compile(r"(?:sk-|gsk_|xai-|AIza)[\w-]{8,}|Bearer\s+\S+|\b[0-9a-f]{32}\.\w{8,}", re.IGNORECASE)
"""Patterns of the vendors' API keys, in case a message contains a key that is not in use. The formats of all other
secrets are in ``audit/redaction.py``.
"""

_NEVER_CONNECTED: Final = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "UnsupportedProtocol"})
"""Names of exceptions. They are compared by name, because the SDKs may use HTTP clients other than httpx."""

_PAGE_TITLE: Final = re.compile(r"<title[^>]*>([^<]*)", re.IGNORECASE)

_NOT_IMPLEMENTED: Final = 501
"""Statuses that mean that the server lacks the endpoint, for example for embeddings. A retry cannot succeed."""


class VendorObjectNotFoundError(ProviderError):
    """HTTP 404: the vendor does not have the requested object. The caller converts it to a specific error."""


@dataclass(frozen=True, slots=True)
class VendorRefusal:
    """An error response of the vendor."""

    status: int
    """The HTTP status. For an error in a stream or with HTTP 200, the status that it names, or 0."""
    code: str = ""
    message: str = ""
    retry_after_ms: int | None = None
    late: bool = False
    """Whether the vendor had accepted the request, that is, the error is in a stream or has HTTP 200."""


def read_refusal(status: int, body: str, headers: Mapping[str, str], now: datetime) -> VendorRefusal:
    """Parses an error response. If the body is not JSON, it becomes the message; of a web page, only the title. ``now``
    is timezone-aware.
    """
    try:
        document = parse_json(body)
    except InvalidJsonError:
        document = None
    code, message = read_error(document)
    if document is None and (title := _PAGE_TITLE.search(body[:10_000])):
        message = f"a web page titled {title[1].strip()!r}; check the base URL"
    return VendorRefusal(status, code, message or body, retry_delay_ms(headers, document, now))


def read_late_refusal(error: Any) -> VendorRefusal:
    """Parses an error in a stream, or in place of a completion."""
    code, message = read_error(error)
    return VendorRefusal(status_in(error, code), code, message or str(error), late=True)


def refused(vendor: VendorInfo, refusal: VendorRefusal, *, secret: str) -> CallError:
    """Returns the error for an error response. Its message quotes the vendor; its summary does not. ``secret`` is the
    key to redact.
    """
    error = _refusal_error(vendor, refusal, clean(refusal.message, secret))
    error.summary = f"{vendor.label} answered with an error (HTTP {200 if refusal.late else refusal.status})."
    return error


def _refusal_error(vendor: VendorInfo, refusal: VendorRefusal, detail: str) -> CallError:
    code, status = refusal.code, refusal.status
    if status == 401 or code in _KEY_CODES or (status == 400 and _KEY_WORDS.search(detail)):
        return ProviderError(
            f"{vendor.label} rejected the API key; check {vendor.key_setting} ({detail}).",
            executed="no",
            transient=False,
        )
    if code in _BALANCE_CODES or _BALANCE_WORDS.search(detail) or (status == 402 and refusal.retry_after_ms is None):
        return RateLimitedError(
            f"The balance or quota of the {vendor.label} account is used up; top it up ({detail}).",
            transient=False,
        )
    if code in _LENGTH_CODES or _LENGTH_WORDS.search(detail):
        return ContextLengthExceededError(
            f"The request is too long for the model ({detail}); send less, or use a model with a larger window."
        )
    executed: Executed = "maybe" if refusal.late else "no"
    if code in _CONTENT_CODES:
        return ProviderError(
            f"{vendor.label} rejected the content of the request as unsafe; rephrase it ({detail}).", executed=executed
        )
    if status in {402, 429}:
        return RateLimitedError(
            f"{vendor.label} rate limit exceeded ({detail}).", executed=executed, retry_after_ms=refusal.retry_after_ms
        )
    if (status >= 500 and status != _NOT_IMPLEMENTED) or status == 408:
        failed = "interrupted its answer with an error" if refusal.late else f"failed with HTTP {status}"
        return ServiceUnavailableError(
            f"{vendor.label} {failed} ({detail}).",
            executed="maybe",
            retry_after_ms=refusal.retry_after_ms,
        )
    if 300 <= status < 400:
        return ProviderError(
            f"{vendor.label} redirects to another address (HTTP {status}), to which "
            "the key is not sent; correct its base URL.",
            executed="no",
            transient=False,
        )
    if refusal.late:
        return ProviderError(f"{vendor.label} interrupted its answer with an error ({detail}).")
    kind = VendorObjectNotFoundError if status == 404 else ProviderError
    return kind(
        f"{vendor.label} rejected the request with HTTP {status} ({detail}).",
        executed="no",
        details={"vendor_status": status},
    )


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
    """Returns the error for a response that could not be parsed. The SDKs pass on Python's RecursionError."""
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
