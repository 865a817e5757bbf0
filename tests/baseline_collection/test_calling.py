"""One measured call: what is noted of its answer, and when it started."""

import time
from datetime import datetime

import pytest
from toold.client import CallResult, ConnectionLostError
from toold.protocol.calls import Cost, Metadata, Timings, Usage
from toold.protocol.errors import OverCapacityError

from baseline.calling import Clock, came_to


def test_what_the_daemon_tells_is_kept() -> None:
    """Timings, tokens, cost, model, size and whether it was simulated come from the answer."""
    metadata = Metadata(
        9.0,
        Timings(1.0, 7.0, 5.0),
        provider="kimi",
        model="kimi-k2.6",
        usage=Usage(3, 4),
        cost=Cost(0.25, "USD"),
        simulated=True,
    )
    fields = came_to(CallResult("1", [{"type": "text", "text": "ä"}], None, metadata))
    timings = fields["timings"]
    assert (timings.daemon_ms, timings.queue_ms, timings.tool_ms, timings.provider_ms) == (9.0, 1.0, 7.0, 5.0)
    assert (fields["tokens"].input, fields["tokens"].output) == (3, 4)
    assert (fields["cost"].amount, fields["cost"].currency) == (0.25, "USD")
    assert (fields["status"], fields["model"], fields["simulated"]) == ("success", "kimi-k2.6", True)
    assert fields["output_bytes"] == len('[{"type":"text","text":"ä"}]'.encode())


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OverCapacityError("All 24 are in use."), "OVER_CAPACITY"),
        (ConnectionLostError("it broke", executed="maybe"), "CONNECTION_LOST"),
    ],
)
def test_an_error_is_a_failure(error: OverCapacityError | ConnectionLostError, code: str) -> None:
    """An answer that carries an error, or none, is a failure with its code and its words."""
    assert came_to(error) == {"status": "error", "error_code": code, "error": str(error)}


def test_the_clock_counts_from_the_runs_begin() -> None:
    """A call's time of day and its seconds since the run began say the same."""
    began = datetime.fromisoformat("2026-01-01T12:00:00+00:00")
    clock = Clock(began.isoformat())
    now = time.perf_counter()
    assert (datetime.fromisoformat(clock.timestamp(now)) - began).total_seconds() == pytest.approx(clock.offset_s(now))
    assert clock.offset_s(now + 1.5) - clock.offset_s(now) == pytest.approx(1.5)
