"""``toold demo``: starts a temporary daemon with simulated vendors and tours it over real sockets."""

import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar

import click

from ..client import ConnectionFailedError, ConnectionLostError, MCPWebSocketClient, read_announcement
from ..protocol.daemon_address import DaemonAddress
from ..protocol.error_codes import CallError
from .daemon_connection import run
from .demo_agent import AGENT_SETTINGS, DemoAgentRun
from .demo_daemon import DemoDaemon
from .demo_tour import TourStepError, tour_steps
from .terminal_output import Styled, say

T = TypeVar("T")

PREFERRED_FILES: Final = ("README.md", "pyproject.toml")
MAX_FILE_BYTES: Final = 200_000
LOG_LINES: Final = 20
_TOUR_ERRORS: Final = (TourStepError, CallError, ConnectionFailedError, ConnectionLostError)


@click.command()
def command() -> None:
    """Start a temporary daemon with simulated vendors on free ports, call its tools over real sockets, and stop it.

    Takes less than half a minute, needs no API key and touches no other daemon. Exits with 1 if a step fails.
    """
    say("A tour of toold: real sockets and real SDKs, simulated vendors.\n")
    with tempfile.TemporaryDirectory(prefix="toold-demo-") as directory:
        sys.exit(0 if run(_tour(Path(directory))) else 1)


async def _tour(directory: Path) -> bool:
    workspace, file = choose_file(Path.cwd(), directory)
    printer, daemon = StepPrinter(), DemoDaemon(directory, workspace, AGENT_SETTINGS)
    try:
        async with daemon:
            address = await printer.run("Start a daemon", daemon.start(), _address_line)
            # Explicit address and token: the environment may name another daemon.
            token = read_announcement(daemon.state).token
            client = MCPWebSocketClient(
                address.host, address.port, token, client_name="toold-demo", workspace=workspace
            )
            async with client:
                for step in tour_steps(file):
                    await printer.run(step.title, step.run(client))
                await _agent_steps(printer, daemon, client)
            await printer.run("Stop it with SIGTERM", daemon.stop())
    except _TOUR_ERRORS as error:
        say("    ", Styled("failed", "red"), f": {error}")
        log = daemon.log
        tail = log.read_text("utf-8", errors="replace").splitlines()[-LOG_LINES:] if log.exists() else []
        say("\nThe end of the daemon's log:\n" + "\n".join(tail), err=True)
        return False
    say("\nDone. Start your own daemon with `make run` or `toold serve`, then: toold call chat prompt='Hello'")
    return True


async def _agent_steps(printer: "StepPrinter", daemon: DemoDaemon, client: MCPWebSocketClient) -> None:
    """A run of an agent; the daemon is killed during it."""
    agent = DemoAgentRun(daemon.state / "sim_effect.log")
    await printer.run("Ask an agent to write a note (the simulated model has a script)", agent.begin(client))
    await printer.run("Approve the call", agent.approve(client))
    await printer.run("Kill the daemon with kill -9", daemon.kill(), lambda _: "killed while the model was asked")
    await printer.run("Start it again", daemon.start(), lambda address: f"{_address_line(address)}; the run continues")
    await printer.run("Wait for the agent", agent.finish(client))


class StepPrinter:
    """Numbers the steps and prints each with its result."""

    def __init__(self) -> None:
        self._number = 0

    async def run(self, title: str, step: Awaitable[T], render: Callable[[T], str] = str) -> T:
        """Print the title, run the step, print its result."""
        self._number += 1
        say(Styled(f"{self._number:2}. {title}", bold=True))
        result = await step
        say(f"    {render(result)}")
        return result


def choose_file(cwd: Path, directory: Path) -> tuple[Path, str]:
    """A workspace and a text file in it for chat to read: from the current directory, else a sample file."""
    preferred = [cwd / name for name in PREFERRED_FILES]
    for path in [*preferred, *sorted(cwd.glob("*.md")), *sorted(cwd.glob("*.txt")), *sorted(cwd.glob("*.py"))]:
        if path.is_file() and 0 < path.stat().st_size <= MAX_FILE_BYTES and os.access(path, os.R_OK):
            return cwd, path.name
    workspace = directory / "workspace"
    workspace.mkdir()
    (workspace / "note.txt").write_text("A tool daemon answers tool calls over WebSocket.\n", "utf-8")
    return workspace, "note.txt"


def _address_line(address: DaemonAddress) -> str:
    return f"{address.url}, pid {address.pid}, HTTP on port {address.http_port}"
