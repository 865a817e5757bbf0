"""A daemon for the peers, and the two transports to it."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.daemon_environment import daemon_environment

Spec = dict[str, Any]
START_S = 60.0


@pytest.fixture(scope="session")
def ways(starts_processes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Spec]]:
    """The settings by which a peer connects over ``http`` and over ``stdio``; both use one daemon."""
    directory = tmp_path_factory.mktemp("peers")
    state = directory / "state"
    env = daemon_environment(state, HOME=str(directory))
    flags = ["--simulate", "--port", "0", "--http-port", "0"]
    with (directory / "daemon.log").open("wb") as log:
        daemon = subprocess.Popen(
            [sys.executable, "-m", "toold", "serve", *flags], env=env, cwd=directory, stdout=log, stderr=log
        )
    try:
        url = f"http://127.0.0.1:{_http_port(daemon, state)}/mcp"
        yield {
            "http": {"url": url, "token": (state / "token").read_text().strip()},
            "stdio": {"command": [sys.executable, "-m", "toold", "mcp"], "env": env},
        }
    finally:
        daemon.terminate()
        assert daemon.wait(timeout=30) == 0


def _http_port(daemon: subprocess.Popen[bytes], state: Path) -> int:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and daemon.poll() is None:
        try:
            port: int = json.loads((state / "daemon.json").read_text())["http_port"]
        except (OSError, ValueError):
            time.sleep(0.02)
        else:
            return port
    raise AssertionError((state.parent / "daemon.log").read_text())
