"""``toold demo``: a daemon of its own with simulated vendors, and a tour of it over real sockets."""

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
from .demo_tour import StopFailedError, stops

T = TypeVar("T")

START_S: Final = 30.0
"""How long the daemon may take to listen: it imports in a second or two, on a busy machine in several."""
STOP_S: Final = 20.0
"""How long it may take to end after SIGTERM: its grace period and some."""
PREFERRED_FILES: Final = ("README.md", "pyproject.toml")
MAX_FILE_BYTES: Final = 200_000
LOG_LINES: Final = 20
STATE: Final = "state"
"""The directory of the daemon's state within the tour's: apart from the workspace, since no tool reads it."""
_TROUBLE: Final = (StopFailedError, CallError, ConnectionFailedError, ConnectionLostError)


@click.command(short_help="Take a tour of a daemon of its own, some seconds long.")
def command() -> None:
    """Start a daemon with simulated vendors on free ports, call it over real sockets, and stop it.

    Touches no other daemon and needs no key. Exits with 1 where a stop of the tour did not see what it should.
    """
    click.echo("A tour of toold: real sockets and real SDKs, simulated vendors.\n")
    with tempfile.TemporaryDirectory(prefix="toold-demo-") as directory:
        sys.exit(0 if run(_tour(Path(directory))) else 1)


async def _tour(directory: Path) -> bool:
    workspace, file = choose_file(Path.cwd(), directory)
    guide, log = Guide(), directory / "daemon.log"
    try:
        async with own_daemon(directory, workspace, log) as process:
            address = await guide.lead("Start a daemon", _listening(process, directory / STATE), _where)
            # Named in full: the environment may speak of another daemon, and this one is the demo's own.
            token = read_announcement(directory / STATE).token
            client = MCPWebSocketClient(
                address.host, address.port, token, client_name="toold-demo", workspace=workspace
            )
            async with client:
                for stop in stops(file):
                    await guide.lead(stop.title, stop.visit(client))
            await guide.lead("Stop it with SIGTERM", _stop(process))
    except _TROUBLE as error:
        click.echo(f"    {click.style('failed', fg='red')}: {error}")
        tail = log.read_text("utf-8", errors="replace").splitlines()[-LOG_LINES:] if log.exists() else []
        click.echo("\nThe daemon's last words:\n" + "\n".join(tail), err=True)
        return False
    click.echo("\nThat was all. Start your own with `make run` or `toold serve`, then: toold call chat prompt='Hello'")
    return True


class Guide:
    """Numbers the stops, and prints each with what was seen there."""

    def __init__(self) -> None:
        self._number = 0

    async def lead(self, title: str, visit: Awaitable[T], tell: Callable[[T], str] = str) -> T:
        """Announce the stop, go there, tell what was seen."""
        self._number += 1
        click.secho(f"{self._number:2}. {title}", bold=True)
        seen = await visit
        click.echo(f"    {tell(seen)}")
        return seen


def choose_file(cwd: Path, directory: Path) -> tuple[Path, str]:
    """A workspace and a text file in it for chat to read: of the current directory if it has one, else one made up."""
    named = [cwd / name for name in PREFERRED_FILES]
    for path in [*named, *sorted(cwd.glob("*.md")), *sorted(cwd.glob("*.txt")), *sorted(cwd.glob("*.py"))]:
        if path.is_file() and 0 < path.stat().st_size <= MAX_FILE_BYTES and os.access(path, os.R_OK):
            return cwd, path.name
    workspace = directory / "workspace"
    workspace.mkdir()
    (workspace / "note.txt").write_text("A tool daemon answers tool calls over WebSocket.\n", "utf-8")
    return workspace, "note.txt"


@asynccontextmanager
async def own_daemon(directory: Path, workspace: Path, log: Path) -> AsyncIterator[Process]:
    """A daemon as a process of its own, with free ports and its state below ``directory``; gone when the block is
    left.
    """
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
    """The environment without toold's own settings, which are another daemon's."""
    kept = {name: value for name, value in env.items() if not name.startswith("TOOLD_")}
    return kept | {"TOOLD_WORKSPACE": str(workspace)}


async def _listening(process: Process, state: Path) -> DaemonAddress:
    began = time.perf_counter()
    while (address := read_announcement(state).address) is None:
        if process.returncode is not None:
            raise StopFailedError(f"it ended by itself with exit code {process.returncode}")
        if time.perf_counter() - began > START_S:
            raise StopFailedError(f"it does not listen after {START_S:g} s")
        await asyncio.sleep(0.05)
    return address


def _where(address: DaemonAddress) -> str:
    return f"{address.url}, pid {address.pid}, HTTP on port {address.http_port}"


async def _stop(process: Process) -> str:
    began = time.perf_counter()
    process.send_signal(signal.SIGTERM)
    try:
        code = await asyncio.wait_for(process.wait(), STOP_S)
    except TimeoutError:
        raise StopFailedError(f"it still runs after {STOP_S:g} s") from None
    if code != 0:
        raise StopFailedError(f"it ended with exit code {code}")
    return f"exit code 0 after {time.perf_counter() - began:.1f} s"
