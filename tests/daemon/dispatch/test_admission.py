"""Admission limits and call timeouts."""

from typing import Any

import pytest
from toold.daemon.dispatch.admission import admission_refusal, session_is_full, timeout_s_of
from toold.protocol.error_codes import CallError
from toold.tools import Tool

from .dispatch_harness import BOUNDS
from .scripted_tools import make_tool


async def nothing(*_: Any) -> None: ...


PLAIN = make_tool("plain", nothing)
FULL = {"waiting": BOUNDS.max_waiting, "own_waiting": 0, "orchestrations": BOUNDS.max_orchestrations_per_session}


def refusal_of(tool: Tool, **load: Any) -> CallError | None:
    """The refusal of a call by a daemon without free permits, and with this load."""
    return admission_refusal(tool, BOUNDS, **({"closed": None, "permit_free": False} | FULL | load))


@pytest.mark.parametrize(
    ("waiting", "refused"), [(0, False), (BOUNDS.max_waiting - 1, False), (BOUNDS.max_waiting, True), (5000, True)]
)
def test_a_call_that_would_wait_is_refused_at_the_limit(waiting: int, refused: bool) -> None:
    """Below the limit it may wait; at the limit it is refused at once, with ``retry_after_ms``."""
    refusal = refusal_of(PLAIN, waiting=waiting)
    assert (refusal is not None) is refused
    if refusal is not None:
        assert refusal.to_tool_error().retryable
        assert refusal.retry_after_ms


@pytest.mark.parametrize(("own_waiting", "refused"), [(749, False), (750, True)])
def test_one_principal_may_have_three_quarters_of_the_waiting_calls(own_waiting: int, refused: bool) -> None:
    """Beyond them it is refused, while others may wait; a call that need not wait is admitted."""
    load = {"waiting": BOUNDS.max_waiting - 1, "own_waiting": own_waiting}
    assert (refusal_of(PLAIN, **load) is not None) is refused
    assert refusal_of(PLAIN, permit_free=True, **load) is None


def test_a_call_that_need_not_wait_is_admitted() -> None:
    """However many calls wait, a call with a free permit runs, and so does a tool that needs none."""
    assert refusal_of(PLAIN, permit_free=True) is None
    assert refusal_of(make_tool("status", nothing, unmetered=True)) is None


@pytest.mark.parametrize(("orchestrations", "refused"), [(7, False), (8, True)])
def test_orchestrations_of_a_session_are_limited(orchestrations: int, refused: bool) -> None:
    """An orchestration call holds no permit, so only the limit of its session applies to it."""
    pipeline = make_tool("pipeline", nothing, orchestration=True)
    refusal = refusal_of(pipeline, orchestrations=orchestrations)
    assert (refusal is not None) is refused
    if refusal is not None:
        assert "8 orchestration calls of this session" in refusal.message


def test_a_closed_daemon_refuses_all_calls() -> None:
    """The error has the reason, and says that nothing was executed."""
    refusal = refusal_of(PLAIN, permit_free=True, closed="the daemon is stopping")
    assert refusal is not None
    assert (refusal.message, refusal.executed) == ("the daemon is stopping", "no")


def test_a_full_session_names_its_limit() -> None:
    """The message contains the number, and the error has ``retry_after_ms``."""
    error = session_is_full(32)
    assert "32" in error.message
    assert error.retry_after_ms
    assert error.executed == "no"


@pytest.mark.parametrize(
    ("requested_ms", "expected"),
    [(None, (30.0, False)), (1.0, (0.001, False)), (60_000.0, (60.0, False)), (1e12, (1800.0, True))],
)
def test_a_requested_timeout_is_capped(requested_ms: float | None, expected: tuple[float, bool]) -> None:
    """Without a requested timeout the tool's applies; a larger one than the maximum is lowered and reported."""
    assert timeout_s_of(requested_ms, 30.0, 1800.0) == expected


def test_a_tools_timeout_is_capped_too() -> None:
    """The operator's maximum applies to every call."""
    assert timeout_s_of(None, 600.0, 60.0) == (60.0, False)
