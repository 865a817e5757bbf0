"""One measured call: what is noted of its answer, and when it started."""

import time
from datetime import datetime

import pytest
from toold.client import ConnectionLostError
from toold.protocol.error_codes import CallTimeoutError, ToolError
from toold.protocol.frames import CallToolRes
from toold.protocol.tool_call import Cost, Metadata, Timings, Usage

from baseline.calling import Clock, fields_of

METADATA = Metadata(
    9.0,
    Timings(1.0, 7.0, 5.0),
    provider="kimi",
    model="kimi-k2.6",
    usage=Usage(3, 4),
    cost=Cost(0.25, "USD"),
    simulated=True,
)


def test_what_the_daemon_tells_is_kept() -> None:
    """Timings, tokens, cost, model, size and whether it was simulated come from the answer."""
    fields = fields_of(CallToolRes("1", [{"type": "text", "text": "ä"}], None, METADATA))
    timings = fields["timings"]
    assert (timings.daemon_ms, timings.queue_ms, timings.tool_ms, timings.provider_ms) == (9.0, 1.0, 7.0, 5.0)
    assert (fields["tokens"].input, fields["tokens"].output) == (3, 4)
    assert (fields["cost"].amount, fields["cost"].currency) == (0.25, "USD")
    assert (fields["status"], fields["model"], fields["simulated"]) == ("success", "kimi-k2.6", True)
    assert fields["output_bytes"] == len('[{"type":"text","text":"ä"}]'.encode())


def test_an_error_is_a_failure() -> None:
    """An answer that carries an error is a failure with its code, its words, and what the daemon tells of it."""
    error = ToolError("PROVIDER_ERROR", "It refused.", "no", retryable=False)
    fields = fields_of(CallToolRes("1", [], error, METADATA))
    told = fields_of(CallToolRes("1", [], None, METADATA))
    assert fields.pop("error_code") == "PROVIDER_ERROR"
    assert fields.pop("error") == "It refused."
    assert fields == {name: told[name] for name in told if name != "output_bytes"} | {"status": "error"}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CallTimeoutError("It did not answer."), "TIMEOUT"),
        (ConnectionLostError("it broke", executed="maybe"), "CONNECTION_LOST"),
    ],
)
def test_no_answer_is_a_failure(error: CallTimeoutError | ConnectionLostError, code: str) -> None:
    """A call without an answer is a failure too, with what the client says of it."""
    assert fields_of(error) == {"status": "error", "error_code": code, "error": str(error)}


def test_the_clock_counts_from_the_runs_begin() -> None:
    """A call's time of day and its seconds since the run began say the same."""
    began = datetime.fromisoformat("2026-01-01T12:00:00+00:00")
    clock = Clock(began.isoformat())
    now = time.perf_counter()
    assert (datetime.fromisoformat(clock.timestamp(now)) - began).total_seconds() == pytest.approx(clock.offset_s(now))
    assert clock.offset_s(now + 1.5) - clock.offset_s(now) == pytest.approx(1.5)
