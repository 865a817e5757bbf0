"""Parses HTTP's ``Retry-After`` (RFC 9110, 10.2.3). Pure."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

_MAX_S: Final = 1e9
"""Longer times are ignored."""


def retry_after_ms(header: str | None, now: datetime) -> int | None:
    """Converts the header, a number of seconds or a date, to milliseconds; None for anything else. ``now`` is
    timezone-aware.
    """
    if not header:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            timestamp = parsedate_to_datetime(header)
        except (ValueError, OverflowError):
            return None
        seconds = (timestamp.replace(tzinfo=timestamp.tzinfo or UTC) - now).total_seconds()
    return max(0, round(seconds * 1000)) if abs(seconds) < _MAX_S else None
