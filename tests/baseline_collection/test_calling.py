"""One measured call: the fields that are recorded from its answer, and its start time."""

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


def test_fields_come_from_the_answer() -> None:
    """Timings, tokens, cost, model, size and the simulated flag come from the answer."""
    fields = fields_of(CallToolRes("1", [{"type": "text", "text": "ä"}], None, METADATA))
    timings = fields["timings"]
    assert (timings.daemon_ms, timings.queue_ms, timings.tool_ms, timings.provider_ms) == (9.0, 1.0, 7.0, 5.0)
    assert (fields["tokens"].input, fields["tokens"].output) == (3, 4)
    assert (fields["cost"].amount, fields["cost"].currency) == (0.25, "USD")
    assert (fields["status"], fields["model"], fields["simulated"]) == ("success", "kimi-k2.6", True)
    assert fields["output_bytes"] == len('[{"type":"text","text":"ä"}]'.encode())


def test_error_answer_is_a_failure() -> None:
    """An answer with an error is a failure with its code and message. The daemon's metadata is recorded too."""
    error = ToolError("PROVIDER_ERROR", "It refused.", "no", retryable=False)
    fields = fields_of(CallToolRes("1", [], error, METADATA))
    reported = fields_of(CallToolRes("1", [], None, METADATA))
    assert fields.pop("error_code") == "PROVIDER_ERROR"
    assert fields.pop("error") == "It refused."
    assert fields == {name: reported[name] for name in reported if name != "output_bytes"} | {"status": "error"}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CallTimeoutError("It did not answer."), "TIMEOUT"),
        (ConnectionLostError("it broke", executed="maybe"), "CONNECTION_LOST"),
    ],
)
def test_missing_answer_is_a_failure(error: CallTimeoutError | ConnectionLostError, code: str) -> None:
    """A call without an answer is a failure with the client's error."""
    assert fields_of(error) == {"status": "error", "error_code": code, "error": str(error)}


def test_clock_counts_from_the_start_of_the_run() -> None:
    """A call's timestamp and its seconds since the start of the run agree."""
    began = datetime.fromisoformat("2026-01-01T12:00:00+00:00")
    clock = Clock(began.isoformat())
    now = time.perf_counter()
    assert (datetime.fromisoformat(clock.timestamp(now)) - began).total_seconds() == pytest.approx(clock.offset_s(now))
    assert clock.offset_s(now + 1.5) - clock.offset_s(now) == pytest.approx(1.5)
