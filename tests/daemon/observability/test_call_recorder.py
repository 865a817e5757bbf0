"""The record of a call: one audit row, its metrics, and a log line for non-local tools."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs
from toold.audit import Policy
from toold.daemon.dispatch import RunningCall, Session, UsageMeter
from toold.daemon.observability.call_recorder import CallRecorder
from toold.daemon.observability.metrics import Metrics
from toold.protocol.error_codes import CallError, CallTimeoutError, ToolExecutionError, ToolNotFoundError
from toold.protocol.tool_call import (
    LOCAL,
    ClientInfo,
    Cost,
    Metadata,
    ModelUsage,
    TextContent,
    Timings,
    ToolCall,
    ToolResult,
    Usage,
)
from toold.store import AuditTrail, CallRow

TIMES = Timings(queue_ms=250.0, tool_ms=750.0, provider_ms=500.0)


class Notes:
    """A store and metrics that record their calls."""

    def __init__(self) -> None:
        self.rows: list[CallRow] = []
        self.ended: list[tuple[str, str]] = []
        self.parts: list[tuple[str, ModelUsage]] = []

    def record(self, row: CallRow) -> None:
        self.rows.append(row)

    def call_ended(self, tool: str, result: ToolResult) -> None:
        self.ended.append((tool, result.outcome))

    def model_used(self, tool: str, used: ModelUsage) -> None:
        self.parts.append((tool, used))


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def recorder(notes: Notes) -> CallRecorder:
    return CallRecorder(cast("AuditTrail", notes), cast("Metrics", notes))


SESSION = cast(
    "Session",
    SimpleNamespace(id="s-1", label="my-label", principal=LOCAL, client=ClientInfo("ide", "2"), transport="websocket"),
)


def running(name: str = "chat", *, local: bool = False) -> RunningCall:
    call = ToolCall("r-1", name, {"prompt": "x"})
    tool = SimpleNamespace(name=name, local=local)
    fields = {
        "id": "c-1",
        "session": SESSION,
        "request": call,
        "tool": tool,
        "started_at": 1000.0,
        "meter": UsageMeter(),
        "changed_by": None,
        "result_changed_by": None,
    }
    return cast("RunningCall", SimpleNamespace(**fields, child_scope=None, error_summary=None))


def result(error: CallError | None = None, **metadata: Any) -> ToolResult:
    reported = Metadata(1000.0, TIMES, **metadata)
    if error is not None:
        return ToolResult(reported, error=error.to_tool_error())
    return ToolResult(reported, (TextContent("hi"),))


def test_a_call_is_recorded_and_counted_once(recorder: CallRecorder, notes: Notes) -> None:
    """The row says who, what, when and how long; the count is by tool and outcome, in seconds."""
    recorder.call_ended(running(), result(), 123)
    (row,) = notes.rows
    assert (row.id, row.tool, row.outcome, row.session_label, row.client) == ("c-1", "chat", "ok", "my-label", "ide 2")
    assert (row.started_at, row.latency_ms, row.queue_ms, row.result_bytes) == (1000.0, 1000.0, 250.0, 123)
    assert notes.ended == [("chat", "ok")]
    assert notes.parts == []


def test_a_row_and_a_count_are_separate(recorder: CallRecorder, notes: Notes) -> None:
    """The journal writes a call's row together with its end, and has it counted as any other."""
    row = recorder.row(running(), result(), 123)
    assert (row.id, row.outcome, row.result_bytes, notes.rows, notes.ended) == ("c-1", "ok", 123, [], [])
    recorder.count(running(), result())
    assert (notes.rows, notes.ended) == ([], [("chat", "ok")])


def test_an_error_counts_under_its_code(recorder: CallRecorder, notes: Notes) -> None:
    """In row and count alike."""
    recorder.call_ended(running(), result(CallTimeoutError("too late")), 0)
    assert notes.rows[0].outcome == "TIMEOUT"
    assert notes.ended[0] == ("chat", "TIMEOUT")


@pytest.mark.parametrize(
    ("content", "stored"), [("shape", "kimi failed"), ("full", "patient Jane Roe, key [redacted]"), ("none", None)]
)
def test_the_words_of_errors_follow_the_content_setting(
    recorder: CallRecorder, notes: Notes, content: Policy, stored: str | None
) -> None:
    """By default the summary, with ``full`` the redacted message; in the rows of ended and of refused calls, and in the
    log.
    """
    recorder.content = content
    error = ToolExecutionError("patient Jane Roe, key sk-abcdef0123456789", summary="kimi failed")
    call = running()
    call.error_summary = error.summary
    recorder.call_ended(call, result(error), 0)
    with capture_logs() as lines:
        recorder.call_refused(SESSION, ToolCall(7, "x", {}), result(error), call_id="c", summary=error.summary)
    assert [row.message for row in notes.rows] == [stored, stored]
    assert [line["why"] for line in lines] == [stored]


def test_an_error_without_a_summary_has_no_words(recorder: CallRecorder, notes: Notes) -> None:
    """Unless content is stored, a message that may quote the call is not."""
    recorder.call_ended(running(), result(ToolExecutionError("patient Jane Roe")), 0)
    assert (notes.rows[0].outcome, notes.rows[0].message) == ("TOOL_EXECUTION_ERROR", None)


def test_tokens_count_if_the_provider_reports_them(recorder: CallRecorder, notes: Notes) -> None:
    """Once a call, for the model that answered, with what they cost."""
    usage, cost = Usage(10, 20), Cost(0.5, "USD")
    call, used = running(), ModelUsage("kimi", "kimi-k2", 1, usage, cost)
    call.meter.add_usage(used)
    recorder.call_ended(call, result(provider="kimi", model="kimi-k2", usage=usage, cost=cost), 0)
    recorder.call_ended(running(), result(provider="kimi", model="kimi-k2"), 0)
    assert notes.parts == [("chat", used)]
    assert [row.input_tokens for row in notes.rows] == [10, 0]


def test_local_calls_are_not_logged_one_by_one(recorder: CallRecorder) -> None:
    """They are many and cheap; those that reach a vendor have a line with outcome, time and model."""
    with capture_logs() as lines:
        recorder.call_ended(running("echo", local=True), result(), 0)
        recorder.call_ended(running("chat"), result(provider="kimi", model="kimi-k2"), 0)
    (line,) = lines
    assert (line["tool"], line["outcome"], line["latency_ms"], line["model"]) == ("chat", "ok", 1000.0, "kimi-k2")


def test_a_refused_call_is_recorded(recorder: CallRecorder, notes: Notes) -> None:
    """Under the id that it was given, with one line that says why it was refused."""
    call = ToolCall(7, "caht", {})
    with capture_logs() as lines:
        recorder.call_refused(
            SESSION, call, result(ToolNotFoundError("no tool 'caht'")), call_id="c-2", summary="no tool"
        )
    assert (notes.rows[0].id, notes.rows[0].request_id, notes.rows[0].outcome) == ("c-2", "7", "TOOL_NOT_FOUND")
    assert notes.ended == [("caht", "TOOL_NOT_FOUND")]
    assert [(line["request_id"], line["code"], line["why"]) for line in lines] == [(7, "TOOL_NOT_FOUND", "no tool")]
