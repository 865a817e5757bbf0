"""HTTP's ``Retry-After`` (RFC 9110, 10.2.3), as vendors, APIs and other servers send it. Pure."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

_MAX_S: Final = 1e9
"""More is no time to wait."""


def retry_after_ms(header: str | None, now: datetime) -> int | None:
    """The header in milliseconds, whether it counts seconds or names a date; None for anything else. ``now`` is
    aware.
    """
    if not header:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            moment = parsedate_to_datetime(header)
        except (ValueError, OverflowError):
            return None
        seconds = (moment.replace(tzinfo=moment.tzinfo or UTC) - now).total_seconds()
    return max(0, round(seconds * 1000)) if abs(seconds) < _MAX_S else None
