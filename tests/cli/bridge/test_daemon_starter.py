"""The daemon of the state directory: found, or started."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from toold.cli.bridge import daemon_starter
from toold.cli.bridge.daemon_starter import DaemonStarter, DaemonStartError, daemon_environment, port_flags
from toold.daemon.persistence.state_directory import StateDirectory
from toold.protocol.daemon_address import DaemonAddress


@pytest.mark.parametrize(
    ("env", "named", "local"),
    [
        ({}, False, True),
        ({"TOOLD_PORT": "0"}, False, True),
        ({"TOOLD_PORT": "9000"}, True, True),
        ({"TOOLD_HOST": "localhost"}, True, True),
        ({"TOOLD_HOST": "tools.example"}, True, False),
        ({"EXAI_WS_HOST": "wss://tools.example/ws"}, True, False),
    ],
)
def test_the_environment_may_name_the_daemon(env: dict[str, str], named: bool, local: bool, tmp_path: Path) -> None:
    """The environment can name the daemon's address; a daemon is started only if the address is local."""
    starter = DaemonStarter({"TOOLD_STATE_DIR": str(tmp_path), **env})
    assert (starter.named, starter.local) == (named, local)


def test_relative_paths_mean_the_editors_directory(tmp_path: Path) -> None:
    """The daemon starts in its state directory, and so gets them whole."""
    env = {"TOOLD_STATE_DIR": "state", "TOOLD_CONFIG": "my.toml", "TOOLD_WORKSPACE": f".{os.pathsep}/other", "X": "y"}
    assert daemon_environment(env, tmp_path / "state", tmp_path) == {
        "TOOLD_STATE_DIR": str(tmp_path / "state"),
        "TOOLD_CONFIG": str(tmp_path / "my.toml"),
        "TOOLD_WORKSPACE": f"{tmp_path}{os.pathsep}/other",
        "X": "y",
    }


def test_a_clients_token_is_not_the_daemons(tmp_path: Path) -> None:
    """A daemon whose directory has a token does not take over the one with which its first client authenticates."""
    env = {"TOOLD_TOKEN": "a-token-for-one-client"}
    assert daemon_environment(env, tmp_path, tmp_path)["TOOLD_TOKEN"] == "a-token-for-one-client"
    (tmp_path / "token").write_text("the-token-of-the-daemon")
    assert "TOOLD_TOKEN" not in daemon_environment(env, tmp_path, tmp_path)


def test_a_taken_default_port_is_replaced(tmp_path: Path) -> None:
    """If the default port is taken, another one is used; a port that the operator configured is kept."""
    assert port_flags({}, tmp_path, lambda _: False) == []
    assert port_flags({}, tmp_path, lambda port: port == 8080) == ["--http-port", "0"]
    assert port_flags({"TOOLD_PORT": "8079"}, tmp_path, lambda _: True) == ["--http-port", "0"]
    (tmp_path / "toold.toml").write_text("http_port = 8080")
    assert port_flags({}, tmp_path, lambda _: True) == ["--port", "0"]
    (tmp_path / "toold.toml").write_text("nonsense")
    assert port_flags({}, tmp_path, lambda _: True) == ["--port", "0", "--http-port", "0"]


async def test_a_daemon_that_runs_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A running daemon is found by its lock and its address, and no other one is started."""
    monkeypatch.setattr(DaemonStarter, "_start", None)
    with StateDirectory(tmp_path) as state:
        state.write_address(DaemonAddress(os.getpid(), "127.0.0.1", 1, 2, tls=False, auth=True, version="1"))
        await DaemonStarter({"TOOLD_STATE_DIR": str(tmp_path)}).ensure_running()


@pytest.mark.process
async def test_a_daemon_that_does_not_start(tmp_path: Path) -> None:
    """The last line of its log is the error."""
    env = {**os.environ, "TOOLD_STATE_DIR": str(tmp_path / "state"), "TOOLD_PORT": "nonsense"}
    with pytest.raises(DaemonStartError, match=r"port .TOOLD_PORT.: must be a whole number"):
        await DaemonStarter(env).ensure_running()
    assert (tmp_path / "state" / daemon_starter.LOG_FILE).stat().st_mode & 0o777 == 0o600


async def test_an_unusable_state_directory(tmp_path: Path) -> None:
    """The error names the directory and says what to do."""
    (tmp_path / "file").touch()
    with pytest.raises(DaemonStartError, match="set TOOLD_STATE_DIR"):
        await DaemonStarter({"TOOLD_STATE_DIR": str(tmp_path / "file" / "state")}).ensure_running()
