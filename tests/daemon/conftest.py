"""Settings that touch nothing of this machine, and a port that another program has."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.config.settings import Settings

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
