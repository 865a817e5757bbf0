"""``toold stop``: whom it signals, how long it waits, and what it says. A real daemon is stopped in tests/e2e."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from toold.cli import stop_command
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
"""A process that holds a state directory as a daemon does, and ends when it is told to, or never."""


class Holder:
    """Such a process."""

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
def holder(request: pytest.FixtureRequest, bare_environment: Path) -> Iterator[Holder]:
    """A process that ends as its parameter says, ``ends`` where there is none."""
    holder = Holder(bare_environment, getattr(request, "param", "ends"))
    yield holder
    holder.close()


def test_the_daemon_is_signalled_and_waited_for(run: Run, holder: Holder) -> None:
    """By its pid alone: the HTTP port that it names is nobody's here. Its end is there when the command is."""
    result = run("stop")
    assert result.exit_code == 0, result.stderr
    first, last = result.stdout.splitlines()
    assert first == f"Stopping the daemon of pid {holder.process.pid}; it has 0.1 s to end, its calls a little less."
    assert last.startswith("Stopped after ")
    assert holder.process.wait(timeout=20) == 0


@pytest.mark.parametrize("holder", ["never"], indirect=True)
def test_one_that_does_not_end_is_not_waited_for_for_ever(
    run: Run, holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 1, with what would end it and at what price; it is left to its user to do that."""
    monkeypatch.setattr(stop_command, "ENDING_S", 0.0)
    result = run("stop")
    assert result.exit_code == 1
    assert f"kill -9 {holder.process.pid}" in result.stderr
    assert holder.process.poll() is None


def test_one_that_stops_already_is_not_signalled_again(
    run: Run, operated: Operated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second signal would cut its grace period short; it is waited for."""
    operated.answers["GET /readyz"] = (503, {"status": "stopping"})
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("it was signalled"))
    looks = iter([operated.pid, operated.pid, None])
    monkeypatch.setattr(stop_command, "held_by", lambda _: next(looks))
    result = run("stop")
    assert result.exit_code == 0
    assert "stopping already" in result.stdout
    assert [request.token for request in operated.requests] == [None]


def test_where_no_daemon_runs_nobody_is_signalled(run: Run, bare_environment: Path) -> None:
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
def test_a_pid_of_another_container_is_not_signalled(run: Run, operated: Operated, bare_environment: Path) -> None:
    """The lock is held across containers that share the directory; here that pid is another process."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        (bare_environment / "daemon.lock").write_text(f"{stranger.pid}\n")
        result = run("stop")
        assert result.exit_code == 1
        assert "another container" in result.stderr
        assert stranger.poll() is None
        stranger.kill()


def test_another_users_daemon_is_left_to_that_user(run: Run, holder: Holder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 1, and whose it is."""

    def refuse(pid: int, number: int) -> None:
        assert (pid, number) == (holder.process.pid, signal.SIGTERM)
        raise PermissionError

    with monkeypatch.context() as patched:
        patched.setattr(os, "kill", refuse)
        result = run("stop")
    assert result.exit_code == 1
    assert "another user's" in result.stderr


def test_ctrl_c_ends_the_waiting_and_not_the_stopping(
    run: Run, holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 130; the daemon was told."""

    def interrupt(*_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(stop_command, "_ends", interrupt)
    result = run("stop")
    assert result.exit_code == 130
    assert "goes on stopping" in result.stderr
    assert holder.process.wait(timeout=20) == 0
