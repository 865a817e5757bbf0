"""A real PostgreSQL server for tests, from the package pgserver."""

import copy
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

ROLES = """
CREATE ROLE anon NOLOGIN NOINHERIT;
CREATE ROLE authenticated NOLOGIN NOINHERIT;
CREATE ROLE service_role NOLOGIN NOINHERIT BYPASSRLS;
CREATE ROLE authenticator LOGIN NOINHERIT;
GRANT anon, authenticated, service_role TO authenticator;
"""
"""The roles of a Supabase project."""


class Cluster:
    """A PostgreSQL server on a socket in its own directory; it opens no port."""

    def __init__(self, directory: Path, package: Path, *, fsync: bool = False) -> None:
        self.directory = directory
        self._user: str | None = None
        self._fsync = fsync
        if os.geteuid() == 0:
            # PostgreSQL does not run as root, and other users may not read root's directories.
            self._user = "nobody"
            # The programs load their libraries from a directory next to the package.
            libraries = package.with_name(f"{package.name}.libs")
            if libraries.exists():
                shutil.copytree(libraries, directory / libraries.name)
            package = shutil.copytree(package, directory / package.name)
            directory.chmod(0o755)
            (directory / "home").mkdir()
            os.chown(directory / "home", pwd.getpwnam("nobody").pw_uid, -1)
        self._bin = package / "pginstall/bin"
        self._home = directory / "home"
        self._data = self._home / "data"
        self.socket_directory = self._home
        self._home.mkdir(exist_ok=True)
        self._run(["initdb", "-D", self._data, "--auth=trust", "-U", "postgres", "-E", "UTF8", "--no-sync"])
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    @property
    def client_environment(self) -> dict[str, str]:
        return {"PATH": f"{self._bin}:{os.environ['PATH']}", "PGHOST": str(self.socket_directory)}

    @contextmanager
    def standby(self) -> Iterator["Cluster"]:
        """A second server, which follows this one by streaming replication until it is promoted."""
        standby = copy.copy(self)
        standby._data = self._home / "standby"
        standby.socket_directory = self._home / "s"
        standby.socket_directory.mkdir()
        if self._user:
            shutil.chown(standby.socket_directory, self._user)
        source: list[str | Path] = ["-h", self.socket_directory, "-U", "postgres"]
        self._run(["pg_basebackup", *source, "-D", standby._data, "-R", "--checkpoint=fast", "--no-sync"])
        standby.start()
        try:
            until(lambda: self.sql("SELECT state FROM pg_stat_replication") == "streaming")
            yield standby
        finally:
            standby.stop()

    def promote(self) -> None:
        """Makes a standby accept writes."""
        self.sql("SELECT pg_promote()")

    def _run(self, command: Sequence[str | Path]) -> None:
        done = subprocess.run(
            [self._bin / command[0], *command[1:]], cwd=self._home, user=self._user, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr.decode()

    def start(self) -> None:
        """Start the server and return when it accepts connections."""
        options = [
            "-c",
            f"fsync={'on' if self._fsync else 'off'}",
            "-c",
            "listen_addresses=",
            "-c",
            f"unix_socket_directories={self.socket_directory}",
        ]
        command: list[str | Path] = [self._bin / "postgres", "-D", self._data, *options]
        with (self.directory / "postgres.log").open("ab") as log:
            self._process = subprocess.Popen(command, cwd=self._home, user=self._user, stdout=log, stderr=log)
        until(lambda: self._process and self._process.poll() is None and self._answers())

    def _answers(self) -> bool:
        command: list[str | Path] = [self._bin / "pg_isready", "-h", self.socket_directory, "-q"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Close all connections and stop the server; with SIGQUIT as after a crash: it recovers at its next start."""
        assert self._process
        self._process.send_signal(how)
        self._process.wait(60)

    def sql(self, statements: str, *, database: str = "postgres", role: str = "postgres") -> str:
        """The output of the statements, unaligned, with one line per row; ``role`` runs them as another role.

        Raises:
            AssertionError: PostgreSQL rejected a statement. The error has its message.
        """
        command: list[str | Path] = [self._bin / "psql", "-XqtA", "-v", "ON_ERROR_STOP=1", "-U", "postgres"]
        command += ["-h", self.socket_directory, database]
        query = f"SET ROLE {role};\n{statements}"
        done = subprocess.run(command, input=query, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def uri(self, database: str, role: str = "authenticator") -> str:
        """The address of a database for a client that connects as this role."""
        return f"postgres://{role}@/{database}?host={self.socket_directory}"


def until(reached: Callable[[], object], timeout_s: float = 60) -> None:
    """Wait for a condition that another process fulfils."""
    deadline = time.monotonic() + timeout_s
    while not reached():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)


@contextmanager
def _directory() -> Iterator[Path]:
    # pytest's directory is not used: its path may be too long for a socket, and PostgreSQL's user may not read it.
    with tempfile.TemporaryDirectory(prefix="toold-pg-", ignore_cleanup_errors=True) as directory:
        yield Path(directory)


@contextmanager
def running_cluster(*, fsync: bool = False) -> Iterator[Cluster]:
    """A server; without ``fsync`` an end of the machine would lose commits, which no test depends on."""
    spec = importlib.util.find_spec("pgserver")
    if spec is None or spec.origin is None:
        pytest.skip("pgserver has no wheel for this Python")
    with _directory() as directory:
        server = Cluster(directory, Path(spec.origin).parent, fsync=fsync)
        try:
            yield server
        finally:
            server.stop()
