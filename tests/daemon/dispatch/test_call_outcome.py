"""How the end of a call becomes its answer: the error, ``executed`` and ``retryable``."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from msgspec import structs
from structlog.testing import capture_logs
from toold.daemon.dispatch import CallPhase, EndReason, JournalRecord, RunningCall, UsageMeter, call_outcome
from toold.protocol.error_codes import CallCancelledError, CallError, ProviderError, RateLimitedError
from toold.protocol.tool_call import Cost, ModelUsage, TextContent, ToolResult, Usage

DOLLARS = ModelUsage("kimi", "k2", 1, Usage(1, 2), Cost(0.125, "USD"))
YUAN = ModelUsage("glm", "g", 1, Usage(3, 3, estimated=True), Cost(0.5, "CNY", estimated=True))


async def nothing(arguments: Any, context: Any) -> str:
    return ""


MakeRunning = Callable[..., RunningCall]


@pytest.fixture
async def make_running(make_harness: Any, make_tool: Any) -> AsyncIterator[MakeRunning]:
    """A function that makes a call in a given state; the calls end with the test."""
    tools = {
        "reads": make_tool("reads", nothing),
        "writes": make_tool("writes", nothing, read_only=False),
        "asks": make_tool("asks", nothing, open_world=True),
    }
    harness = make_harness(list(tools.values()))

    def begin(tool: str = "reads", *, running: bool = True, ended_by: EndReason | None = None) -> RunningCall:
        call: RunningCall = harness.submit(harness.session(), 1, tool, timeout_ms=2500)
        phase = CallPhase.RUNNING if running else CallPhase.QUEUED
        return structs.replace(call, phase=phase, end_reason=ended_by)

    yield begin
    await harness.answered()


def judged(error: CallError, call: RunningCall) -> tuple[str, str, bool]:
    """Code, executed and retryable of the caller's error."""
    reported = call_outcome.failed(call, error, call.started).error
    assert reported is not None
    return reported.code, reported.executed, reported.retryable


@pytest.mark.parametrize(
    ("ended_by", "tool", "running", "expected"),
    [
        (EndReason.DEADLINE, "reads", False, ("TIMEOUT", "no", True)),
        (EndReason.DEADLINE, "reads", True, ("TIMEOUT", "no", True)),
        (EndReason.DEADLINE, "asks", True, ("TIMEOUT", "no", True)),
        (EndReason.DEADLINE, "writes", False, ("TIMEOUT", "no", True)),
        (EndReason.DEADLINE, "writes", True, ("TIMEOUT", "maybe", False)),
        (EndReason.CALLER, "reads", False, ("CANCELLED", "no", False)),
        (EndReason.CALLER, "writes", True, ("CANCELLED", "maybe", False)),
        (EndReason.DISCONNECT, "writes", True, ("CANCELLED", "maybe", False)),
        (EndReason.SHUTDOWN, "reads", True, ("SERVICE_UNAVAILABLE", "no", True)),
        (EndReason.SHUTDOWN, "writes", False, ("SERVICE_UNAVAILABLE", "no", True)),
        (EndReason.SHUTDOWN, "writes", True, ("OUTCOME_UNKNOWN", "maybe", False)),
        (EndReason.SHUTDOWN, "asks", True, ("OUTCOME_UNKNOWN", "maybe", False)),
    ],
)
async def test_the_error_of_an_interrupted_call(
    make_running: MakeRunning, ended_by: EndReason, tool: str, running: bool, expected: tuple[str, str, bool]
) -> None:
    """It depends on the end reason, on whether the tool was entered, and on the tool; it never claims too much."""
    call = make_running(tool, running=running, ended_by=ended_by)
    assert judged(call_outcome.cut_off(call), call) == expected


@pytest.mark.parametrize(
    ("ended_by", "code"),
    [(EndReason.DEADLINE, "TIMEOUT"), (EndReason.CALLER, "CANCELLED"), (EndReason.SHUTDOWN, "OUTCOME_UNKNOWN")],
)
async def test_a_repeated_call_may_have_been_executed(
    make_running: MakeRunning, ended_by: EndReason, code: str
) -> None:
    """Even if the repeat ended before its tool was entered, while the first answer was looked up."""
    call = make_running("writes", running=False, ended_by=ended_by)
    call.journal_record = JournalRecord.PREVIOUS_CALL
    assert judged(call_outcome.cut_off(call), call) == (code, "maybe", False)


async def test_a_timeout_names_the_time(make_running: MakeRunning) -> None:
    """The seconds of the timeout, and whether the call waited or ran."""
    assert "2.5 s for its turn" in call_outcome.timed_out(make_running(running=False)).message
    assert "within 2.5 s; set a larger timeout_ms" in call_outcome.timed_out(make_running(running=True)).message


async def test_a_childs_timeout_refers_to_its_parent(make_running: MakeRunning) -> None:
    """A step or an item takes no ``timeout_ms``, so none is suggested."""
    part = make_running(running=True)
    part.parent = make_running()
    message = call_outcome.timed_out(part).message
    part.parent = None
    assert message == "The call did not finish within 2.5 s; its parent call limits its time."


async def test_the_error_names_who_cancelled(make_running: MakeRunning) -> None:
    """A cancel by the caller and a lost connection have different messages."""
    assert "caller" in call_outcome.cut_off(make_running(ended_by=EndReason.CALLER)).message
    assert "connection" in call_outcome.cut_off(make_running(ended_by=EndReason.DISCONNECT)).message


async def test_a_tools_own_error_is_the_answer_unless_the_call_is_ending(make_running: MakeRunning) -> None:
    """The error that a cancelled tool raises is replaced."""
    error = ProviderError("the vendor said no")
    assert call_outcome.of_exception(make_running(), error) is error
    cut = make_running(ended_by=EndReason.CALLER)
    assert call_outcome.of_exception(cut, error).code == "CANCELLED"
    assert call_outcome.of_exception(cut, ValueError("x")).code == "CANCELLED"


@pytest.mark.parametrize(
    ("ended_by", "code"),
    [(EndReason.CALLER, "CANCELLED"), (EndReason.DEADLINE, "TIMEOUT"), (EndReason.SHUTDOWN, "OUTCOME_")],
)
async def test_an_ending_tool_can_report_what_was_done(
    make_running: MakeRunning, ended_by: EndReason, code: str
) -> None:
    """The tool supplies the details, dispatch the reason."""
    error = CallCancelledError("details.so_far has it.", executed="no", details={"so_far": 1})
    cut = make_running("writes", running=True, ended_by=ended_by)
    reported = call_outcome.of_exception(cut, error)
    assert reported.code.startswith(code)
    assert reported.executed == call_outcome.cut_off(cut).executed == "maybe"
    assert reported.details == {"so_far": 1}
    assert reported.message == f"{call_outcome.cut_off(cut).message} details.so_far has it."


async def test_any_other_exception_is_reported_by_its_type_only(make_running: MakeRunning) -> None:
    """Its text may be private; the log has the type and the location."""

    def broken() -> None:
        raise ValueError("password is swordfish")

    with capture_logs() as lines:
        try:
            broken()
        except ValueError as error:
            failure = call_outcome.of_exception(make_running("writes"), error)
    assert (failure.code, failure.executed) == ("TOOL_EXECUTION_ERROR", "maybe")
    assert "ValueError" in failure.message
    assert "swordfish" not in failure.message
    reported = next(line for line in lines if line["log_level"] == "error")
    assert reported["error"] == "ValueError"
    assert "test_call_outcome.py:" in reported["at"]


async def test_an_error_keeps_its_own_fields(make_running: MakeRunning) -> None:
    """``retry_after_ms``, and that nothing was executed."""
    call = make_running("writes")
    reported = call_outcome.failed(call, RateLimitedError("slow down", retry_after_ms=1500), call.started).error
    assert reported is not None
    assert (reported.code, reported.retry_after_ms, reported.executed, reported.retryable) == (
        "RATE_LIMITED",
        1500,
        "no",
        True,
    )


async def test_metadata_has_the_times_in_milliseconds(make_running: MakeRunning) -> None:
    """Latency since arrival; provider, tokens and cost only if a provider was asked."""
    call = make_running()
    call.meter = UsageMeter(queue_s=0.25, tool_s=1.0, provider_s=0.5)
    metadata = call_outcome.metadata_of(call, call.started + 1.5)
    assert metadata.latency_ms == pytest.approx(1500, abs=0.01)
    assert (metadata.timings.queue_ms, metadata.timings.tool_ms, metadata.timings.provider_ms) == (250, 1000, 500)
    assert (metadata.provider, metadata.usage, metadata.cost, metadata.simulated) == (None, None, None, None)
    call.meter = UsageMeter(provider="kimi", model="kimi-k2")
    call.meter.add_usage(DOLLARS)
    metadata = call_outcome.metadata_of(call, call.started)
    assert (metadata.provider, metadata.model, metadata.usage) == ("kimi", "kimi-k2", Usage(1, 2))
    assert metadata.cost == Cost(0.125, "USD")


async def test_costs_in_two_currencies_are_not_added(make_running: MakeRunning) -> None:
    """A sum of dollars and yuan would be meaningless."""
    call = make_running()
    call.meter = UsageMeter(provider="kimi")
    for spent in (DOLLARS, YUAN, DOLLARS):
        call.meter.add_usage(spent)
    metadata = call_outcome.metadata_of(call, call.started)
    assert metadata.cost is None
    assert [(part.model, part.completions, part.cost) for part in metadata.usage_by_model] == [
        ("k2", 2, Cost(0.25, "USD")),
        ("g", 1, YUAN.cost),
    ]
    assert metadata.usage == Usage(5, 7, estimated=True)


async def test_usage_by_model_is_listed_for_several_models(make_running: MakeRunning) -> None:
    """For one model the totals suffice."""
    call = make_running()
    call.meter = UsageMeter(provider="kimi")
    call.meter.add_usage(DOLLARS)
    call.meter.add_usage(DOLLARS)
    metadata = call_outcome.metadata_of(call, call.started)
    assert (metadata.usage_by_model, metadata.usage, metadata.cost) == ((), Usage(2, 4), Cost(0.25, "USD"))


async def test_a_replayed_result_is_marked_and_otherwise_equal(make_running: MakeRunning) -> None:
    """So that a client knows that nothing ran again."""
    call = make_running()
    result = ToolResult(call_outcome.metadata_of(call, call.started), (TextContent("x"),), {"a": 1})
    repeat = call_outcome.replayed(result)
    assert repeat.metadata.replayed is True
    assert (repeat.outputs, repeat.structured, repeat.error) == (result.outputs, result.structured, None)
    assert result.metadata.replayed is None


async def test_an_unsendable_result_says_that_the_tool_ran(make_running: MakeRunning) -> None:
    """An answer that is too large or not JSON: the effect happened, the answer is missing."""
    large = call_outcome.too_large(30_000_000, 20_971_520)
    assert (large.code, large.executed) == ("RESULT_TOO_LARGE", "yes")
    assert "30000000 bytes" in large.message
    with capture_logs():
        odd = call_outcome.not_serialisable(make_running(), TypeError("object is no JSON"))
    assert (odd.code, odd.executed) == ("TOOL_EXECUTION_ERROR", "yes")
    assert "reads" in odd.message
