"""The log lines that are kept of each source."""

from toold.daemon.observability.logging_setup import remove_bound, remove_secrets
from toold.daemon.observability.source_log import MAX_LINES, MAX_SOURCES, keep_source_line, source_lines


def log(**event: object) -> None:
    """Pass a line through the processors that remove secrets and keep lines, in their order."""
    processed = dict(event)
    for processor in (remove_secrets, remove_bound, keep_source_line):
        processed = dict(processor(None, "info", processed))


def test_lines_about_a_source_are_kept_without_secrets() -> None:
    """Newest first, with their other values; lines about nothing else, and no secret."""
    log(event="source ready", source="one-source", tools=3, level="info")
    log(event="server says", source="one-source", line="token sk-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", level="warning")
    log(event="call ended", tool="echo", level="info")
    lines = source_lines("one-source")
    assert [line.level for line in lines] == ["warning", "info"]
    assert lines[1].text == "source ready tools=3"
    assert "sk-aaaa" not in lines[0].text


def test_the_lines_are_bounded() -> None:
    """The oldest lines of a source go, and of too many sources the one that logged first."""
    for number in range(MAX_LINES + 5):
        log(event=f"line {number}", source="many-lines")
    assert len(source_lines("many-lines")) == MAX_LINES
    assert source_lines("many-lines")[0].text == f"line {MAX_LINES + 4}"
    for number in range(MAX_SOURCES + 1):
        log(event="x", source=f"source-{number}")
    assert source_lines("many-lines") == []
    assert source_lines("never-logged") == []
