"""``toold cancel``: which call is ended, and what is said of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Operated, Run


@pytest.mark.parametrize(
    ("state", "said"),
    [("waiting", "which was waiting"), ("running", "which was running"), ("ending", "ending already")],
)
def test_what_was_cancelled_is_told(run: Run, operated: Operated, state: str, said: str) -> None:
    """The call by its whole id, its tool and its session, and how it stood."""
    call = {"id": "0a1b-1f", "tool": "chat", "session": "an-editor", "state": state}
    operated.answers["POST /operator/calls/1f/cancel"] = (200, call)
    result = run("cancel", "1f")
    assert result.exit_code == 0
    assert "0a1b-1f (chat of session an-editor)" in result.stdout
    assert said in result.stdout


def test_a_call_that_is_not_there(run: Run, operated: Operated) -> None:
    """The daemon's words, and exit code 1."""
    message = "No call 2 runs here; it may have ended. `toold calls` shows what runs."
    operated.answers["POST /operator/calls/2/cancel"] = (404, {"error": {"code": "NOT_FOUND", "message": message}})
    result = run("cancel", "2")
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", f"{message}\n")


def test_whatever_is_given_as_an_id_stays_in_its_place(run: Run, operated: Operated) -> None:
    """It reaches no other route."""
    operated.answers["POST /operator/calls/..%2Freload%3F/cancel"] = (404, {"error": {"message": "no"}})
    assert run("cancel", "../reload?").stderr == "no\n"
