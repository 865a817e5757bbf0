"""Fixtures for tools: a call context without a daemon, and a real daemon with a real client and simulated vendors."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.simulated_daemon import simulated_environment
from toold.client import MCPWebSocketClient
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.lifecycle import running
from toold.providers.simulator import Simulator
from toold.tools import FileAccess

from .tool_context import Context


@dataclass
class Served:
    """A running daemon with its client and its simulated vendors."""

    client: MCPWebSocketClient
    simulator: Simulator
    http_url: str
    close: Callable[[], Awaitable[None]]
    """Close the client, the daemon and its vendors before the test ends."""


Serve = Callable[..., Awaitable[Served]]


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Serve]:
    """Return a function that starts a daemon: ``await serve(directory, **environment)``.

    The directory is the daemon's workspace. Its vendors are simulated.
    """
    async with AsyncExitStack() as daemons:

        async def served(directory: Path, **env: str) -> Served:
            stack = await daemons.enter_async_context(AsyncExitStack())
            simulator = await stack.enter_async_context(Simulator())
            settings_of_test = {"TOOLD_WORKSPACE": str(directory), **env}
            environment = simulated_environment(tmp_path / "state", simulator, **settings_of_test)
            settings = load_settings({}, env=environment, cwd=tmp_path)
            daemon = await stack.enter_async_context(running(settings))
            client = MCPWebSocketClient(daemon.address().url, token=environment["TOOLD_TOKEN"])
            return Served(await stack.enter_async_context(client), simulator, daemon.address().http_url, stack.aclose)

        yield served


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A readable workspace root."""
    directory = tmp_path / "workspace"
    directory.mkdir()
    return directory


@pytest.fixture
def context(workspace: Path) -> Context:
    """A running call that can read the files of ``workspace``."""
    return Context(FileAccess((workspace,)))


@pytest.fixture
def write(workspace: Path) -> Callable[[str, str | bytes], Path]:
    """Return a function that writes a file in ``workspace``."""

    def write(name: str, content: str | bytes) -> Path:
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write
