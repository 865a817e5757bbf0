"""Summaries of calls, one per tool and load, and the record of a draft."""

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import msgspec

from .draft import Draft
from .intervals import quantiles, rate
from .layers import mean_layers
from .plan import planned
from .record import Call, Latency, Load, Money, Record, Summary, Tokens


def record_of(draft: Draft, contention: float | None) -> Record:
    """The record of a draft, complete or not."""
    calls = tuple(sorted(draft.calls, key=lambda call: call.offset_s))
    return msgspec.structs.replace(
        draft.run,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        contention=contention,
        complete=len(calls) == planned(draft.run.configuration),
        simulated=draft.run.simulated or any(call.simulated for call in calls),
        calls=calls,
        summaries=tuple(summaries(calls)),
    )


def summaries(calls: Iterable[Call]) -> list[Summary]:
    """One summary per tool and load that has calls, in the order of their first calls."""
    groups: dict[tuple[Load, str], list[Call]] = defaultdict(list)
    for call in calls:
        groups[call.load, call.tool_name].append(call)
    return [_summary(tool, load, group) for (load, tool), group in groups.items()]


def _summary(tool: str, load: Load, calls: Sequence[Call]) -> Summary:
    good = [call for call in calls if call.status == "success"]
    return Summary(
        tool_name=tool,
        load=load,
        count=len(calls),
        successes=len(good),
        success_rate=rate(len(good), len(calls)),
        latency_ms=latency([call.latency_ms for call in good]) if good else None,
        layers=mean_layers(good) if good else None,
        throughput_per_s=throughput_per_s(calls),
        errors=dict(Counter(call.error_code or "" for call in calls if call.status == "error").most_common()),
        tokens=_tokens(calls),
        cost=_cost(calls),
        output_bytes=sum(call.output_bytes for call in calls),
    )


def latency(values: Sequence[float]) -> Latency:
    """The summary of one or more latencies, in milliseconds."""
    p50, p90, p95, p99 = quantiles(values, (0.5, 0.9, 0.95, 0.99))
    return Latency(
        p50=p50,
        p90=p90,
        p95=p95,
        p99=p99,
        min=min(values),
        max=max(values),
        mean=statistics.fmean(values),
        stdev=statistics.stdev(values) if len(values) > 1 else None,
    )


def throughput_per_s(calls: Sequence[Call]) -> float | None:
    """Successes divided by the duration of the turns, each from its first start to its last end; None if that is 0."""
    turns: dict[tuple[int, int], list[Call]] = defaultdict(list)
    for call in calls:
        turns[call.segment, call.round].append(call)
    spent_s = sum(
        max(call.offset_s + call.latency_ms / 1000 for call in turn) - min(call.offset_s for call in turn)
        for turn in turns.values()
    )
    return sum(call.status == "success" for call in calls) / spent_s if spent_s > 0 else None


def _tokens(calls: Sequence[Call]) -> Tokens | None:
    counted = [call.tokens for call in calls if call.tokens]
    if not counted:
        return None
    return Tokens(input=sum(one.input for one in counted), output=sum(one.output for one in counted))


def _cost(calls: Sequence[Call]) -> tuple[Money, ...]:
    sums: dict[str, float] = defaultdict(float)
    for call in calls:
        if call.cost:
            sums[call.cost.currency] += call.cost.amount
    return tuple(Money(amount=round(amount, 9), currency=currency) for currency, amount in sorted(sums.items()))
