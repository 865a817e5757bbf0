"""Settings that touch nothing of this machine, and a port that another program has."""

import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.daemon.app_requests import NO_SDKS
from toold.daemon.app import Daemon
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.config.settings import Settings
from toold.daemon.lifecycle import running

MakeSettings = Callable[..., Settings]


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def settings_with(tmp_path: Path, state_dir: Path) -> MakeSettings:
    """A function that loads settings of an environment: free ports, and a separate state directory."""
    ports = {"TOOLD_PORT": "0", "TOOLD_HTTP_PORT": "0", "TOOLD_STATE_DIR": str(state_dir)}

    def load(**env: str) -> Settings:
        return load_settings({}, env=ports | env, cwd=tmp_path)

    return load


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
async def run_with(settings_with: Any) -> AsyncIterator[Any]:
    """``await run_with(**environment)``: a running daemon without SDKs, simulated unless said otherwise."""
    async with AsyncExitStack() as stack:

        async def start(**env: str) -> Daemon:
            return await stack.enter_async_context(running(settings_with(**{"TOOLD_SIMULATE": "true"} | NO_SDKS | env)))

        yield start


@pytest.fixture
def configure(tmp_path: Path) -> Any:
    """Write ``toold.toml``: ``configure('max_running = 2')``."""
    return (tmp_path / "toold.toml").write_text
