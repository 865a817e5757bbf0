"""Limits on logging what a server sends without being asked."""

from structlog.testing import capture_logs
from toold.sources.mcp.server_output import LOG_WINDOW_S, MAX_LOG_LINE_CHARS, MAX_LOG_LINES, ServerLog


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
