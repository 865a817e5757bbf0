"""A daemon for the peers, and the two transports to it; a Phoenix server."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.daemon_environment import daemon_environment

Spec = dict[str, Any]
START_S = 60.0
PHOENIX_START_S = 300.0
"""It imports and migrates for half a minute of computing time."""
ROOT = Path(__file__).parents[2]
PEERS = ROOT / ".venv/peers"


def require(peer: str) -> None:
    """Skip the test if the peer is not installed."""
    if not (ROOT / f".venv/.peer-{peer}").exists():
        pytest.skip(f"the peer {peer} is not installed; `make test-peers` installs it, or reports why it cannot")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that need large programs, unless ``-m`` names them."""
    if "large_peer" in config.option.markexpr:
        return
    if large := [item for item in items if item.get_closest_marker("large_peer")]:
        config.hook.pytest_deselected(items=large)
        items[:] = [item for item in items if item not in large]


@dataclass(frozen=True)
class Phoenix:
    """A running Phoenix that requires a key."""

    url: str
    key: str

    def post(self, path: str, body: Spec) -> Any:
        """Send a request of its REST API, and return the answer's JSON, if any."""
        answer = httpx.post(
            f"{self.url}/v1/{path}", json=body, headers={"Authorization": f"Bearer {self.key}"}, timeout=START_S
        )
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None


@pytest.fixture(scope="session")
def phoenix(starts_processes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Phoenix]:
    """A Phoenix server with an empty database."""
    require("phoenix")
    directory = tmp_path_factory.mktemp("phoenix")
    with socket.create_server(("127.0.0.1", 0)) as http, socket.create_server(("127.0.0.1", 0)) as grpc:
        port, grpc_port = http.getsockname()[1], grpc.getsockname()[1]
    key = "the-key-of-an-administrator-in-tests-1"
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(directory),
        "PHOENIX_WORKING_DIR": str(directory),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(grpc_port),
        "PHOENIX_TELEMETRY_ENABLED": "false",
        "PHOENIX_ENABLE_AUTH": "true",
        "PHOENIX_SECRET": "a-secret-that-signs-tokens-in-tests-1",
        "PHOENIX_ADMIN_SECRET": key,
    }
    command = [str(PEERS / "phoenix/bin/python"), "-m", "phoenix.server.main", "serve"]
    with (directory / "phoenix.log").open("wb") as log:
        server = subprocess.Popen(command, env=env, cwd=directory, stdout=log, stderr=log)
    try:
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + PHOENIX_START_S
        while not _answers(f"{url}/healthz"):
            assert server.poll() is None, (directory / "phoenix.log").read_text()[-4000:]
            assert time.monotonic() < deadline, "Phoenix did not start"
            time.sleep(0.2)
        yield Phoenix(url, key)
    finally:
        server.terminate()
        server.wait(timeout=60)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=5.0).is_success
    except httpx.HTTPError:
        return False


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
        url = f"http://127.0.0.1:{http_port(daemon, state)}/mcp"
        yield {
            "http": {"url": url, "token": (state / "token").read_text().strip()},
            "stdio": {"command": [sys.executable, "-m", "toold", "mcp"], "env": env},
        }
    finally:
        daemon.terminate()
        assert daemon.wait(timeout=30) == 0


def http_port(daemon: subprocess.Popen[bytes], state: Path) -> int:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and daemon.poll() is None:
        try:
            port: int = json.loads((state / "daemon.json").read_text())["http_port"]
        except (OSError, ValueError):
            time.sleep(0.02)
        else:
            return port
    raise AssertionError((state.parent / "daemon.log").read_text())
