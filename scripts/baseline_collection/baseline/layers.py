"""Where a call's time went: the daemon's timings taken apart into layers that do not overlap. Pure."""

from collections.abc import Sequence
from statistics import fmean

from .record import Call, Layers


def layers_of(call: Call) -> Layers:
    """The layers of one call, which add up to its latency.

    The daemon's ``queue_ms`` has both waits, the one before the tool and those for a provider's permit within it. What
    lies before the tool is taken to have been waiting, as far as it reaches. ``provider_ms`` of requests side by side
    may be more than the tool took; it counts up to that.
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
    """The means over calls, at least one."""
    parts = [layers_of(call) for call in calls]
    return Layers(**{name: fmean(getattr(part, name) for part in parts) for name in Layers.__struct_fields__})
