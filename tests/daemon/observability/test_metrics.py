"""The metrics, as Prometheus reads them."""

import datetime as dt
from dataclasses import dataclass

import pytest
from prometheus_client.parser import text_string_to_metric_families
from toold.daemon.observability.metrics import MetricGauges, Metrics
from toold.protocol.error_codes import ToolError
from toold.protocol.tool_call import Cost, Metadata, ModelUsage, Timings, ToolResult, Usage
from toold.store import DailyUsage

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@dataclass
class Permits:
    limit: int
    in_use: int
    waiting: int


@pytest.fixture
def limits() -> dict[str, Permits]:
    return {"daemon": Permits(24, 3, 0), "glm": Permits(4, 4, 100)}


@pytest.fixture
def connections() -> list[str]:
    return []


@pytest.fixture
def metrics(limits: dict[str, Permits], connections: list[str]) -> Metrics:
    gauges = MetricGauges(
        limits,
        lambda: len(connections),
        calls=lambda: 3,
        rows_written=lambda: 7,
        rows_dropped=lambda: 2,
        rows_unsent=lambda: 5,
    )
    return Metrics(is_tool={"echo", "chat"}.__contains__, gauges=gauges)


def samples(metrics: Metrics) -> Samples:
    families = text_string_to_metric_families(metrics.render().decode())
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def _ended(outcome: str, seconds: float, queue_seconds: float) -> ToolResult:
    error = None if outcome == "ok" else ToolError(outcome, "It failed.", executed="no", retryable=False)
    return ToolResult(Metadata(seconds * 1000, Timings(queue_ms=queue_seconds * 1000)), error=error)


def sample(metrics: Metrics, name: str, **labels: str) -> float:
    return samples(metrics)[name, frozenset(labels.items())]


def test_calls_are_counted_by_tool_and_outcome(metrics: Metrics) -> None:
    """Each answer counts once under its tool and outcome, with its time and its wait."""
    metrics.call_ended("echo", _ended("ok", 0.003, 0.0))
    metrics.call_ended("echo", _ended("ok", 2.0, 1.5))
    metrics.call_ended("chat", _ended("TIMEOUT", 30.0, 0.0))
    assert sample(metrics, "toold_calls_total", tool="echo", outcome="ok") == 2
    assert sample(metrics, "toold_calls_total", tool="chat", outcome="TIMEOUT") == 1
    assert sample(metrics, "toold_call_seconds_sum", tool="echo") == pytest.approx(2.003)
    assert sample(metrics, "toold_call_seconds_bucket", tool="echo", le="0.005") == 1
    assert sample(metrics, "toold_queue_seconds_count") == 3
    assert sample(metrics, "toold_queue_seconds_sum") == 1.5


def test_the_delays_of_the_event_loop_are_a_histogram(metrics: Metrics) -> None:
    """A turn of more than 50 ms is above the bucket of 0.05."""
    for seconds in (0.0, 0.05, 0.051):
        metrics.loop_lagged(seconds)
    assert sample(metrics, "toold_loop_lag_seconds_bucket", le="0.05") == 2
    assert sample(metrics, "toold_loop_lag_seconds_count") == 3


def test_unknown_tool_names_make_no_series(metrics: Metrics) -> None:
    """Unknown tool names are counted together and not stored."""
    for number in range(100):
        metrics.call_ended(f"tool-{number}", _ended("TOOL_NOT_FOUND", 0.0, 0.0))
    assert sample(metrics, "toold_calls_total", tool="unknown", outcome="TOOL_NOT_FOUND") == 100
    assert b"tool-1" not in metrics.render()
    assert len(samples(metrics)) < 60


def test_tokens_and_cost(metrics: Metrics) -> None:
    """Tokens count by direction, cost by currency, both by tool; a completion without a price has none."""
    metrics.model_used("chat", ModelUsage("kimi", "k2", 1, Usage(100, 20), Cost(0.25, "USD")))
    metrics.model_used("chat", ModelUsage("kimi", "k2", 1, Usage(1, 2)))
    metrics.model_used("no-tool", ModelUsage("kimi", "k2", 1, Usage(5, 0)))
    of = {"provider": "kimi", "model": "k2", "tool": "chat"}
    assert sample(metrics, "toold_tokens_total", direction="input", **of) == 101
    assert sample(metrics, "toold_tokens_total", direction="output", **of) == 22
    assert sample(metrics, "toold_tokens_total", direction="input", **of | {"tool": "unknown"}) == 5
    assert sample(metrics, "toold_cost_total", currency="USD", **of) == 0.25


def test_todays_totals_are_restored_and_end_at_midnight(limits: dict[str, Permits]) -> None:
    """Usage from before the start counts, until the next day (UTC)."""
    now = [dt.datetime(2026, 5, 1, 23, 59, tzinfo=dt.UTC).timestamp()]
    metrics = Metrics(is_tool=lambda _: True, gauges=MetricGauges(limits, *[lambda: 0] * 5), clock=lambda: now[0])
    before = DailyUsage(
        day="2026-05-01", principal="local", tool="chat", provider="kimi", model="k2", simulated=False, currency="USD",
        completions=3, input_tokens=1000, output_tokens=10, cached_tokens=0, cost=0.5, estimated=0,
    )  # fmt: skip
    metrics.restore([before])
    metrics.model_used("chat", ModelUsage("kimi", "k2", 1, Usage(1, 2), Cost(0.25, "USD")))
    of = {"provider": "kimi", "model": "k2", "tool": "chat"}
    assert sample(metrics, "toold_today_tokens", direction="input", **of) == 1001
    assert sample(metrics, "toold_today_cost", currency="USD", **of) == 0.75
    assert sample(metrics, "toold_tokens_total", direction="input", **of) == 1
    now[0] += 120
    assert not any(name.startswith("toold_today") for name, _ in samples(metrics))
    metrics.model_used("chat", ModelUsage("kimi", "k2", 1, Usage(7, 2)))
    assert sample(metrics, "toold_today_tokens", direction="input", **of) == 7


def test_provider_errors(metrics: Metrics) -> None:
    """Failed completions count by provider and code."""
    metrics.provider_failed("glm", "RATE_LIMITED")
    assert sample(metrics, "toold_provider_errors_total", provider="glm", code="RATE_LIMITED") == 1


def test_gauges_are_read_at_the_scrape(metrics: Metrics, limits: dict[str, Permits], connections: list[str]) -> None:
    """Permits and connections are not counted twice: each scrape shows what is so now."""
    assert sample(metrics, "toold_permits_in_use", limit="daemon") == 3
    assert sample(metrics, "toold_connections") == 0
    limits["daemon"].in_use = 5
    connections.append("one")
    assert sample(metrics, "toold_permits_in_use", limit="daemon") == 5
    assert sample(metrics, "toold_permits_limit", limit="glm") == 4
    assert sample(metrics, "toold_permits_waiting", limit="glm") == 100
    assert sample(metrics, "toold_connections") == 1
    assert sample(metrics, "toold_calls_running") == 3
    assert sample(metrics, "toold_audit_rows_written_total") == 7
    assert sample(metrics, "toold_audit_rows_dropped_total") == 2
    assert sample(metrics, "toold_audit_rows_unsent") == 5


def test_two_daemons_in_one_process_count_apart(metrics: Metrics, limits: dict[str, Permits]) -> None:
    """Nothing is kept in a registry that all share."""
    other = Metrics(is_tool=lambda _: True, gauges=MetricGauges(limits, *[lambda: 0] * 5))
    other.call_ended("echo", _ended("ok", 0.0, 0.0))
    assert not any(name == "toold_calls_total" for name, _ in samples(metrics))


def test_the_version_is_a_metric(metrics: Metrics) -> None:
    """Dashboards see which toold runs, and no series has a second one for its time of birth."""
    names = {name for name, _ in samples(metrics)}
    assert "toold_info" in names
    assert not any(name.endswith("_created") for name in names)
