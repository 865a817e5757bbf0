"""``toold reload``: what the daemon took, and what it could not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Operated, Run


@pytest.mark.parametrize(
    ("reloaded", "waiting", "printed"),
    [
        (["log_level", "max_running"], ["port"], "reloaded: log_level, max_running\nneeds a restart: port\n"),
        (["log_level"], [], "reloaded: log_level\n"),
        ([], ["port", "host"], "needs a restart: port, host\n"),
        ([], [], "unchanged\n"),
    ],
)
def test_what_changed_is_told(
    run: Run, operated: Operated, reloaded: list[str], waiting: list[str], printed: str
) -> None:
    """What is in effect now and what needs a restart, by name."""
    operated.answers["POST /operator/reload"] = (200, {"reloaded": reloaded, "needs_restart": waiting})
    result = run("reload")
    assert (result.exit_code, result.stdout) == (0, printed)


def test_a_configuration_that_is_wrong_is_as_wrong_as_at_a_start(run: Run, operated: Operated) -> None:
    """In the same words, with the same exit code, and with what holds now."""
    message = "port (toold.toml): must be a whole number"
    operated.answers["POST /operator/reload"] = (400, {"error": {"code": "VALIDATION_ERROR", "message": message}})
    result = run("reload")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"toold: cannot reload: {message}; the old configuration stays\n"
