"""Finds or starts the daemon of the state directory, once, even if several editors start at the same time."""

import asyncio
import fcntl
import os
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ...client import read_announcement
from ...client.daemon_endpoint import HOST_VARIABLES, PORT_VARIABLES
from ...protocol.daemon_address import (
    DEFAULT_HOST,
    DEFAULT_HTTP_PORT,
    DEFAULT_PORT,
    TOKEN_FILE,
    default_state_dir,
    is_loopback,
)
from ...protocol.home_directory import expand_home
from ..operator_client import running_pid
from ..service_files import RESTART_AFTER_S, service_file

LOG_FILE: Final = "daemon.log"
"""The log file, in the state directory, of a daemon that this process starts."""
STARTING_FILE: Final = "starting.lock"
"""The lock file, in the state directory, that a process holds while it starts the daemon."""

_START_S: Final = 60.0
_POLL_S: Final = 0.05
_SERVICE_S: Final = RESTART_AFTER_S + 5.0
"""How long to wait for the service manager to restart its service, before this process starts a daemon."""
_LOG_BYTES: Final = 10 * 1024**2
"""A longer log is rotated at the next start."""


class DaemonStartError(Exception):
    """The daemon could not be started; the message says why and what to do."""


class DaemonStarter:
    """Ensures that a daemon runs in the state directory."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self.directory = Path.cwd() / default_state_dir(env)
        self.named = any(env.get(name) not in {None, "", "0"} for name in (*HOST_VARIABLES, *PORT_VARIABLES))
        """Whether the environment names the daemon's address."""
        self.local = all(is_loopback(env[name]) for name in HOST_VARIABLES if env.get(name))
        """Whether the address is on this machine, so that a daemon may be started for it."""
        self._started: subprocess.Popen[bytes] | None = None

    async def ensure_running(self) -> None:
        """Return once a daemon runs in the directory and has published its address.

        Raises:
            DaemonStartError: it cannot be started, or does not listen in time.
        """
        began = time.monotonic()
        # The service manager may be about to restart a crashed daemon; a second one would make its restarts fail.
        patience_s = _SERVICE_S if _is_service() else 0.0
        try:
            while not self._runs():
                waited_s = time.monotonic() - began
                if waited_s > _START_S:
                    raise DaemonStartError(f"the daemon is not listening; see its log {self.directory / LOG_FILE}")
                if waited_s >= patience_s and running_pid(self.directory) is None:
                    await self._start_once()
                else:
                    await asyncio.sleep(_POLL_S)
        except OSError as error:
            raise DaemonStartError(
                f"cannot start a daemon in {self.directory} ({error.strerror}); set TOOLD_STATE_DIR to a directory "
                "that you can write to"
            ) from None

    def _runs(self) -> bool:
        return read_announcement(self.directory).address is not None and running_pid(self.directory) is not None

    async def _start_once(self) -> None:
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _try_lock(self.directory / STARTING_FILE) as locked:
            if not locked:
                await asyncio.sleep(_POLL_S)
            elif running_pid(self.directory) is None:
                self._started = self._start()
                await self._wait_for_start(self._started)

    def _start(self) -> subprocess.Popen[bytes]:
        """Start a daemon in a new session, so that it outlives this process and its terminal's Ctrl-C."""
        log = self.directory / LOG_FILE
        if log.exists() and log.stat().st_size > _LOG_BYTES:
            log.replace(log.with_name(f"{LOG_FILE}.1"))
        env = daemon_environment(self._env, self.directory, Path.cwd())
        flags = port_flags(env, self.directory, _is_taken)
        with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "wb") as output:  # noqa: PTH123 - opens a descriptor
            return subprocess.Popen(  # noqa: S603 - fixed arguments
                [sys.executable, "-m", "toold", "serve", *flags],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=env,
                cwd=self.directory,
                start_new_session=True,
            )

    async def _wait_for_start(self, daemon: subprocess.Popen[bytes]) -> None:
        began = time.monotonic()
        while not self._runs() and time.monotonic() - began < _START_S:
            if daemon.poll() is not None and running_pid(self.directory) is None:
                raise DaemonStartError(f"the daemon failed to start: {_last_line(self.directory / LOG_FILE)}")
            await asyncio.sleep(_POLL_S)


def daemon_environment(env: Mapping[str, str], directory: Path, cwd: Path) -> dict[str, str]:
    """The environment of a daemon that starts in ``directory``; paths relative to ``cwd`` become absolute.

    If the directory has a token, the daemon uses it: a client's ``TOOLD_TOKEN`` is not passed on.
    """
    daemon_env = {**env, "TOOLD_STATE_DIR": str(directory)}
    if (directory / TOKEN_FILE).exists():
        daemon_env.pop("TOOLD_TOKEN", None)
    for name in ("TOOLD_CONFIG", "TOOLD_WORKSPACE"):
        if daemon_env.get(name):
            paths = [str(cwd / expand_home(path)) for path in daemon_env[name].split(os.pathsep) if path]
            daemon_env[name] = os.pathsep.join(paths)
    return daemon_env


def port_flags(env: Mapping[str, str], directory: Path, is_taken: Callable[[int], bool]) -> list[str]:
    """Flags that replace a default port that is in use with a free one; clients find the port by the address file."""
    config = env.get("TOOLD_CONFIG")
    configured = _load_toml(Path(config) if config else directory / "toold.toml")
    flags = []
    for setting, port in (("port", DEFAULT_PORT), ("http_port", DEFAULT_HTTP_PORT)):
        if not env.get(f"TOOLD_{setting.upper()}") and setting not in configured and is_taken(port):
            flags += [f"--{setting.replace('_', '-')}", "0"]
    return flags


def _load_toml(config: Path) -> Mapping[str, object]:
    try:
        return tomllib.loads(config.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):  # the daemon reports the problem
        return {}


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((DEFAULT_HOST, port))
        except OSError:
            return True
    return False


def _is_service() -> bool:
    file = service_file(sys.platform, Path.home())
    return file is not None and file.exists()


def _last_line(log: Path) -> str:
    lines = log.read_text("utf-8", errors="replace").split("\n")
    line = next((line for line in reversed(lines) if line.strip()), "its log is empty")
    return line.removeprefix("toold: cannot start: ")[:500]


@contextmanager
def _try_lock(path: Path) -> Iterator[bool]:
    """Yields whether this process holds the lock; it is released when the block or the process ends."""
    with path.open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
