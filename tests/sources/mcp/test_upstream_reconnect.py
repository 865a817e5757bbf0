"""When a server is tried again, and what is said meanwhile."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.sources.mcp import upstream_reconnect
from toold.sources.mcp.upstream_reconnect import UpstreamUnavailableError, explained, pause_before, unavailable


@given(st.integers(0, 10_000))
def test_pauses_grow_up_to_a_minute(attempt: int) -> None:
    """Each is between half and all of what it may be."""
    longest = min(0.5 * 2.0 ** min(attempt, 100), 60.0)
    assert longest / 2 <= pause_before(attempt) <= longest


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (UpstreamUnavailableError("it hangs"), "it hangs"),
        (ExceptionGroup("", [ExceptionGroup("", [UpstreamUnavailableError("it hangs")])]), "it hangs"),
        (
            FileNotFoundError(2, "No such file", "server"),
            "its command, or the directory it is to run in, is not there (server)",
        ),
        (PermissionError(13, "Permission denied"), "it cannot be started or reached (Permission denied)"),
        (RuntimeError("odd"), "it cannot be used (RuntimeError: odd)"),
    ],
)
def test_the_first_cause_is_told(error: Exception, said: str) -> None:
    """However deep in groups."""
    assert explained(error) == said


def test_a_call_is_told_when_to_come_again() -> None:
    """Nothing was executed."""
    error = unavailable("files", "it hangs", 2.0)
    assert (error.executed, error.retryable, error.retry_after_ms) == ("no", True, 2000)
    assert error.message == "files is not available: it hangs. It is tried again by itself."
    assert unavailable("files", "it hangs.", 2.0).message == error.message  # a sentence has one end
    assert unavailable("files", "it hangs", -1.0).retry_after_ms == 100
    assert upstream_reconnect.MAX_PAUSE_S == 60
