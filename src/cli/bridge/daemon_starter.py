"""The daemon of the state directory: found, or started for good, once, however many editors start at the same time."""

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
from ...protocol.daemon_address import DEFAULT_HOST, DEFAULT_HTTP_PORT, DEFAULT_PORT, default_state_dir, is_loopback
from ..operator_client import held_by
from ..service_files import RESTART_AFTER_S, service_file

LOG_FILE: Final = "daemon.log"
"""In the state directory: what a daemon says that was started here."""
STARTING_FILE: Final = "starting.lock"
"""In the state directory, locked while somebody starts its daemon."""

_START_S: Final = 60.0
_LOOK_EVERY_S: Final = 0.05
_SERVICE_S: Final = RESTART_AFTER_S + 5.0
"""How long the system has to start its service again before somebody else starts a daemon in its place."""
_LOG_BYTES: Final = 10 * 1024**2
"""A longer log is set aside at the next start."""


class DaemonStartError(Exception):
    """The daemon could not be started; the message says why and what to do."""


class DaemonStarter:
    """Sees to it that a daemon runs in the state directory, where it is to be found there."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self.directory = Path.cwd() / default_state_dir(env)
        self.named = any(env.get(name) not in {None, "", "0"} for name in (*HOST_VARIABLES, *PORT_VARIABLES))
        """The environment names an address: what listens there is the daemon."""
        self.local = all(is_loopback(env[name]) for name in HOST_VARIABLES if env.get(name))
        """The address is this machine's, so that a daemon may be started for it."""
        self._started: subprocess.Popen[bytes] | None = None

    async def ensure_running(self) -> None:
        """Return once a daemon runs in the directory and says where.

        Raises:
            StartError: it cannot be started, or does not come to listen.
        """
        began = time.monotonic()
        # One that crashed may be the system's to start again; two would be at odds for ever.
        patience_s = _SERVICE_S if _is_service() else 0.0
        try:
            while not self._runs():
                waited_s = time.monotonic() - began
                if waited_s > _START_S:
                    raise DaemonStartError(
                        f"the daemon does not come to listen; its log is {self.directory / LOG_FILE}"
                    )
                if waited_s >= patience_s and held_by(self.directory) is None:
                    await self._start_unless_others_do()
                else:
                    await asyncio.sleep(_LOOK_EVERY_S)
        except OSError as error:
            raise DaemonStartError(
                f"no daemon can be started in {self.directory} ({error.strerror}); set TOOLD_STATE_DIR to a directory "
                "of your own"
            ) from None

    def _runs(self) -> bool:
        return read_announcement(self.directory).address is not None and held_by(self.directory) is not None

    async def _start_unless_others_do(self) -> None:
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone(self.directory / STARTING_FILE) as alone:
            if not alone:
                await asyncio.sleep(_LOOK_EVERY_S)
            elif held_by(self.directory) is None:
                self._started = self._start()
                await self._listening(self._started)

    def _start(self) -> subprocess.Popen[bytes]:
        """A daemon in a session of its own, so that it outlives this process and hears no Ctrl-C of its terminal."""
        log = self.directory / LOG_FILE
        if log.exists() and log.stat().st_size > _LOG_BYTES:
            log.replace(log.with_name(f"{LOG_FILE}.1"))
        env = daemon_environment(self._env, self.directory, Path.cwd())
        flags = port_flags(env, self.directory, _is_taken)
        with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "wb") as output:  # noqa: PTH123 - of a descriptor
            return subprocess.Popen(  # noqa: S603 - our own words
                [sys.executable, "-m", "toold", "serve", *flags],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=env,
                cwd=self.directory,
                start_new_session=True,
            )

    async def _listening(self, daemon: subprocess.Popen[bytes]) -> None:
        began = time.monotonic()
        while not self._runs() and time.monotonic() - began < _START_S:
            if daemon.poll() is not None and held_by(self.directory) is None:
                raise DaemonStartError(f"the daemon does not start: {_last_line(self.directory / LOG_FILE)}")
            await asyncio.sleep(_LOOK_EVERY_S)


def daemon_environment(env: Mapping[str, str], directory: Path, cwd: Path) -> dict[str, str]:
    """The environment of a daemon that starts in ``directory``, where relative paths meant ``cwd``."""
    given = {**env, "TOOLD_STATE_DIR": str(directory)}
    for name in ("TOOLD_CONFIG", "TOOLD_WORKSPACE"):
        if given.get(name):
            paths = [str(cwd / Path(path).expanduser()) for path in given[name].split(os.pathsep) if path]
            given[name] = os.pathsep.join(paths)
    return given


def port_flags(env: Mapping[str, str], directory: Path, is_taken: Callable[[int], bool]) -> list[str]:
    """Flags for ports that nobody chose and somebody else has: a free one will do, as clients are told which it is."""
    named = env.get("TOOLD_CONFIG")
    chosen = _settings_of(Path(named) if named else directory / "toold.toml")
    flags = []
    for setting, port in (("port", DEFAULT_PORT), ("http_port", DEFAULT_HTTP_PORT)):
        if not env.get(f"TOOLD_{setting.upper()}") and setting not in chosen and is_taken(port):
            flags += [f"--{setting.replace('_', '-')}", "0"]
    return flags


def _settings_of(config: Path) -> Mapping[str, object]:
    try:
        return tomllib.loads(config.read_text("utf-8"))
    except (OSError, ValueError):  # the daemon says what is wrong with it
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
    said = next((line for line in reversed(lines) if line.strip()), "it says nothing")
    return said.removeprefix("toold: cannot start: ")[:500]


@contextmanager
def _alone(path: Path) -> Iterator[bool]:
    """Whether nobody else is in this block; the lock goes with its process."""
    with path.open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
