"""What Prometheus may ask: ``/metrics``. Counted once, where it happens; what others count is read at the scrape."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from ..protocol.calls import Cost, Usage
from ..version import __version__

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""Of the text that ``render`` makes; the newer OpenMetrics format is answered to nobody who has to ask for it."""

UNKNOWN_TOOL: Final = "unknown"
"""Stands for every name that is no tool's: callers must not be able to make new time series."""

_CALL_SECONDS: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
_QUEUE_SECONDS: Final = (0.001, 0.01, 0.1, 1, 5, 30, 300)


class Limit(Protocol):
    """A bound on what runs at once, as the scrape reads it."""

    @property
    def limit(self) -> int: ...
    @property
    def in_use(self) -> int: ...
    @property
    def waiting(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Gauges:
    """What is counted elsewhere, and how to read it."""

    limits: Mapping[str, Limit]
    """Name (``daemon``, ``kimi``, ``glm``) → permits."""
    connections: Callable[[], int]
    rows_written: Callable[[], int]
    rows_dropped: Callable[[], int]


class Metrics:
    """The daemon's metrics, in a registry of their own."""

    def __init__(self, *, is_tool: Callable[[str], bool], gauges: Gauges) -> None:
        # A time of birth beside each series would double the page.
        disable_created_metrics()  # type: ignore[no-untyped-call] # the library's
        self._is_tool = is_tool
        self._registry = CollectorRegistry()
        self._calls = Counter(
            "toold_calls", "Calls answered, by tool and outcome.", ["tool", "outcome"], registry=self._registry
        )
        self._seconds = Histogram(
            "toold_call_seconds",
            "From a call's arrival to its answer.",
            ["tool"],
            buckets=_CALL_SECONDS,
            registry=self._registry,
        )
        self._queue = Histogram(
            "toold_queue_seconds", "Waiting for permits.", buckets=_QUEUE_SECONDS, registry=self._registry
        )
        self._tokens = Counter(
            "toold_tokens",
            "Tokens, as the vendors counted them.",
            ["provider", "model", "direction"],
            registry=self._registry,
        )
        self._cost = Counter(
            "toold_cost",
            "Cost of the tokens by list price; what the simulator answers costs nothing.",
            ["provider", "model", "currency"],
            registry=self._registry,
        )
        self._provider_errors = Counter(
            "toold_provider_errors",
            "Completions that failed, by error code.",
            ["provider", "code"],
            registry=self._registry,
        )
        # Finding a labelled series by name takes longer than counting in it, so the pairs seen are kept.
        self._ended: dict[tuple[str, str], tuple[Counter, Histogram]] = {}
        self._registry.register(_Scraped(gauges))
        ProcessCollector(registry=self._registry)

    def call_ended(self, tool: str, outcome: str, *, seconds: float, queue_seconds: float) -> None:
        """A call got its answer; ``outcome`` is ``ok`` or the error's code."""
        pair = self._ended.get((tool, outcome)) or self._series(tool, outcome)
        calls, duration = pair
        calls.inc()
        duration.observe(seconds)
        self._queue.observe(queue_seconds)

    def _series(self, tool: str, outcome: str) -> tuple[Counter, Histogram]:
        known = self._is_tool(tool)
        label = tool if known else UNKNOWN_TOOL
        pair = self._calls.labels(label, outcome), self._seconds.labels(label)
        if known:
            self._ended[tool, outcome] = pair
        return pair

    def tokens_used(self, provider: str, model: str, usage: Usage, cost: Cost | None) -> None:
        """A completion was paid for."""
        self._tokens.labels(provider, model, "input").inc(usage.input_tokens)
        self._tokens.labels(provider, model, "output").inc(usage.output_tokens)
        if cost:
            self._cost.labels(provider, model, cost.currency).inc(cost.amount)

    def provider_failed(self, provider: str, code: str) -> None:
        """A completion ended in an error."""
        self._provider_errors.labels(provider, code).inc()

    def render(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self._registry)


class _Scraped(Collector):
    """Reads at the scrape what is counted elsewhere."""

    def __init__(self, gauges: Gauges) -> None:
        self._gauges = gauges

    def collect(self) -> Iterable[Metric]:
        yield InfoMetricFamily("toold", "The daemon.", value={"version": __version__})
        in_use = GaugeMetricFamily("toold_permits_in_use", "Permits held.", labels=["limit"])
        bound = GaugeMetricFamily("toold_permits_limit", "Permits there are.", labels=["limit"])
        waiting = GaugeMetricFamily("toold_permits_waiting", "Calls that wait for a permit.", labels=["limit"])
        for name, limit in self._gauges.limits.items():
            in_use.add_metric([name], limit.in_use)
            bound.add_metric([name], limit.limit)
            waiting.add_metric([name], limit.waiting)
        yield from (in_use, bound, waiting)
        yield GaugeMetricFamily("toold_connections", "Connections open.", value=self._gauges.connections())
        yield CounterMetricFamily("toold_audit_rows_written", "Audit rows kept.", value=self._gauges.rows_written())
        yield CounterMetricFamily("toold_audit_rows_dropped", "Audit rows lost.", value=self._gauges.rows_dropped())
