"""``toold demo``: starts a temporary daemon with simulated vendors and tours it over real sockets."""

import asyncio
import os
import signal
import sys
import tempfile
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, TypeVar

import click

from ..client import ConnectionFailedError, ConnectionLostError, MCPWebSocketClient, read_announcement
from ..protocol.daemon_address import DaemonAddress
from ..protocol.error_codes import CallError
from .daemon_connection import run
from .demo_tour import TourStepError, tour_steps
from .terminal_output import Styled, say

T = TypeVar("T")

START_S: Final = 30.0
"""How long to wait until the daemon listens: its imports take one or two seconds, more on a busy machine."""
STOP_S: Final = 20.0
"""The time the daemon has to exit after SIGTERM: more than its grace period."""
PREFERRED_FILES: Final = ("README.md", "pyproject.toml")
MAX_FILE_BYTES: Final = 200_000
LOG_LINES: Final = 20
STATE: Final = "state"
"""The daemon's state directory within the tour's directory, outside the workspace, which tools can read."""
_TOUR_ERRORS: Final = (TourStepError, CallError, ConnectionFailedError, ConnectionLostError)


@click.command()
def command() -> None:
    """Start a temporary daemon with simulated vendors on free ports, call its tools over real sockets, and stop it.

    Takes a few seconds, needs no API key and touches no other daemon. Exits with 1 if a step fails.
    """
    say("A tour of toold: real sockets and real SDKs, simulated vendors.\n")
    with tempfile.TemporaryDirectory(prefix="toold-demo-") as directory:
        sys.exit(0 if run(_tour(Path(directory))) else 1)


async def _tour(directory: Path) -> bool:
    workspace, file = choose_file(Path.cwd(), directory)
    printer, log = StepPrinter(), directory / "daemon.log"
    try:
        async with temporary_daemon(directory, workspace, log) as process:
            address = await printer.run("Start a daemon", _wait_for_address(process, directory / STATE), _address_line)
            # Explicit address and token: the environment may name another daemon.
            token = read_announcement(directory / STATE).token
            client = MCPWebSocketClient(
                address.host, address.port, token, client_name="toold-demo", workspace=workspace
            )
            async with client:
                for step in tour_steps(file):
                    await printer.run(step.title, step.run(client))
            await printer.run("Stop it with SIGTERM", _stop(process))
    except _TOUR_ERRORS as error:
        say("    ", Styled("failed", "red"), f": {error}")
        tail = log.read_text("utf-8", errors="replace").splitlines()[-LOG_LINES:] if log.exists() else []
        say("\nThe end of the daemon's log:\n" + "\n".join(tail), err=True)
        return False
    say("\nDone. Start your own daemon with `make run` or `toold serve`, then: toold call chat prompt='Hello'")
    return True


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


@asynccontextmanager
async def temporary_daemon(directory: Path, workspace: Path, log: Path) -> AsyncIterator[Process]:
    """A daemon process with free ports and its state under ``directory``; killed when the block exits."""
    settings = directory / "toold.toml"
    settings.touch()
    state = directory / STATE
    flags = ["--simulate", "--port", "0", "--http-port", "0", "--state-dir", str(state), "--config", str(settings)]
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "toold", "serve", *flags),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=demo_environment(os.environ, workspace),
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def demo_environment(env: Mapping[str, str], workspace: Path) -> dict[str, str]:
    """The environment without toold's variables, which configure another daemon."""
    remaining = {name: value for name, value in env.items() if not name.startswith("TOOLD_")}
    return remaining | {"TOOLD_WORKSPACE": str(workspace)}


async def _wait_for_address(process: Process, state: Path) -> DaemonAddress:
    began = time.perf_counter()
    while (address := read_announcement(state).address) is None:
        if process.returncode is not None:
            raise TourStepError(f"the daemon exited with code {process.returncode}")
        if time.perf_counter() - began > START_S:
            raise TourStepError(f"the daemon is not listening after {START_S:g} s")
        await asyncio.sleep(0.05)
    return address


def _address_line(address: DaemonAddress) -> str:
    return f"{address.url}, pid {address.pid}, HTTP on port {address.http_port}"


async def _stop(process: Process) -> str:
    began = time.perf_counter()
    process.send_signal(signal.SIGTERM)
    try:
        code = await asyncio.wait_for(process.wait(), STOP_S)
    except TimeoutError:
        raise TourStepError(f"the daemon is still running after {STOP_S:g} s") from None
    if code != 0:
        raise TourStepError(f"the daemon exited with code {code}")
    return f"exit code 0 after {time.perf_counter() - began:.1f} s"
