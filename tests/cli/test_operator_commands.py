"""``toold cancel``, ``toold reload`` and ``toold stop``. tests/e2e stops a real daemon."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from toold.cli import operator_commands
from toold.protocol.daemon_address import DaemonAddress, encode_address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Operated, Run

HOLD = """
import signal, sys, time
from pathlib import Path
from toold.daemon.persistence.state_directory import StateDirectory
with StateDirectory(Path(sys.argv[1])) as state:
    signal.signal(signal.SIGTERM, (lambda *_: sys.exit()) if sys.argv[2] == "ends" else signal.SIG_IGN)
    print("held", flush=True)
    while True:
        time.sleep(60)
"""
"""A process that locks a state directory like a daemon, and exits on SIGTERM or never."""


class Holder:
    """A process that holds a state directory."""

    def __init__(self, directory: Path, manner: str) -> None:
        words = [sys.executable, "-c", HOLD, str(directory), manner]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "held\n"
        address = DaemonAddress(
            self.process.pid, "127.0.0.1", 1, 1, tls=False, auth=True, version="1", grace_period_s=0.1
        )
        (directory / "daemon.json").write_bytes(encode_address(address))

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def holder(starts_processes: None, request: pytest.FixtureRequest, bare_environment: Path) -> Iterator[Holder]:
    """A process that exits as its parameter says, by default on SIGTERM."""
    holder = Holder(bare_environment, getattr(request, "param", "ends"))
    yield holder
    holder.close()


def test_stop_signals_the_daemon_and_waits(run: Run, holder: Holder) -> None:
    """By its pid only: its HTTP port has no server here. The command returns after its exit."""
    result = run("stop")
    assert result.exit_code == 0, result.stderr
    first, last = result.stdout.splitlines()
    assert first == f"Stopping the daemon (pid {holder.process.pid}), within 0.1 s."
    assert last.startswith("Stopped after ")
    assert holder.process.wait(timeout=20) == 0


@pytest.mark.parametrize("holder", ["never"], indirect=True)
def test_stop_gives_up_on_a_daemon_that_does_not_exit(
    run: Run, holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 1 with the command that would kill it; the user decides."""
    monkeypatch.setattr(operator_commands, "SHUTDOWN_MARGIN_S", 0.0)
    result = run("stop")
    assert result.exit_code == 1
    assert f"kill -9 {holder.process.pid}" in result.stderr
    assert holder.process.poll() is None


def test_a_stopping_daemon_is_not_signalled_again(
    run: Run, operated: Operated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second signal would cut its grace period short; it is waited for."""
    operated.announce(stopping=True)
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("it was signalled"))
    monkeypatch.setattr(operator_commands, "_PROCESS_END_S", 0.0)  # the process lives on: only its lock is released
    looks = iter([operated.pid, operated.pid, None])
    monkeypatch.setattr(operator_commands, "running_pid", lambda _: next(looks))
    result = run("stop")
    assert result.exit_code == 0
    assert "already stopping" in result.stdout
    assert not operated.requests  # a busy daemon might not answer in time


@pytest.mark.process
def test_without_a_daemon_no_process_is_signalled(run: Run, bare_environment: Path) -> None:
    """A pid in the lock's file counts only while the lock is held."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        bare_environment.mkdir()
        (bare_environment / "daemon.lock").write_text(f"{stranger.pid}\n")
        result = run("stop")
        assert result.exit_code == 3
        assert "no daemon runs" in result.stderr
        assert stranger.poll() is None
        stranger.kill()


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="only Linux shows which files a process has open")
@pytest.mark.process
def test_a_pid_of_another_container_is_not_signalled(run: Run, operated: Operated, bare_environment: Path) -> None:
    """The lock is held across containers that share the directory; here that pid is another process."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        (bare_environment / "daemon.lock").write_text(f"{stranger.pid}\n")
        result = run("stop")
        assert result.exit_code == 1
        assert "another container" in result.stderr
        assert stranger.poll() is None
        stranger.kill()


def test_another_users_daemon_is_not_stopped(run: Run, holder: Holder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 1; the message names its owner."""

    def refuse(pid: int, number: int) -> None:
        assert (pid, number) == (holder.process.pid, signal.SIGTERM)
        raise PermissionError

    with monkeypatch.context() as patched:
        patched.setattr(os, "kill", refuse)
        result = run("stop")
    assert result.exit_code == 1
    assert "belongs to another user" in result.stderr


def test_ctrl_c_ends_only_the_wait(run: Run, holder: Holder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 130; the daemon got the signal."""

    def interrupt(*_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(operator_commands, "_wait_for_exit", interrupt)
    result = run("stop")
    assert result.exit_code == 130
    assert "still stopping" in result.stderr
    assert holder.process.wait(timeout=20) == 0


@pytest.mark.parametrize(
    ("state", "message"),
    [("waiting", "which was waiting"), ("running", "which was running"), ("ending", "already ending")],
)
def test_the_cancelled_call_is_printed(run: Run, operated: Operated, state: str, message: str) -> None:
    """The call's whole id, tool, session and state."""
    call = {"id": "0a1b-1f", "tool": "chat", "session": "an-editor", "state": state}
    operated.answers["POST /operator/calls/1f/cancel"] = (200, call)
    result = run("cancel", "1f")
    assert result.exit_code == 0
    assert "0a1b-1f (chat of session an-editor)" in result.stdout
    assert message in result.stdout


def test_an_unknown_call(run: Run, operated: Operated) -> None:
    """The command prints the daemon's message and exits with 1."""
    message = "No call 2 runs here; it may have ended. `toold calls` shows what runs."
    operated.answers["POST /operator/calls/2/cancel"] = (404, {"error": {"code": "NOT_FOUND", "message": message}})
    result = run("cancel", "2")
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", f"{message}\n")


def test_an_id_is_quoted_in_the_path(run: Run, operated: Operated) -> None:
    """An id with slashes cannot reach another route."""
    operated.answers["POST /operator/calls/..%2Freload%3F/cancel"] = (404, {"error": {"message": "no"}})
    assert run("cancel", "../reload?").stderr == "no\n"


@pytest.mark.parametrize(
    ("reloaded", "waiting", "printed"),
    [
        (["log_level", "max_running"], ["port"], "reloaded: log_level, max_running\nneeds a restart: port\n"),
        (["log_level"], [], "reloaded: log_level\n"),
        ([], ["port", "host"], "needs a restart: port, host\n"),
        ([], [], "unchanged\n"),
    ],
)
def test_changed_settings_are_printed(
    run: Run, operated: Operated, reloaded: list[str], waiting: list[str], printed: str
) -> None:
    """The names of the reloaded settings and of those that need a restart."""
    operated.answers["POST /operator/reload"] = (200, {"reloaded": reloaded, "needs_restart": waiting})
    result = run("reload")
    assert (result.exit_code, result.stdout) == (0, printed)


def test_an_invalid_configuration_is_reported_as_at_start(run: Run, operated: Operated) -> None:
    """The same message and exit code, and which configuration stays in effect."""
    message = "port (toold.toml): must be a whole number"
    operated.answers["POST /operator/reload"] = (400, {"error": {"code": "VALIDATION_ERROR", "message": message}})
    result = run("reload")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"toold: cannot reload: {message}; the old configuration stays in effect\n"
