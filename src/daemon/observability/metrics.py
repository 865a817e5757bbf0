"""The Prometheus metrics at ``/metrics``. Events are counted when they happen; other values are read at the scrape."""

import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final, Protocol

from prometheus_client import (
    CollectorRegistry,
    Counter,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from ...protocol.tool_call import Metadata, ModelUsage, ToolResult
from ...store import DailyUsage, day_of
from ...version import __version__

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""The content type of ``render``. The newer OpenMetrics format is not supported."""

UNKNOWN_TOOL: Final = "unknown"
"""Replaces every name that is not a tool's, so that callers cannot create time series."""

_CALL_SECONDS: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
_LAG_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)
_QUEUE_SECONDS: Final = (0.001, 0.01, 0.1, 1, 5, 30, 300)


class LimitGauge(Protocol):
    """A concurrency limit, which the scrape reads."""

    @property
    def limit(self) -> int: ...
    @property
    def in_use(self) -> int: ...
    @property
    def waiting(self) -> int: ...


class HookCount(Protocol):
    """The counts of questions to one hook about one event, which the scrape reads."""

    @property
    def outcomes(self) -> Mapping[Any, int]: ...
    @property
    def seconds(self) -> float: ...


class SpanCounts(Protocol):
    """The counts of spans, which the scrape reads."""

    def counts(self) -> Mapping[str, int]: ...
    @property
    def waiting(self) -> int: ...


@dataclass(frozen=True, slots=True)
class MetricGauges:
    """Readers of values that are counted elsewhere."""

    limits: Mapping[str, LimitGauge]
    """Name (``daemon``, ``kimi``, ``glm``) → permits."""
    connections: Callable[[], int]
    calls: Callable[[], int]
    rows_written: Callable[[], int]
    rows_dropped: Callable[[], int]
    rows_unsent: Callable[[], int]
    spans: SpanCounts | None = field(default=None, kw_only=True)
    """None if no traces are recorded."""
    hooks: Callable[[], Mapping[tuple[str, Any], HookCount]] = field(default=dict, kw_only=True)
    """The questions to hooks, by hook and event."""
    nodes: Callable[[], Mapping[str, int]] | None = field(default=None, kw_only=True)
    """This node's view of the cluster: state → number of nodes."""


class Metrics:
    """The daemon's metrics, in a separate registry."""

    def __init__(
        self, *, is_tool: Callable[[str], bool], gauges: MetricGauges, clock: Callable[[], float] = time.time
    ) -> None:
        # Without this, each series would have a creation time, which doubles the page.
        disable_created_metrics()  # type: ignore[no-untyped-call] # untyped in the library
        self._is_tool = is_tool
        self._registry = CollectorRegistry()
        self._tokens = Counter(
            "toold_tokens",
            "Tokens, as reported by the vendors, or estimated.",
            ["provider", "model", "tool", "direction"],
            registry=self._registry,
        )
        self._cost = Counter(
            "toold_cost",
            "Cost of the tokens by list price; simulated answers cost nothing.",
            ["provider", "model", "tool", "currency"],
            registry=self._registry,
        )
        self._provider_errors = Counter(
            "toold_provider_errors",
            "Completions that failed, by error code.",
            ["provider", "code"],
            registry=self._registry,
        )
        self._known: set[str] = set()
        self._answers = _Answers()
        self._registry.register(self._answers)
        self._today = _Today(clock)
        self._registry.register(self._today)
        self._registry.register(_Scraped(gauges))
        ProcessCollector(registry=self._registry)

    def call_ended(self, tool: str, result: ToolResult) -> None:
        """Count an answered or refused call."""
        # Only the first call of a tool looks its name up.
        if tool not in self._known:
            if self._is_tool(tool):
                self._known.add(tool)
            else:
                tool = UNKNOWN_TOOL
        error = result.error
        self._answers.add(tool, "ok" if error is None else error.code, result.metadata)

    def loop_lagged(self, seconds: float) -> None:
        """Count one measurement of the event loop's delay."""
        self._answers.lag.observe(seconds)

    def model_used(self, tool: str, used: ModelUsage) -> None:
        """Count the tokens and cost of a call's completions by one model."""
        tool = tool if self._is_tool(tool) else UNKNOWN_TOOL
        labels, usage, cost = (used.provider, used.model, tool), used.usage, used.cost
        self._tokens.labels(*labels, "input").inc(usage.input_tokens)
        self._tokens.labels(*labels, "output").inc(usage.output_tokens)
        if cost:
            self._cost.labels(*labels, cost.currency).inc(cost.amount)
        self._today.add(
            labels, usage.input_tokens, usage.output_tokens, cost.currency if cost else "", cost.amount if cost else 0.0
        )

    def restore(self, sums: Iterable[DailyUsage]) -> None:
        """Add the spending of today from before the process started."""
        for total in sums:
            tool = total.tool if self._is_tool(total.tool) else UNKNOWN_TOOL
            self._today.add(
                (total.provider, total.model, tool), total.input_tokens, total.output_tokens, total.currency, total.cost
            )

    def provider_failed(self, provider: str, code: str) -> None:
        """Count a failed completion."""
        self._provider_errors.labels(provider, code).inc()

    def render(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)


class _Distribution:
    """A histogram of times. Only the event loop's thread counts, so it needs no lock."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._sum += seconds

    def add_to(self, family: HistogramMetricFamily, labels: list[str]) -> None:
        names = [*map(floatToGoString, self._bounds), "+Inf"]
        family.add_metric(labels, list(zip(names, accumulate(self._counts), strict=True)), self._sum)


_Ended = tuple[str, str, Metadata]
"""An answered call: its tool, its outcome and the metadata of its result."""
_COUNTED_AT_ONCE: Final = 256
"""Ended calls are counted in batches of this size, and before each scrape: half a millisecond."""


class _Answers(Collector):
    """The counters of every call and of the event loop. The library's counters would take three times as long."""

    def __init__(self) -> None:
        self._ended: list[_Ended] = []
        self._calls: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._seconds: defaultdict[str, _Distribution] = defaultdict(lambda: _Distribution(_CALL_SECONDS))
        self._cached: defaultdict[str, int] = defaultdict(int)
        self._queue = _Distribution(_QUEUE_SECONDS)
        self.lag = _Distribution(_LAG_SECONDS)

    def add(self, tool: str, outcome: str, metadata: Metadata) -> None:
        self._ended.append((tool, outcome, metadata))
        if len(self._ended) == _COUNTED_AT_ONCE:
            self._count()

    def _count(self) -> None:
        for tool, outcome, metadata in self._ended:
            self._calls[tool, outcome] += 1
            self._seconds[tool].observe(metadata.latency_ms / 1000)
            self._queue.observe(metadata.timings.queue_ms / 1000)
            if metadata.cache_age_s is not None:
                self._cached[tool] += 1
        self._ended.clear()

    def collect(self) -> Iterable[Metric]:
        self._count()
        calls = CounterMetricFamily("toold_calls", "Calls answered, by tool and outcome.", labels=["tool", "outcome"])
        for (tool, outcome), number in self._calls.items():
            calls.add_metric([tool, outcome], number)
        cached = CounterMetricFamily("toold_cached_calls", "Calls answered from the cache, by tool.", labels=["tool"])
        for tool, number in self._cached.items():
            cached.add_metric([tool], number)
        seconds = HistogramMetricFamily(
            "toold_call_seconds", "Time from a call's arrival to its answer.", labels=["tool"]
        )
        for tool, distribution in self._seconds.items():
            distribution.add_to(seconds, [tool])
        queue = HistogramMetricFamily("toold_queue_seconds", "Time waiting for permits.", labels=[])
        self._queue.add_to(queue, [])
        lag = HistogramMetricFamily("toold_loop_lag_seconds", "Delay of the event loop's timer.", labels=[])
        self.lag.add_to(lag, [])
        yield from (calls, cached, seconds, queue, lag)


class _Today(Collector):
    """Tokens and cost since midnight UTC. Unlike the counters, they are restored at start."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._day = ""
        # Provider, model, tool, and direction or currency.
        self._tokens: defaultdict[tuple[str, str, str, str], float] = defaultdict(float)
        self._cost: defaultdict[tuple[str, str, str, str], float] = defaultdict(float)

    def add(
        self, labels: tuple[str, str, str], input_tokens: int, output_tokens: int, currency: str, cost: float
    ) -> None:
        self._reset_at_midnight()
        self._tokens[*labels, "input"] += input_tokens
        self._tokens[*labels, "output"] += output_tokens
        if currency:
            self._cost[*labels, currency] += cost

    def collect(self) -> Iterable[Metric]:
        self._reset_at_midnight()
        tokens = GaugeMetricFamily(
            "toold_today_tokens", "Tokens since 0:00 UTC.", labels=["provider", "model", "tool", "direction"]
        )
        cost = GaugeMetricFamily(
            "toold_today_cost", "Cost since 0:00 UTC.", labels=["provider", "model", "tool", "currency"]
        )
        for family, values in ((tokens, self._tokens), (cost, self._cost)):
            for labels, value in values.items():
                family.add_metric(labels, value)
            yield family

    def _reset_at_midnight(self) -> None:
        day = day_of(self._clock())
        if day != self._day:
            self._day = day
            self._tokens.clear()
            self._cost.clear()


class _Scraped(Collector):
    """Values that are read at the scrape."""

    def __init__(self, gauges: MetricGauges) -> None:
        self._gauges = gauges

    def collect(self) -> Iterable[Metric]:
        yield InfoMetricFamily("toold", "The daemon.", value={"version": __version__})
        if self._gauges.nodes is not None:
            nodes = GaugeMetricFamily("toold_nodes", "Nodes of the cluster, as this one sees it.", labels=["state"])
            for state, number in self._gauges.nodes().items():
                nodes.add_metric([state], number)
            yield nodes
        in_use = GaugeMetricFamily("toold_permits_in_use", "Permits in use.", labels=["limit"])
        bound = GaugeMetricFamily("toold_permits_limit", "Permits in total.", labels=["limit"])
        waiting = GaugeMetricFamily("toold_permits_waiting", "Calls waiting for a permit.", labels=["limit"])
        for name, limit in self._gauges.limits.items():
            in_use.add_metric([name], limit.in_use)
            bound.add_metric([name], limit.limit)
            waiting.add_metric([name], limit.waiting)
        yield from (in_use, bound, waiting)
        yield GaugeMetricFamily(
            "toold_calls_running",
            "Calls whose answer is not sent yet, waiting ones included.",
            value=self._gauges.calls(),
        )
        yield GaugeMetricFamily("toold_connections", "Open connections.", value=self._gauges.connections())
        yield CounterMetricFamily("toold_audit_rows_written", "Audit rows written.", value=self._gauges.rows_written())
        yield CounterMetricFamily("toold_audit_rows_dropped", "Audit rows lost.", value=self._gauges.rows_dropped())
        yield GaugeMetricFamily(
            "toold_audit_rows_unsent", "Audit rows not sent to Supabase yet.", value=self._gauges.rows_unsent()
        )
        yield from _of_hooks(self._gauges.hooks())
        if self._gauges.spans is not None:
            spans = CounterMetricFamily(
                "toold_spans", "Spans that the collector took, and lost ones by reason.", labels=["outcome"]
            )
            for outcome, number in self._gauges.spans.counts().items():
                spans.add_metric([outcome], number)
            yield spans
            yield GaugeMetricFamily("toold_spans_waiting", "Spans not sent yet.", value=self._gauges.spans.waiting)


def _of_hooks(hooks: Mapping[tuple[str, Any], HookCount]) -> Iterable[Metric]:
    if not hooks:
        return
    asked = CounterMetricFamily(
        "toold_hook_answers", "Questions to hooks, by outcome.", labels=["hook", "event", "outcome"]
    )
    seconds = CounterMetricFamily("toold_hook_seconds", "Time that calls waited for hooks.", labels=["hook", "event"])
    for (name, event), counts in hooks.items():
        for outcome, number in counts.outcomes.items():
            asked.add_metric([name, event, outcome], number)
        seconds.add_metric([name, event], counts.seconds)
    yield from (asked, seconds)
