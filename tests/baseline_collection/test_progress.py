"""The progress line of a run."""

from collections.abc import Callable

from baseline.progress import Watch
from baseline.record import Call, Load


def test_line_has_tool_median_and_failures(make_call: Callable[..., Call]) -> None:
    """After each call the line has the tool, its running median under this load, and the number of failures so far."""
    watch = Watch()
    lines = []
    for call in (
        make_call(latency_ms=1.0),
        make_call(latency_ms=3.0),
        make_call(tool_name="chat", load=Load(concurrency=8), status="error"),
    ):
        watch.note(call)
        lines.append(watch.line(call))
    assert lines == [
        "echo, 1 at once: p50 1 ms",
        "echo, 1 at once: p50 2 ms",
        "chat, 8 at once: no success yet, 1 failed",
    ]
