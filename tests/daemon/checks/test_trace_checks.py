"""The doctor's check of the collector of traces."""

from pathlib import Path

import pytest
from tests.daemon.spans.collector import Answer, running_collector
from toold.daemon.checks.trace_checks import collector as check
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.config.settings import Settings


def settings(tmp_path: Path, **otel: str) -> Settings:
    env = {f"TOOLD_OTEL__{name.upper()}": value for name, value in otel.items()}
    return load_settings({}, env=env, cwd=tmp_path)


async def test_without_a_collector_there_is_no_check(tmp_path: Path) -> None:
    """Traces are optional."""
    assert await check(settings(tmp_path), {}) == []


@pytest.mark.parametrize(
    ("status", "expected", "words"),
    [(200, "ok", "accepts spans"), (401, "fail", "HTTP 401"), (503, "warn", "HTTP 503")],
)
async def test_the_collector_gets_an_empty_request(tmp_path: Path, status: int, expected: str, words: str) -> None:
    """Its answer says whether it takes spans."""
    with running_collector() as collector:
        collector.answers.append(Answer(status))
        (result,) = await check(settings(tmp_path, endpoint=collector.url), {})
    assert (result.name, result.status) == ("traces", expected)
    assert words in result.message
    assert not collector.spans


async def test_an_absent_collector_is_a_warning(tmp_path: Path) -> None:
    """The daemon starts without it."""
    (result,) = await check(settings(tmp_path, endpoint="http://127.0.0.1:1"), {})
    assert result.status == "warn"


async def test_a_header_that_cannot_be_read_is_a_failure(tmp_path: Path) -> None:
    """The daemon does not start without it."""
    (tmp_path / "toold.toml").write_text('[otel]\nendpoint = "http://h"\nheaders = { a = { env = "NO_SUCH_KEY" } }')
    (result,) = await check(load_settings({}, env={}, cwd=tmp_path), {})
    assert (result.status, "NO_SUCH_KEY" in result.message) == ("fail", True)
