"""Starts and ends the processes: the daemon, the other servers and the load generator."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias, TypeVar

import msgspec
import psutil
from toold.protocol.daemon_address import ADDRESS_FILE, DaemonAddress, decode_address
from websockets.sync.client import connect

from .load import Order, cpu_s
from .wire import HELLO

_ROOT: Final = Path(__file__).parents[1]
_PEERS: Final = _ROOT / ".venv" / "peers"
"""Environments of other projects, created by ``make .venv/.peer-<name>`` with the lock files in tests/peers/."""
_START_S: Final = 120.0
_STOP_S: Final = 15.0
_POLL_S: Final = 0.002
_QUIET_S: Final = 0.4
_QUIET_SHARE: Final = 0.05
"""A server that uses less of one core than this for this long is idle."""
_OURS: Final = ("TOOLD_", "KIMI_", "MOONSHOT_", "GLM_", "ZHIPUAI_", "SUPABASE_", "EXAI_")
"""Prefixes of variables that are removed, so that the user's settings do not affect the benchmark."""

Mode: TypeAlias = Literal["stateless", "sessions"]
"""Whether an MCP server over HTTP has sessions."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers hello on a loopback port."""

    name: str
    process: "subprocess.Popen[str]"
    port: int
    start_s: float
    """Seconds from the start of the process to its first answer."""
    http_port: int = 0
    """The daemon's HTTP port."""
    about: str = ""
    """The server's own description."""

    def settle(self) -> None:
        """Wait until the server is idle; it may still import modules after its first answer."""
        process = psutil.Process(self.process.pid)
        give_up = time.perf_counter() + _START_S
        used = cpu_s(process)
        while time.perf_counter() < give_up:
            time.sleep(_QUIET_S)
            before, used = used, cpu_s(process)
            if used - before <= _QUIET_SHARE * _QUIET_S:
                return
        raise RuntimeError(f"the {self.name} server is still busy {_START_S:.0f} s after its first answer")

    def cpu_s(self) -> float:
        """The CPU time so far in seconds, user and system."""
        return cpu_s(psutil.Process(self.process.pid))

    def memory(self) -> tuple[int, int]:
        """The current memory in bytes: resident, and unshared."""
        info = psutil.Process(self.process.pid).memory_full_info()
        return info.rss, info.uss


@contextmanager
def bare_server() -> Iterator[Server]:
    """The bare echo server."""
    began = time.perf_counter()
    with _process([sys.executable, "-m", "benchmarks.bare_server"], cwd=_ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        _hello(port)
        yield Server("bare", process, port, time.perf_counter() - began)


@contextmanager
def supabase_stand_in() -> Iterator[int]:
    """The port of a stand-in for Supabase, which accepts, delays or rejects depending on the path."""
    command = [sys.executable, "-m", "benchmarks.supabase_stand_in"]
    with _process(command, cwd=_ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())


@contextmanager
def daemon(
    name: str = "daemon", flags: Sequence[str] = ("--simulate",), /, *, config: str = "", **settings: str
) -> Iterator[Server]:
    """The daemon with default settings, a temporary state directory, the simulator, and no token.

    ``config`` is its toold.toml, ``settings`` are environment variables. Without ``--simulate`` it asks the providers
    of ``config``.

    Raises:
        RuntimeError: it did not start; the message has its output.
    """
    with tempfile.TemporaryDirectory(prefix="toold-bench-") as temporary, (Path(temporary) / "log").open("w") as log:
        directory = Path(temporary)
        (directory / "toold.toml").write_text(config, encoding="utf-8")
        state = Path(settings.pop("TOOLD_STATE_DIR", directory / "state"))
        began = time.perf_counter()
        with _process(
            [sys.executable, "-m", "toold", "serve", *flags, "--port", "0", "--http-port", "0", "--no-auth"],
            cwd=directory,
            env={"TOOLD_STATE_DIR": str(state), **settings},
            stdout=log,
        ) as process:
            address = _address(process, directory, state)
            _hello(address.port)
            yield Server(name, process, address.port, time.perf_counter() - began, address.http_port)


@contextmanager
def vendor_stand_in() -> Iterator[int]:
    """The port of a stand-in for a vendor with OpenAI's API, whose model takes a second per turn."""
    command = [sys.executable, "-m", "benchmarks.agents.stand_in_vendor"]
    with _process(command, cwd=_ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())


@contextmanager
def agents_of(peer: str, module: str, vendor_port: int) -> Iterator["subprocess.Popen[str]"]:
    """A program that runs the agents of another project (``agents.run_rounds``).

    Raises:
        RuntimeError: its environment does not exist.
    """
    command = [peer_python(peer), "-m", f"benchmarks.agents.{module}", str(vendor_port)]
    with _process(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process


def mcp_sdk_server(mode: Mode) -> AbstractContextManager[Server]:
    """The MCP SDK's server with an ``echo``."""
    return mcp_server_in(f"SDK, {mode}", [sys.executable, "-m", "benchmarks.mcp_sdk_server", mode])


def fastmcp_server(mode: Mode) -> AbstractContextManager[Server]:
    """A FastMCP server with an ``echo``, in a separate environment.

    Raises:
        RuntimeError: the environment does not exist.
    """
    return mcp_server_in(f"FastMCP, {mode}", [peer_python("fastmcp"), "-P", "benchmarks/fastmcp_server.py", mode])


def mcp_sdk_server_alone(mode: Mode) -> AbstractContextManager[Server]:
    """Like ``mcp_sdk_server``, in an environment with only the SDK, and so with asyncio's loop.

    Raises:
        RuntimeError: the environment does not exist.
    """
    return mcp_server_in(f"SDK, {mode}", [peer_python("sdk"), "-P", "benchmarks/mcp_sdk_server.py", mode])


def peer_python(peer: str) -> str:
    """The interpreter of another project's environment.

    Raises:
        RuntimeError: the environment does not exist.
    """
    python = _PEERS / peer / "bin" / "python"
    if not python.exists():
        raise RuntimeError(f"{peer} is not installed; `make .venv/.peer-{peer}` installs it, from the network")
    return str(python)


@contextmanager
def mcp_server_in(name: str, command: list[str]) -> Iterator[Server]:
    """A server that prints its port and a description.

    Raises:
        RuntimeError: it did not start.
    """
    began = time.perf_counter()
    with _process(command, cwd=_ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        port, _, about = process.stdout.readline().strip().partition(" ")
        if not port:
            raise RuntimeError(f"the {name} server did not start; what it said is on stderr")
        yield Server(name, process, int(port), time.perf_counter() - began, int(port), about)


class LoadGenerator:
    """The process that carries out orders (``load``)."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def ask(self, order: Order, kind: type[T]) -> T:
        """Carry out an order.

        Raises:
            RuntimeError: the generator failed; its message is on stderr.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(order).decode() + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the load generator ended while it carried out {order}")
        return msgspec.json.decode(answer, type=kind)


@contextmanager
def load_generator() -> Iterator[LoadGenerator]:
    """One generator for all servers and rounds."""
    arguments = [sys.executable, "-m", "benchmarks.load"]
    with _process(arguments, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield LoadGenerator(process)


@contextmanager
def _process(
    arguments: list[str],
    *,
    cwd: Path,
    env: dict[str, str] | None = None,
    stdin: int = subprocess.DEVNULL,
    stdout: "int | object" = subprocess.DEVNULL,
) -> Iterator["subprocess.Popen[str]"]:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(_OURS)}
    with subprocess.Popen(
        arguments,
        cwd=cwd,
        env=inherited | (env or {}),
        stdin=stdin,
        stdout=stdout,  # type: ignore[arg-type]
        stderr=subprocess.STDOUT if not isinstance(stdout, int) else None,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _address(process: "subprocess.Popen[str]", directory: Path, state: Path) -> DaemonAddress:
    give_up = time.perf_counter() + _START_S
    while process.poll() is None and time.perf_counter() < give_up:
        with suppress(OSError, msgspec.DecodeError):
            return decode_address((state / ADDRESS_FILE).read_bytes())
        time.sleep(_POLL_S)
    raise RuntimeError(f"the daemon did not start:\n{(directory / 'log').read_text()[-2000:]}")


def _hello(port: int) -> None:
    with connect(f"ws://127.0.0.1:{port}/", compression=None, proxy=None) as connection:
        connection.send(HELLO.decode())
        answer = msgspec.json.decode(connection.recv())
    if answer.get("ok") is False:
        raise RuntimeError(f"hello was refused: {answer}")
