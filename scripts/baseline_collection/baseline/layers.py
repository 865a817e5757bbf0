"""Splits a call's latency into non-overlapping layers, from the daemon's timings. Pure."""

from collections.abc import Sequence
from statistics import fmean

from .record import Call, Layers


def layers_of(call: Call) -> Layers:
    """The layers of one call, which add up to its latency.

    The daemon's ``queue_ms`` includes the wait before the tool and the waits for a provider's permit within it. Time
    before the tool counts as waiting, up to ``queue_ms``. ``provider_ms`` of parallel requests may exceed the tool's
    time; it counts up to that.
    """
    timings = call.timings
    if timings is None:
        return Layers(
            late_ms=call.late_ms,
            connection_ms=call.latency_ms - call.late_ms,
            daemon_ms=0.0,
            queue_ms=0.0,
            tool_ms=0.0,
            provider_ms=0.0,
        )
    on_the_way = max(call.latency_ms - call.late_ms, 0.0)
    daemon = min(timings.daemon_ms, on_the_way)
    tool = min(timings.tool_ms, daemon)
    before_tool = min(timings.queue_ms, daemon - tool)
    within_tool = min(timings.queue_ms - before_tool, tool)
    provider = min(timings.provider_ms, tool - within_tool)
    return Layers(
        late_ms=min(call.late_ms, call.latency_ms),
        connection_ms=on_the_way - daemon,
        daemon_ms=daemon - tool - before_tool,
        queue_ms=before_tool + within_tool,
        tool_ms=tool - within_tool - provider,
        provider_ms=provider,
    )


def mean_layers(calls: Sequence[Call]) -> Layers:
    """The mean layers of one or more calls."""
    parts = [layers_of(call) for call in calls]
    return Layers(**{name: fmean(getattr(part, name) for part in parts) for name in Layers.__struct_fields__})
