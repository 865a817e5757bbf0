"""``health``, ``status``, ``self-check`` and ``version``."""

import platform
from typing import TYPE_CHECKING, Any

import pytest
from toold import __version__
from toold.protocol.error_codes import InvalidArgumentsError
from toold.tools import ToolOutput, bind
from toold.tools.builtin.daemon_info import health, self_check, status, version

if TYPE_CHECKING:
    from tests.tools.tool_context import Context

DISK = {"check": "disk", "ok": False, "status": "warn", "message": "5 MiB are free", "remedy": "free some"}
STORE = {"check": "store", "ok": True, "status": "ok", "message": "a commit", "remedy": None}


async def test_health_returns_the_daemons_health(context: "Context") -> None:
    """It returns the same as ``/readyz`` and the op ``health``, and needs no permit."""
    assert await health.function(bind(health, {}), context) == {"status": "ready", "problems": []}
    assert health.unmetered
    assert health.local


@pytest.mark.parametrize(("arguments", "shown"), [({}, 10), ({"recent": 0}, 0), ({"recent": 100}, 100)])
async def test_status_lists_the_requested_number_of_calls(
    context: "Context", arguments: dict[str, Any], shown: int
) -> None:
    """By default, ``status`` lists 10 calls."""
    view = await status.function(bind(status, arguments), context)
    assert len(view["calls"]["recent"]) == shown


@pytest.mark.parametrize("recent", [-1, 101, "five", 1.5])
def test_status_rejects_an_invalid_number_of_calls(recent: Any) -> None:
    """``recent`` is an integer from 0 to 100."""
    with pytest.raises(InvalidArgumentsError, match="recent should be"):
        bind(status, {"recent": recent})


async def run_self_check(context: "Context", *checks: dict[str, Any]) -> ToolOutput:
    context.daemon.checks = list(checks)
    answer = await self_check.function(bind(self_check, {}), context)
    assert isinstance(answer, ToolOutput)
    return answer


async def test_self_check_is_ok_if_every_check_is_ok(context: "Context") -> None:
    """The text contains the remedy of a check that is not ok."""
    assert (await run_self_check(context, STORE)).data == {"ok": True, "checks": [STORE]}
    answer = await run_self_check(context, STORE, DISK)
    assert answer.data == {"ok": False, "checks": [STORE, DISK]}
    assert answer.text == "ok    store: a commit\nwarn  disk: 5 MiB are free; free some"


def test_self_check_takes_no_permit_and_has_a_dash_in_its_name() -> None:
    assert (self_check.name, self_check.unmetered, self_check.local) == ("self-check", True, True)


async def test_version_identifies_the_daemon(context: "Context") -> None:
    """It returns name, version, protocol and Python version."""
    assert await version.function(bind(version, {}), context) == {
        "name": "toold",
        "version": __version__,
        "protocol": 1,
        "python": platform.python_version(),
    }


def test_version_takes_no_arguments() -> None:
    with pytest.raises(InvalidArgumentsError, match="verbose is not an argument; it takes none"):
        bind(version, {"verbose": True})
