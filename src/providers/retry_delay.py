"""Reads when a vendor allows a retry of a refused request, in the different forms of the vendors. Pure.

- ``retry-after-ms`` and ``retry-after``: a number, or a date (OpenAI, Anthropic, Groq, OpenRouter, Mistral).
- ``RetryInfo`` in the body: ``"retryDelay": "34.5s"`` (Gemini, which sends no header).
- ``x-ratelimit-reset-requests``, ``…-tokens``: a duration such as ``6m0s`` or ``120ms``, for the exhausted limit
  (OpenAI, Groq); ``x-ratelimit-reset``: milliseconds since 1970 (OpenRouter).
- ``anthropic-ratelimit-…-reset``: an instant such as ``2026-01-01T00:00:30Z``.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from ..protocol.retry_after import retry_after_ms

MAX_DELAY_MS: Final = 10**12
"""Longer delays are ignored, as in ``retry_after_ms``."""

_DURATION: Final = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?", re.ASCII)
_LIMITS: Final = ("requests", "tokens", "input-tokens", "output-tokens")


def retry_delay_ms(headers: Mapping[str, str], document: Any, now: datetime) -> int | None:
    """Returns the delay in milliseconds; None if the vendor names none. ``headers`` have names in lower case;
    ``document`` is the decoded body; ``now`` is timezone-aware.
    """
    delay = _milliseconds(headers.get("retry-after-ms"))
    if delay is None:
        delay = retry_after_ms(headers.get("retry-after"), now)
    if delay is None:
        delay = _retry_info_ms(document)
    return _reset_ms(headers, now) if delay is None else delay


def duration_ms(text: str) -> int | None:
    """Returns the milliseconds of ``1h2m3.5s`` or ``120ms``; None for anything else."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        return None
    hours, minutes, seconds, milliseconds = (float(part or 0) for part in match.groups())
    return _bounded(((hours * 60 + minutes) * 60 + seconds) * 1000 + milliseconds)


def error_details(document: Any) -> Iterator[Mapping[str, Any]]:
    """Yields the details of Google's error format (cloud.google.com/apis/design/errors)."""
    if isinstance(document, list) and document:
        document = document[0]
    error = document.get("error") if isinstance(document, Mapping) else None
    details = error.get("details") if isinstance(error, Mapping) else None
    if isinstance(details, Sequence) and not isinstance(details, str):
        yield from (detail for detail in details if isinstance(detail, Mapping))


def _retry_info_ms(document: Any) -> int | None:
    delays = (duration_ms(str(detail["retryDelay"])) for detail in error_details(document) if "retryDelay" in detail)
    return next((delay for delay in delays if delay is not None), None)


def _reset_ms(headers: Mapping[str, str], now: datetime) -> int | None:
    """Returns the longest wait for an exhausted limit."""
    waits = [
        wait
        for limit in _LIMITS
        for prefix in ("x-ratelimit", "anthropic-ratelimit")
        for reset, remaining in (
            (f"{prefix}-reset-{limit}", f"{prefix}-remaining-{limit}"),
            (f"{prefix}-{limit}-reset", f"{prefix}-{limit}-remaining"),
        )
        if headers.get(remaining) == "0" and (wait := _wait_ms(headers.get(reset, ""), now)) is not None
    ]
    if waits:
        return max(waits)
    at_ms = headers.get("x-ratelimit-reset", "")
    if re.fullmatch(r"\d{13}", at_ms, re.ASCII):
        return _bounded(max(0, int(at_ms) - now.timestamp() * 1000))
    return None


def _wait_ms(text: str, now: datetime) -> int | None:
    if (delay := duration_ms(text)) is not None:
        return delay
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return None
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=UTC)
    return _bounded(max(0, (instant - now).total_seconds() * 1000))


def _milliseconds(text: str | None) -> int | None:
    if text is None or not re.fullmatch(r"\d{1,13}(\.\d{1,9})?", text.strip(), re.ASCII):
        return None
    return _bounded(float(text))


def _bounded(milliseconds: float) -> int | None:
    return round(milliseconds) if 0 <= milliseconds < MAX_DELAY_MS else None
