"""Which calls are made again, and when."""

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
from toold.tools.orchestration.call_retry import CAP_S, attempt_name, delay_s


class Failing:
    """Fails so often, then answers."""

    def __init__(self, times: int, error: CallError) -> None:
        self.times = times
        self.error = error

    def __call__(self, arguments: Any) -> str:
        self.times -= 1
        if self.times >= 0:
            raise self.error
        return "there"


@pytest.mark.parametrize(
    ("retry", "draw", "seconds"), [(1, 1, 1), (2, 1, 2), (3, 1, 4), (3, 0.5, 3), (3, 0, 2), (9, 1, 30)]
)
def test_a_wait_doubles_and_is_capped(retry: int, draw: float, seconds: float) -> None:
    """The window is 1, 2, 4 s and so on, 30 s at most; a wait is between half and all of it."""
    assert delay_s(retry, ServiceUnavailableError("x").to_tool_error(), draw) == seconds


@given(st.integers(1, 20), st.integers(0, 120_000), st.floats(0, 1, exclude_max=True))
def test_a_wait_is_never_shorter_than_asked_for(retry: int, asked_ms: int, draw: float) -> None:
    """``retry_after_ms`` is a lower bound; at most half of the backoff window is added to it."""
    wait = delay_s(retry, RateLimitedError("x", retry_after_ms=asked_ms).to_tool_error(), draw)
    assert asked_ms / 1000 <= wait <= max(CAP_S / 2, asked_ms / 1000) + CAP_S / 2


def test_attempts_have_names_of_their_own() -> None:
    """The first is called as its step, the others by their number."""
    assert [attempt_name("fetch", number) for number in (1, 2, 3)] == ["fetch", "fetch#2", "fetch#3"]


async def test_what_may_succeed_later_is_tried_again(calls: Any, tools: Any) -> None:
    """A retryable error is followed by a wait and another attempt, until it succeeds."""
    calls.answers["get"] = Failing(2, ServiceUnavailableError("busy"))
    made = await calls.retrying.attempt(tools("get"), {}, name="one", retries=3)
    assert made.result.ok
    assert made.attempts == 3
    assert calls.names == ["one", "one#2", "one#3"]
    assert calls.slept == [1.0, 2.0]


async def test_retries_are_counted_and_the_last_error_is_the_answer(calls: Any, tools: Any) -> None:
    """With one retry there are two attempts."""
    calls.answers["get"] = Failing(9, OverCapacityError("full", retry_after_ms=2500))
    made = await calls.retrying.attempt(tools("get"), {}, name="one", retries=1)
    assert made.result.outcome == "OVER_CAPACITY"
    assert made.attempts == 2
    assert calls.slept == [3.0]


@pytest.mark.parametrize(
    ("tool", "error"),
    [("get", InvalidArgumentsError("wrong")), ("put", ServiceUnavailableError("cut", executed="maybe"))],
)
async def test_what_would_fail_again_or_act_twice_is_not_tried_again(
    calls: Any, tools: Any, tool: str, error: CallError
) -> None:
    """Wrong arguments stay wrong, and a write that may have had its effect is left alone."""
    calls.answers[tool] = Failing(1, error)
    made = await calls.retrying.attempt(tools(tool), {}, name="one", retries=3)
    assert made.attempts == 1
    assert calls.slept == []


async def test_a_read_that_may_have_run_is_tried_again(calls: Any, tools: Any) -> None:
    """What only reads may run twice."""
    calls.answers["get"] = Failing(1, ProviderError("hiccup", transient=True))
    assert (await calls.retrying.attempt(tools("get"), {}, name="one", retries=1)).result.ok


async def test_a_wait_that_does_not_fit_is_not_begun(calls: Any, tools: Any) -> None:
    """Where the time would be over before the next attempt, the error is the answer at once."""
    calls.answers["get"] = Failing(1, RateLimitedError("later", retry_after_ms=200_000))
    made = await calls.retrying.attempt(tools("get"), {}, name="one", retries=3)
    assert made.result.outcome == "RATE_LIMITED"
    assert calls.slept == []


async def test_an_attempt_has_the_time_that_is_left_and_no_more_than_its_own(calls: Any, tools: Any) -> None:
    """``timeout_s`` bounds each attempt, and what is left bounds all."""
    calls.left_s = 5.0
    await calls.retrying.attempt(tools("get"), {}, name="one", retries=0, timeout_s=60.0)
    await calls.retrying.attempt(tools("get"), {}, name="two", retries=0, timeout_s=2.0)
    await calls.retrying.attempt(tools("get"), {}, name="three", retries=0)
    assert calls.timeouts == [5.0, 2.0, 5.0]


async def test_an_attempt_that_names_no_time_has_five_minutes(calls: Any, tools: Any) -> None:
    """However much is left to all together, as a detached batch has hours."""
    calls.left_s = 3600.0
    await calls.retrying.attempt(tools("get"), {}, name="one", retries=0)
    assert calls.timeouts == [300.0]


def replayed(error: CallError | None) -> ToolResult:
    """What an earlier run left."""
    metadata = Metadata(1.0, Timings(), replayed=True)
    if error is None:
        return ToolResult(metadata, (TextContent("there"),))
    return ToolResult(metadata, error=error.to_tool_error())


async def test_what_an_earlier_run_did_is_the_answer(calls: Any, tools: Any) -> None:
    """One call, nothing else, and it is said to be replayed."""
    calls.kept["one"] = replayed(None)
    made = await calls.retrying.attempt(tools("put"), {}, name="one", retries=3)
    assert (made.result.ok, made.attempts, made.replayed, made.unknown) == (True, 1, True, False)


async def test_what_failed_in_earlier_runs_is_tried_again_at_once(calls: Any, tools: Any) -> None:
    """Under the next name that is free, without a wait, and its retries are counted from there."""
    calls.kept |= {"one": replayed(ServiceUnavailableError("busy")), "one#2": replayed(InvalidArgumentsError("wrong"))}
    calls.answers["put"] = Failing(1, OverCapacityError("full"))
    made = await calls.retrying.attempt(tools("put"), {}, name="one", retries=1)
    assert made.result.ok
    assert calls.names == ["one", "one#2", "one#3", "one#4"]
    assert (made.attempts, made.replayed, calls.slept) == (4, False, [1.0])


@pytest.mark.parametrize(
    ("tool", "retry_unknown", "runs"), [("put", False, False), ("put", True, True), ("get", False, True)]
)
async def test_a_write_that_was_cut_off_is_left_alone(
    calls: Any, tools: Any, tool: str, retry_unknown: bool, runs: bool
) -> None:
    """Unless its tool may run twice, or the caller said so."""
    calls.kept["one"] = replayed(OutcomeUnknownError("cut off"))
    calls.retry_unknown = retry_unknown
    made = await calls.retrying.attempt(tools(tool), {}, name="one", retries=0)
    assert made.result.ok is runs
    assert made.unknown is not runs
    assert calls.names == (["one", "one#2"] if runs else ["one"])


async def test_a_write_that_failed_and_may_be_done_is_unknown(calls: Any, tools: Any) -> None:
    """Where its error does not say that nothing was executed."""
    calls.answers["put"] = Failing(1, ProviderError("cut"))
    assert (await calls.retrying.attempt(tools("put"), {}, name="one", retries=0)).unknown
    calls.answers["put"] = Failing(1, ProviderError("refused", executed="no"))
    assert not (await calls.retrying.attempt(tools("put"), {}, name="two", retries=0)).unknown


@pytest.mark.parametrize(("tool", "runs"), [("put", False), ("get", True)])
async def test_what_is_done_with_other_arguments_is_not_done_with_these(
    calls: Any, tools: Any, tool: str, runs: bool
) -> None:
    """A conflict with an earlier run is the answer, unless the tool may be called twice."""
    calls.kept["one"] = replayed(RequestIdConflictError("other arguments"))
    calls.retry_unknown = True
    made = await calls.retrying.attempt(tools(tool), {}, name="one", retries=3)
    assert made.result.ok is runs
    assert calls.names == (["one", "one#2"] if runs else ["one"])
