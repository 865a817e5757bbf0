"""What a server says beside its answers reaches the log, so much of it."""

from structlog.testing import capture_logs
from toold.sources.mcp.server_log import LINE_CHARS, LINES, WINDOW_S, ServerLog


def test_lines_are_bounded_and_the_rest_is_counted() -> None:
    """In number within a time, and in length; secrets are hidden before they are cut."""
    now = 0.0
    chatter = ServerLog("files", lambda text: text.replace("hunter2", "[bound]"), lambda: now)
    with capture_logs() as logs:
        for _ in range(LINES + 7):
            chatter.line("hunter2 " + "x" * 1000)
        assert len(logs) == LINES
        assert logs[0]["said"].startswith("[bound] x")
        assert len(logs[0]["said"]) == LINE_CHARS
        now = WINDOW_S
        chatter.line("again")
    assert [log.get("lines_left_out") for log in logs[LINES:]] == [7, None]
    assert logs[-1]["said"] == "again"
