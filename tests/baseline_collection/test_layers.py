"""The layers of a call: they do not overlap, and add up to its latency."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baseline.layers import layers_of, mean_layers
from baseline.record import Call, CallTimings, Layers

MS = st.floats(0, 1e5)


def parts(layers: Layers) -> list[float]:
    return [getattr(layers, name) for name in Layers.__struct_fields__]


@given(latency=MS, late=MS, daemon=MS, queue=MS, tool=MS, provider=MS)
def test_layers_add_up_to_the_latency(
    make_call: Callable[..., Call],
    latency: float,
    late: float,
    daemon: float,
    queue: float,
    tool: float,
    provider: float,
) -> None:
    """For any reported timings, no layer is negative and their sum is the latency."""
    reported = CallTimings(daemon_ms=daemon, queue_ms=queue, tool_ms=tool, provider_ms=provider)
    layers = layers_of(make_call(latency_ms=latency, late_ms=min(late, latency), timings=reported))
    assert min(parts(layers)) >= 0
    assert sum(parts(layers)) == pytest.approx(latency)


def test_queue_includes_waiting_for_the_provider(make_call: Callable[..., Call]) -> None:
    """The queue layer includes waiting for the call's permit and for the provider's; the tool layer includes
    neither.
    """
    reported = CallTimings(daemon_ms=100, queue_ms=30, tool_ms=80, provider_ms=50)
    layers = layers_of(make_call(latency_ms=112, late_ms=2, timings=reported))
    # All 20 ms outside the tool are waiting, and 10 ms within it.
    assert parts(layers) == [2, 10, 0, 30, 20, 50]


def test_without_timings_all_latency_is_transport(make_call: Callable[..., Call]) -> None:
    """Without the daemon's timings all latency after the start is in the transport layer."""
    assert parts(layers_of(make_call(latency_ms=5, late_ms=1))) == [1, 4, 0, 0, 0, 0]


def test_mean_layers_add_up(make_call: Callable[..., Call]) -> None:
    """The mean layers of several calls add up to the mean latency."""
    calls = [make_call(latency_ms=2), make_call(latency_ms=4)]
    assert sum(parts(mean_layers(calls))) == 3
