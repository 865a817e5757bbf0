"""Reads the code and the message of an error, in the different forms of the vendors. Pure.

- ``{"error": {"code" or "type", "message"}}``, or the inner object alone (OpenAI, Anthropic, Mistral and most others).
- the same in a list, with ``status`` and ``details`` (Gemini).
- ``{"error": "text"}`` (Ollama, LM Studio), with ``code`` next to it (xAI).
- ``error.metadata`` with the answer of the vendor behind a proxy, or the reasons of a moderation (OpenRouter).
- ``{"detail": "text" or [{"loc", "msg"}]}`` for invalid fields (Mistral, and servers in Python).
"""

from collections.abc import Mapping
from typing import Any, Final

from .retry_delay import error_details

MODERATION: Final = "moderation"
"""The code that toold uses for OpenRouter's moderation, whose error has no code."""
DAILY_QUOTA: Final = "quota_per_day"
"""The code for Gemini's quotas that are restored only after hours. Its other quotas last at most a minute."""

_LATE_STATUS: Final[Mapping[str, int]] = {
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "overloaded_error": 503,
    "api_error": 500,
    "server_error": 500,
}
"""The HTTP statuses for the codes of errors in a stream (OpenAI, Anthropic)."""


def read_error(document: Any) -> tuple[str, str]:
    """Returns code and message; empty if missing."""
    if isinstance(document, list) and document:
        document = document[0]
    if not isinstance(document, Mapping):
        return "", document if isinstance(document, str) else ""
    error = document.get("error", document)
    if not isinstance(error, Mapping):
        return str(document.get("code") or ""), "" if error is None else str(error)
    detail = error.get("message") or error.get("detail") or document.get("detail")
    return _code(error), " ".join(filter(None, (_text(detail), _upstream(error))))


def status_in(error: Any, code: str) -> int:
    """Returns the HTTP status that an error in a stream names, or 0."""
    value = error.get("code") if isinstance(error, Mapping) else None
    if isinstance(value, int | str) and (text := str(value)).isascii() and text.isdigit() and 400 <= int(text) < 600:
        return int(text)
    return _LATE_STATUS.get(code, 0)


def _code(error: Mapping[str, Any]) -> str:
    metadata = error.get("metadata")
    if isinstance(metadata, Mapping) and metadata.get("reasons"):
        return MODERATION
    for detail in error_details({"error": error}):
        violations = detail.get("violations")
        if isinstance(violations, list) and any("PerDay" in str(violation) for violation in violations):
            return DAILY_QUOTA
        if reason := detail.get("reason"):
            return str(reason)
    return str(error.get("code") or error.get("type") or "")


def _upstream(error: Mapping[str, Any]) -> str:
    """Returns the answer of the vendor behind OpenRouter. OpenRouter's message says only that the vendor returned an
    error.
    """
    metadata = error.get("metadata")
    if not isinstance(metadata, Mapping) or not metadata.get("raw"):
        return ""
    return f"[{metadata.get('provider_name') or 'upstream'}: {metadata['raw']}]"


def _text(detail: Any) -> str:
    """Returns a message, which may be a list of invalid fields."""
    if isinstance(detail, Mapping):
        return _text(detail.get("detail") or detail.get("message") or detail.get("error") or "")
    if not isinstance(detail, list):
        return str(detail or "")
    problems = [
        f"{'.'.join(map(str, item.get('loc') or ()))}: {item.get('msg', '')}"
        if isinstance(item, Mapping)
        else str(item)
        for item in detail[:5]
    ]
    return "; ".join(problems)
