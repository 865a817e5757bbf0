"""The audit row that is made from an ended call."""

from typing import Any

import pytest
from toold.audit import audit_row_of
from toold.protocol.error_codes import ToolError
from toold.protocol.tool_call import (
    LOCAL,
    ClientInfo,
    Cost,
    Metadata,
    RequestId,
    Timings,
    ToolCall,
    ToolResult,
    Usage,
)
from toold.store import CallRow

OK = ToolResult(Metadata(12.5, Timings(1.0, 11.0, 10.0)))


def row(call: ToolCall, result: ToolResult = OK, **fields: Any) -> CallRow:
    standing: dict[str, Any] = {
        "call_id": "c-1",
        "started_at": 1e9,
        "transport": "websocket",
        "principal": LOCAL,
        "session_id": "s-1",
        "session_label": "baseline-1",
        "client": ClientInfo("editor", "2.0"),
    }
    return audit_row_of(call, result, **standing | fields)


def failed(message: str, code: str = "TIMEOUT") -> ToolResult:
    return ToolResult(Metadata(1.0, Timings()), error=ToolError(code, message, "maybe", True))


def test_row_of_a_successful_call() -> None:
    """The row has the principal, tool, sizes, times, model, tokens and cost."""
    metadata = Metadata(
        12.5,
        Timings(1.0, 11.0, 10.0),
        provider="kimi",
        model="kimi-k2",
        usage=Usage(100, 20, reasoning_tokens=5),
        cost=Cost(0.01, "USD"),
        simulated=True,
    )
    call = ToolCall("r-1", "chat", {"prompt": "hi"}, frame_bytes=60)
    assert row(call, ToolResult(metadata), result_bytes=99) == CallRow(
        id="c-1",
        started_at=1e9,
        transport="websocket",
        principal="local",
        session_id="s-1",
        session_label="baseline-1",
        client="editor 2.0",
        request_id='"r-1"',
        tool="chat",
        outcome="ok",
        executed="yes",
        arguments={"prompt": "hi"},
        arguments_bytes=60,
        result_bytes=99,
        latency_ms=12.5,
        queue_ms=1.0,
        tool_ms=11.0,
        provider_ms=10.0,
        provider="kimi",
        model="kimi-k2",
        simulated=True,
        input_tokens=100,
        output_tokens=20,
        cost_amount=0.01,
        cost_currency="USD",
    )


def test_row_of_a_failed_call() -> None:
    """The row of a failed call has its error code, the words that are stored, and whether anything was executed."""
    reported = row(ToolCall("r-1", "chat", {}), failed("too late for Jane"), message="too late")
    assert (reported.outcome, reported.message, reported.executed) == ("TIMEOUT", "too late", "maybe")


@pytest.mark.parametrize(("request_id", "kept"), [("7", '"7"'), (7, "7"), (7.5, "7.5"), ("ä\n", '"ä\\n"')])
def test_request_ids_stay_different(request_id: RequestId, kept: str) -> None:
    """A number and a text with the same digits are different request ids."""
    assert row(ToolCall(request_id, "echo", {})).request_id == kept


def test_client_chosen_names_are_limited() -> None:
    """The names of tools and clients are cut to 128 characters."""
    reported = row(ToolCall("r", "t" * 10_000, {}), client=ClientInfo("c" * 10_000))
    assert (len(reported.tool), len(reported.client)) == (128, 128)


def test_client_without_a_name_is_stored() -> None:
    """A client without a name is stored with an empty name."""
    assert row(ToolCall("r", "echo", {}), client=ClientInfo()).client == ""
