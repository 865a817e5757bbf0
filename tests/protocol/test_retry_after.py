"""Retry-After: seconds, dates, and invalid values."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.retry_after import retry_after_ms

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "milliseconds"),
    [
        ("3", 3000),
        ("0.5", 500),
        ("Thu, 01 Jan 2026 12:00:10 GMT", 10_000),
        ("Thu, 01 Jan 2026 12:00:10 -0000", 10_000),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 0),
        ("-1", 0),
        (None, None),
        ("", None),
        ("soon", None),
        ("inf", None),
        ("nan", None),
        ("9" * 400, None),
        ("Thu, 01 Jan 2026 12:00:10 +99999999999999", None),
        ("Thu, 01 Jan 99999 12:00:10 GMT", None),
    ],
)
def test_seconds_and_dates(header: str | None, milliseconds: int | None) -> None:
    """Past dates mean 0; invalid and unreasonable values mean None."""
    assert retry_after_ms(header, NOW) == milliseconds


@given(st.text(max_size=60))
def test_no_header_raises(header: str) -> None:
    """Any text yields a time or None."""
    wait = retry_after_ms(header, NOW)
    assert wait is None or wait >= 0
