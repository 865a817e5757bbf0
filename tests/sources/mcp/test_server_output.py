"""Limits on reading and logging what a server sends without being asked."""

from structlog.testing import capture_logs
from toold.sources.mcp.server_output import LOG_WINDOW_S, MAX_LOG_LINE_CHARS, MAX_LOG_LINES, ReadRate, ServerLog


class Clock:
    """A clock that the test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_flood_is_slowed_down() -> None:
    """A burst of two seconds' worth is read at once, then the rate applies."""
    rate = ReadRate(10.0, Clock())
    assert [rate.consume() for _ in range(20)] == [0.0] * 20
    assert rate.consume() == 0.1
    assert rate.consume(9) == 1.0


def test_a_pause_refills_the_bucket() -> None:
    """Up to two seconds' worth."""
    clock = Clock()
    rate = ReadRate(10.0, clock)
    rate.consume(20)
    clock.now = 0.5
    assert rate.consume(5) == 0.0
    clock.now = 1000.0
    assert rate.consume(20) == 0.0
    assert rate.consume() == 0.1


def test_requests_pay_for_their_answers() -> None:
    """Any number of calls is read without a wait."""
    rate = ReadRate(10.0, Clock())
    rate.consume(20)
    for _ in range(1000):
        rate.add_request()
        assert rate.consume() == 0.0


def test_log_lines_are_limited_and_the_rest_is_counted() -> None:
    """In number per window and in length; secrets are removed before a line is truncated."""
    now = 0.0
    server_log = ServerLog("files", lambda text: text.replace("hunter2", "[bound]"), lambda: now)
    with capture_logs() as logs:
        for _ in range(MAX_LOG_LINES + 7):
            server_log.write("hunter2 " + "x" * 1000)
        assert len(logs) == MAX_LOG_LINES
        assert logs[0]["line"].startswith("[bound] x")
        assert len(logs[0]["line"]) == MAX_LOG_LINE_CHARS
        now = LOG_WINDOW_S
        server_log.write("again")
    assert [log.get("dropped_lines") for log in logs[MAX_LOG_LINES:]] == [7, None]
    assert logs[-1]["line"] == "again"
