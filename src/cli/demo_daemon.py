"""The temporary daemon of ``toold demo``: a process with simulated vendors and a hosted agent."""

import asyncio
import os
import signal
import sys
import time
from asyncio.subprocess import Process
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

from ..client import read_announcement
from ..protocol.daemon_address import DaemonAddress
from .demo_tour import TourStepError

START_S: Final = 30.0
"""How long to wait until the daemon listens: its imports take one or two seconds, more on a busy machine."""
STOP_S: Final = 20.0
"""The time the daemon has to exit after SIGTERM: more than its grace period."""


class DemoDaemon:
    """A daemon with its state under ``directory``; killed when the block exits."""

    def __init__(self, directory: Path, workspace: Path, settings: str) -> None:
        self.state = directory / "state"
        """Outside the workspace, which tools can read."""
        self.log = directory / "daemon.log"
        self._workspace = workspace
        self._settings = directory / "toold.toml"
        self._settings.write_text(settings, "utf-8")
        self._process: Process | None = None
        self._ports = (0, 0)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._process is not None and self._process.returncode is None:
            await self.kill()

    async def start(self) -> DaemonAddress:
        """Start it on free ports, or on those that it had before, and wait until it listens.

        Raises:
            TourStepError: it does not start.
        """
        port, http_port = self._ports
        flags = ["--simulate", "--port", f"{port}", "--http-port", f"{http_port}", "--state-dir", f"{self.state}"]
        with self.log.open("ab") as output:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "toold", "serve", *flags, "--config", f"{self._settings}"),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=demo_environment(os.environ, self._workspace),
            )
        address = await self._wait_for_address(self._process)
        self._ports = (address.port, address.http_port)
        return address

    async def kill(self) -> None:
        """Kill it with SIGKILL, and wait for its end."""
        self._running.kill()
        await self._running.wait()

    async def stop(self) -> str:
        """Stop it with SIGTERM; returns the line to print.

        Raises:
            TourStepError: it does not stop, or its exit code is not 0.
        """
        began = time.perf_counter()
        self._running.send_signal(signal.SIGTERM)
        try:
            code = await asyncio.wait_for(self._running.wait(), STOP_S)
        except TimeoutError:
            raise TourStepError(f"the daemon is still running after {STOP_S:g} s") from None
        if code != 0:
            raise TourStepError(f"the daemon exited with code {code}")
        return f"exit code 0 after {time.perf_counter() - began:.1f} s"

    @property
    def _running(self) -> Process:
        if self._process is None:
            raise TourStepError("the daemon was not started")
        return self._process

    async def _wait_for_address(self, process: Process) -> DaemonAddress:
        began = time.perf_counter()
        # A killed daemon leaves its announcement behind.
        while (address := read_announcement(self.state).address) is None or address.pid != process.pid:
            if process.returncode is not None:
                raise TourStepError(f"the daemon exited with code {process.returncode}")
            if time.perf_counter() - began > START_S:
                raise TourStepError(f"the daemon is not listening after {START_S:g} s")
            await asyncio.sleep(0.05)
        return address


def demo_environment(env: Mapping[str, str], workspace: Path) -> dict[str, str]:
    """The environment without toold's variables, which configure another daemon."""
    remaining = {name: value for name, value in env.items() if not name.startswith("TOOLD_")}
    return remaining | {"TOOLD_WORKSPACE": str(workspace)}
