"""How commands report that the daemon is missing or refuses them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from toold.cli.daemon_connection import describe
from toold.protocol.error_codes import (
    ERROR_CLASSES,
    CallError,
    CallTimeoutError,
    OutcomeUnknownError,
    OverCapacityError,
    RateLimitedError,
    ServiceUnavailableError,
)

if TYPE_CHECKING:
    from tests.cli.conftest import Run, StubDaemon

COMMANDS = [["call", "echo", "text=a"], ["tools"], ["status"]]


@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_daemon_one_line_says_how_to_start_one(run: Run, command: list[str]) -> None:
    """The address and the remedy are on stderr, and the exit code is 3."""
    result = run(*command)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr == "no daemon answers at ws://127.0.0.1:1/; start one with `make run` or `toold serve`\n"


def test_a_wrong_token_is_reported(run: Run, daemon: StubDaemon) -> None:
    """If the daemon refuses the connection, its own message is shown, with exit code 3."""
    error = {"code": "UNAUTHORIZED", "message": "the token is wrong", "executed": "no", "retryable": False}
    daemon.ack = {"ok": False, "error": error}
    result = run("tools")
    assert result.exit_code == 3
    assert "UNAUTHORIZED: the token is wrong" in result.stderr
    assert "start one" not in result.stderr


def test_a_wrong_environment_is_a_usage_error(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that cannot be a port is named, with exit code 2."""
    monkeypatch.setenv("TOOLD_PORT", "http")
    result = run("status")
    assert result.exit_code == 2
    assert "TOOLD_PORT" in result.stderr


def test_an_error_is_described_with_advice() -> None:
    """Code and message, what to do, and when."""
    lines = describe(OverCapacityError("full", retry_after_ms=250)).splitlines()
    advice = "  Retry later; `toold status` shows the limits in use."
    assert lines == ["OVER_CAPACITY: full", advice, "  Retry after 0.25 s."]


@pytest.mark.parametrize("cls", [ServiceUnavailableError, RateLimitedError, OverCapacityError])
def test_an_error_that_stays_is_not_to_be_retried(cls: type[CallError]) -> None:
    """If the same call cannot succeed later, as without an API key, the advice is to follow the message."""
    lines = describe(cls("Kimi is not configured: set KIMI_API_KEY.", transient=False)).splitlines()
    assert "later" not in lines[1]
    assert "retrying does not help" in lines[1]
    assert "Retry later" in describe(cls("busy"))


@pytest.mark.parametrize("cls", ERROR_CLASSES.values(), ids=lambda cls: cls.code)
def test_advice_names_commands_not_frame_fields(cls: type[CallError]) -> None:
    """No advice names a field of a frame, which the command line does not show."""
    assert not re.search(r"[a-z]_[a-z]|details|inputSchema|error\.", describe(cls("m")))


def test_a_call_that_may_have_taken_effect_is_to_be_checked() -> None:
    """A non-retryable call that may have run is marked; a retryable one is not."""
    assert "check before you retry" in describe(CallTimeoutError("late", executed="maybe"))
    assert "check before" not in describe(CallTimeoutError("late", executed="no"))
    assert describe(OutcomeUnknownError("Cut off; look whether it had its effect.")).count("look") == 1
