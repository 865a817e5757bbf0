"""Retries of calls: which calls are retried, and when."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.error_codes import (
    CallError,
    InvalidArgumentsError,
    OutcomeUnknownError,
    OverCapacityError,
    ProviderError,
    RateLimitedError,
    RequestIdConflictError,
    ServiceUnavailableError,
)
from toold.protocol.tool_call import Metadata, TextContent, Timings, ToolResult
from toold.tools.orchestration.call_retry import MAX_RETRIES, attempt_name, delay_s


class Failing:
    """Fails a number of times, then succeeds."""

    def __init__(self, times: int, error: CallError) -> None:
        self.times = times
        self.error = error

    def __call__(self, arguments: Any) -> str:
        self.times -= 1
        if self.times >= 0:
            raise self.error
        return "there"


@pytest.mark.parametrize(
    ("retry", "draw", "max_delay_s", "seconds"),
    [
        (1, 1, None, 1),
        (2, 1, None, 2),
        (3, 1, None, 4),
        (3, 0.5, None, 3),
        (3, 0, None, 2),
        (3, 1, 1.5, 1.5),
        (1, 0, 1.5, 0.5),
    ],
)
def test_a_wait_doubles_and_is_capped(retry: int, draw: float, max_delay_s: float | None, seconds: float) -> None:
    """The window doubles from 1 s, up to the caller's limit; the delay is between half of the window and all of it."""
    assert delay_s(retry, ServiceUnavailableError("x").to_tool_error(), draw, max_delay_s) == seconds


@given(
    st.integers(1, MAX_RETRIES),
    st.integers(0, 120_000),
    st.floats(0, 1, exclude_max=True),
    st.none() | st.floats(0.1, 200),
)
def test_a_wait_is_never_shorter_than_requested(
    retry: int, asked_ms: int, draw: float, max_delay_s: float | None
) -> None:
    """``retry_after_ms`` is a lower bound, to which at most half of the backoff window is added. If it exceeds the
    caller's limit, there is no retry.
    """
    wait = delay_s(retry, RateLimitedError("x", retry_after_ms=asked_ms).to_tool_error(), draw, max_delay_s)
    if wait is None:
        assert max_delay_s is not None
        assert asked_ms / 1000 > max_delay_s
        return
    half_s = 2 ** (retry - 1) / 2
    assert asked_ms / 1000 <= wait <= max(half_s, asked_ms / 1000) + half_s
    assert max_delay_s is None or wait <= max_delay_s


def test_attempts_have_distinct_names() -> None:
    """The first attempt has the name of the step; later attempts add their number."""
    assert [attempt_name("fetch", number) for number in (1, 2, 3)] == ["fetch", "fetch#2", "fetch#3"]


async def test_a_retryable_error_is_retried(calls: Any, tools: Any) -> None:
    """The call is retried after a delay until it succeeds."""
    calls.answers["get"] = Failing(2, ServiceUnavailableError("busy"))
    made = await calls.retrying.attempt(tools("get"), {}, name="one", retries=3)
    assert made.result.ok
    assert made.attempts == 3
    assert calls.names == ["one", "one#2", "one#3"]
    assert calls.slept == [1.0, 2.0]


async def test_a_longer_delay_than_allowed_ends_the_retries(calls: Any, tools: Any) -> None:
    """The error that asks for it is the result; the delays before it are counted."""
    errors = iter([ServiceUnavailableError("busy"), RateLimitedError("later", retry_after_ms=5000)])

    def fail(_: Any) -> None:
        raise next(errors)

    calls.answers["get"] = fail
    made = await calls.retrying.attempt(tools("get"), {}, name="one", retries=3, max_delay_s=4)
    assert (made.result.outcome, made.attempts, made.retries, made.delayed_s) == ("RATE_LIMITED", 2, 1, 1.0)
    assert calls.slept == [1.0]


async def test_retries_are_limited(calls: Any, tools: Any) -> None:
    """With one retry there are two attempts, and the last error is the result."""
    calls.answers["get"] = Failing(9, OverCapacityError("full", retry_after_ms=2500))
    made = await calls.retrying.attempt(tools("get"), {}, name="one", retries=1)
    assert made.result.outcome == "OVER_CAPACITY"
    assert made.attempts == 2
    assert calls.slept == [3.0]


@pytest.mark.parametrize(
    ("tool", "error"),
    [("get", InvalidArgumentsError("wrong")), ("put", ServiceUnavailableError("cut", executed="maybe"))],
)
async def test_a_permanent_error_or_an_uncertain_write_is_not_retried(
    calls: Any, tools: Any, tool: str, error: CallError
) -> None:
    """Invalid arguments are not retried, and neither is a write that may have been executed."""
    calls.answers[tool] = Failing(1, error)
    made = await calls.retrying.attempt(tools(tool), {}, name="one", retries=3)
    assert made.attempts == 1
    assert calls.slept == []


async def test_a_read_that_may_have_run_is_retried(calls: Any, tools: Any) -> None:
    """A read-only tool may run twice."""
    calls.answers["get"] = Failing(1, ProviderError("hiccup", transient=True))
    assert (await calls.retrying.attempt(tools("get"), {}, name="one", retries=1)).result.ok


async def test_a_delay_beyond_the_deadline_is_not_started(calls: Any, tools: Any) -> None:
    """If the next attempt would start after the deadline, the error is returned at once."""
    calls.answers["get"] = Failing(1, RateLimitedError("later", retry_after_ms=200_000))
    made = await calls.retrying.attempt(tools("get"), {}, name="one", retries=3)
    assert made.result.outcome == "RATE_LIMITED"
    assert calls.slept == []


async def test_an_attempt_is_limited_by_its_timeout_and_the_remaining_time(calls: Any, tools: Any) -> None:
    """The shorter of ``timeout_s`` and the remaining time applies to each attempt."""
    calls.left_s = 5.0
    await calls.retrying.attempt(tools("get"), {}, name="one", retries=0, timeout_s=60.0)
    await calls.retrying.attempt(tools("get"), {}, name="two", retries=0, timeout_s=2.0)
    await calls.retrying.attempt(tools("get"), {}, name="three", retries=0)
    assert calls.timeouts == [5.0, 2.0, 5.0]


async def test_an_attempt_without_timeout_gets_five_minutes(calls: Any, tools: Any) -> None:
    """This limit applies even if the run has hours left, as a detached batch may have."""
    calls.left_s = 3600.0
    await calls.retrying.attempt(tools("get"), {}, name="one", retries=0)
    assert calls.timeouts == [300.0]


def replayed(error: CallError | None) -> ToolResult:
    """A replayed result of an earlier run."""
    metadata = Metadata(1.0, Timings(), replayed=True)
    if error is None:
        return ToolResult(metadata, (TextContent("there"),))
    return ToolResult(metadata, error=error.to_tool_error())


async def test_a_result_of_an_earlier_run_is_replayed(calls: Any, tools: Any) -> None:
    """One call returns the stored result, which is marked as replayed."""
    calls.kept["one"] = replayed(None)
    made = await calls.retrying.attempt(tools("put"), {}, name="one", retries=3)
    assert (made.result.ok, made.attempts, made.replayed, made.unknown) == (True, 1, True, False)


async def test_a_failure_of_an_earlier_run_is_retried_at_once(calls: Any, tools: Any) -> None:
    """The call uses the next free name without a delay, and the retries are counted from there."""
    calls.kept |= {"one": replayed(ServiceUnavailableError("busy")), "one#2": replayed(InvalidArgumentsError("wrong"))}
    calls.answers["put"] = Failing(1, OverCapacityError("full"))
    made = await calls.retrying.attempt(tools("put"), {}, name="one", retries=1)
    assert made.result.ok
    assert calls.names == ["one", "one#2", "one#3", "one#4"]
    assert (made.attempts, made.replayed, calls.slept) == (4, False, [1.0])


@pytest.mark.parametrize(
    ("tool", "retry_unknown", "runs"), [("put", False, False), ("put", True, True), ("get", False, True)]
)
async def test_an_interrupted_write_of_an_earlier_run_is_not_repeated(
    calls: Any, tools: Any, tool: str, retry_unknown: bool, runs: bool
) -> None:
    """It is repeated only if the tool is repeatable or the caller allows it."""
    calls.kept["one"] = replayed(OutcomeUnknownError("cut off"))
    calls.retry_unknown = retry_unknown
    made = await calls.retrying.attempt(tools(tool), {}, name="one", retries=0)
    assert made.result.ok is runs
    assert made.unknown is not runs
    assert calls.names == (["one", "one#2"] if runs else ["one"])


async def test_a_failed_write_that_may_have_been_executed_is_unknown(calls: Any, tools: Any) -> None:
    """If the error says that nothing was executed, the outcome of the write is known."""
    calls.answers["put"] = Failing(1, ProviderError("cut"))
    assert (await calls.retrying.attempt(tools("put"), {}, name="one", retries=0)).unknown
    calls.answers["put"] = Failing(1, ProviderError("refused", executed="no"))
    assert not (await calls.retrying.attempt(tools("put"), {}, name="two", retries=0)).unknown


@pytest.mark.parametrize(("tool", "runs"), [("put", False), ("get", True)])
async def test_a_conflict_with_an_earlier_run_is_returned(calls: Any, tools: Any, tool: str, runs: bool) -> None:
    """An earlier call with the same name but other arguments causes an error, unless the tool is repeatable."""
    calls.kept["one"] = replayed(RequestIdConflictError("other arguments"))
    calls.retry_unknown = True
    made = await calls.retrying.attempt(tools(tool), {}, name="one", retries=3)
    assert made.result.ok is runs
    assert calls.names == (["one", "one#2"] if runs else ["one"])
