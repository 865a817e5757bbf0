"""The daemon as a process that can be killed, drained, and restarted on the same directory and ports."""

import asyncio
import json
import random
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import httpx
from tests.daemon_environment import daemon_environment

_PROGRAM: Final = """
import os, runpy, signal, sys, time
shift, kill_at, clock = float(sys.argv.pop(1)), int(sys.argv.pop(1)), time.time
time.time = lambda: clock() + shift
if kill_at:
    from toold.store.sqlite.committer import SqliteCommitter
    commits, commit = 0, SqliteCommitter._commit
    def commit_or_die(committer, connection):
        global commits
        commits += 1
        if commits == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        commit(committer, connection)
        if commits == -kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
    SqliteCommitter._commit = commit_or_die
sys.argv[0] = "toold"
runpy.run_module("toold", run_name="__main__", alter_sys=True)
"""
"""Runs toold with a clock that is fast by the first argument, in seconds. If the second argument is n, not 0, the
process is killed before its n-th commit to the database; if it is -n, after it."""
_CREATE_TOKENS: Final = """
import json, sys
from toold.cli.token_command import command
for arguments in json.loads(sys.argv[1]):
    command(arguments, standalone_mode=False)
"""
"""One process, because starting one takes longer than creating a token."""
_START_S: Final = 300.0
"""Importing everything takes a second of CPU time, which other programs may take from it for long."""
_STOP_S: Final = 30.0
_POLL_S: Final = 0.02
_SHOWN_CHARS: Final = 8000
"""The end of a log that an error shows, with the stacks of all threads."""


class DaemonError(Exception):
    """The daemon did not start or did not stop cleanly; the message has the end of its log."""


def free_port() -> int:
    """An unused port below the kernel's range for outgoing connections: it stays free while the daemon is down."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class Daemon:
    """A daemon in ``directory``; ``settings`` are environment variables. ``simulate``: it asks the simulator."""

    def __init__(self, directory: Path, settings: Mapping[str, str], *, simulate: bool = True) -> None:
        self.state = directory / "state"
        self.port, self.http_port = free_port(), free_port()
        self.starts = 0
        self._simulate = simulate
        self._directory = directory
        self._log = directory / "daemon.log"
        self.env = daemon_environment(self.state, **settings, PYTHONFAULTHANDLER="1")
        self._process: asyncio.subprocess.Process | None = None
        self.clock_shift_s = 0.0
        """By how much the clock of the next process is fast."""
        self.kill_at_commit = 0
        """The next process is killed before this commit to its database, or after it if it is negative; 0: not."""

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code of the last process; None while it runs."""
        assert self._process is not None
        return self._process.returncode

    def signal(self, number: signal.Signals) -> None:
        """Send the process a signal, if it still runs."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(number)

    @property
    def token(self) -> str:
        return (self.state / "token").read_text(encoding="utf-8").strip()

    @property
    def logs(self) -> Sequence[Path]:
        """The files that the daemon appends to, except its database."""
        return (self._log, self.state / "sim_effect.log")

    def logged(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    async def start(self) -> None:
        """Start the process, and return when it listens.

        Raises:
            DaemonError: the process ended.
        """
        ports = ("--port", str(self.port), "--http-port", str(self.http_port))
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", _PROGRAM, str(self.clock_shift_s), str(self.kill_at_commit)),
                *("serve", *(["--simulate"] if self._simulate else []), *ports),
                stdout=log,
                stderr=log,
                env=self.env,
                cwd=self._directory,
            )
        self.starts += 1
        try:
            async with asyncio.timeout(_START_S):
                while not self._listens():
                    if self._process.returncode is not None:
                        raise self._fault(f"ended with {self._process.returncode} at its start")
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            raise self._fault(f"did not listen within {_START_S:g} s") from None

    async def until_writing(self) -> None:
        """Wait until the database can be written again."""
        client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{self.http_port}", trust_env=False, verify=False)
        async with client, asyncio.timeout(_START_S):
            while "the database cannot be written" in (await client.get("/readyz")).text:
                await asyncio.sleep(_POLL_S)

    async def create_token(self, name: str) -> str:
        """Create a token for another principal.

        Raises:
            DaemonError: it could not be created.
        """
        return (await self.create_tokens({name: ()}))[name]

    async def create_tokens(self, tokens: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """Create tokens of other principals by their names, with these options of ``toold token create``.

        Raises:
            DaemonError: one could not be created.
        """
        commands = [["create", name, *options] for name, options in tokens.items()]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _CREATE_TOKENS, json.dumps(commands)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self.env,
            cwd=self._directory,
        )
        output, errors = await process.communicate()
        if process.returncode != 0:
            raise self._fault(f"refused to create tokens ({process.returncode}): {errors.decode()}")
        return dict(zip(tokens, output.decode().split(), strict=True))

    async def kill(self) -> None:
        """Kill the process, as a crash would."""
        assert self._process is not None
        self.signal(signal.SIGKILL)
        await self._process.wait()

    async def ended(self) -> None:
        """Wait until the process has ended."""
        assert self._process is not None
        await self._process.wait()

    async def stop(self, accepted: frozenset[int] = frozenset({0})) -> None:
        """Drain and stop the daemon.

        Raises:
            DaemonError: it did not end in time, or its exit code is not ``accepted``.
        """
        assert self._process is not None
        self.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(_STOP_S):
                code = await self._process.wait()
        except TimeoutError:
            self.signal(signal.SIGABRT)  # writes the stacks of all threads to the log
            await self._process.wait()
            raise self._fault(f"did not end within {_STOP_S:g} s after SIGTERM") from None
        if code not in accepted:
            raise self._fault(f"ended with {code} after SIGTERM")

    async def close(self) -> None:
        """Kill the process if it still runs."""
        if self._process is not None and self._process.returncode is None:
            await self.kill()

    def _listens(self) -> bool:
        try:
            address = json.loads((self.state / "daemon.json").read_bytes())
        except (OSError, ValueError):
            return False
        return bool(address["pid"] == self.pid)  # a killed daemon leaves its file

    def _fault(self, what: str) -> DaemonError:
        return DaemonError(f"the daemon {what}:\n{self.logged()[-_SHOWN_CHARS:]}")
