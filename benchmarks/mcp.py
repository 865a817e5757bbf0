"""``python -m benchmarks.mcp``: ``echo`` over MCP, compared with other servers, in turns within one run.

The others are the servers of the MCP SDK and FastMCP, in separate environments. All use the same protocol revision,
plain JSON and the same client sockets; each connection has one call in flight, as HTTP/1.1 requires, and every text is
unique. This process generates the load, at the same cost for all.

The daemon also has the SDK's server as a source over stdio: calls through it are compared with direct calls by the
SDK's client, without the daemon, its journal and its audit trail.
"""

import asyncio
import json
import signal
import sys
import time
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import psutil
import uvloop
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from rich.console import Console
from rich.table import Table

from .load import cpu_s
from .mcp_connection import NUMBERS, TEXT, McpConnection
from .servers import Mode, Server, daemon, fastmcp_server, mcp_sdk_server

_ROUNDS: Final = 5
_CONNECTIONS: Final = 16
_WARM_UP_S: Final = 0.3
_SECONDS: Final = 1.0
_TARGET: Final = 10.0
"""The target, as a multiple of FastMCP's calls per second."""
_ABOUT: Final = "toold, stateless, JSON answers, journal and audit on; uvicorn, httptools, uvloop"
_UPSTREAM: Final = "upstream_echo"
"""The source's ``echo``; the daemon has a built-in one."""
_ROOT: Final = Path(__file__).parents[1]
_COMMAND: Final = [sys.executable, "-m", "benchmarks.mcp_sdk_server", "stdio"]
_CONFIG: Final = f"""
[sources.upstream]
type = "mcp"
command = {json.dumps(_COMMAND)}
cwd = {json.dumps(str(_ROOT))}
"""
_START_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Round:
    """The results of one server in one turn."""

    calls: int
    seconds: float
    cpu_s: float
    """CPU time of the server's process."""
    client_cpu_s: float
    """CPU time of this process."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The medians of a server's rounds; times in microseconds per call."""

    calls_per_s: float
    wall_us: float
    cpu_us: float
    client_cpu_us: float


def main() -> int:
    """Measure and print. A missed target does not fail the run: machines are noisy."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the started processes on the way out
    console = Console()
    try:
        with console.status("measuring"):
            seen, about = _measure()
    except RuntimeError as error:
        console.print(f"not measured: {error}", markup=False, soft_wrap=True)
        return 1
    _show({name: _figures(rounds) for name, rounds in seen.items()}, about, console)
    return 0


def _measure() -> tuple[dict[str, list[Round]], dict[str, str]]:
    """Returns each server's rounds, and a description of each HTTP server.

    Raises:
        RuntimeError: a server did not start, or sent a wrong answer.
    """
    with ExitStack() as stack:
        ours = stack.enter_context(daemon(config=_CONFIG))
        modes: tuple[Mode, ...] = ("stateless", "sessions")
        theirs = [stack.enter_context(start(mode)) for start in (mcp_sdk_server, fastmcp_server) for mode in modes]
        uvloop.run(_wait_for_upstream(ours))
        for server in (ours, *theirs):
            server.settle()
        turns: dict[str, Callable[[], Coroutine[Any, Any, Round]]] = {
            server.name: partial(_saturate, server, "echo") for server in (ours, *theirs)
        } | {"upstream": partial(_saturate, ours, _UPSTREAM), "direct": _saturate_directly}
        seen: dict[str, list[Round]] = {name: [] for name in turns}
        for number in range(_ROUNDS):
            order = list(turns.items())
            for name, saturate in order if number % 2 == 0 else reversed(order):  # alternate the order
                seen[name].append(uvloop.run(saturate()))
        return seen, {ours.name: _ABOUT} | {server.name: server.about for server in theirs}


def _figures(rounds: list[Round]) -> Figures:
    return Figures(
        calls_per_s=median(one.calls / one.seconds for one in rounds),
        wall_us=median(one.seconds / one.calls * 1e6 for one in rounds),
        cpu_us=median(one.cpu_s / one.calls * 1e6 for one in rounds),
        client_cpu_us=median(one.client_cpu_s / one.calls * 1e6 for one in rounds),
    )


def _show(figures: dict[str, Figures], about: dict[str, str], console: Console) -> None:
    ours = figures["daemon"]
    table = Table("", "calls/s", "× daemon", "wall µs", "CPU µs", "× daemon", "client µs", box=None)
    table.columns[0].no_wrap = True
    for column in table.columns[1:]:
        column.justify = "right"
    for name in about:
        one = figures[name]
        table.add_row(
            name,
            f"{one.calls_per_s:,.0f}",
            f"{one.calls_per_s / ours.calls_per_s:.2f}",
            f"{one.wall_us:,.0f}",
            f"{one.cpu_us:,.0f}",
            f"{one.cpu_us / ours.cpu_us:.1f}",
            f"{one.client_cpu_us:,.0f}",
        )
    console.print(table)
    for name, words in about.items():
        console.print(f"{name}: {words}", highlight=False, soft_wrap=True)
    for name in about:
        if name.startswith("FastMCP"):
            ratio = ours.calls_per_s / figures[name].calls_per_s
            verdict = "met" if ratio >= _TARGET else "missed"
            console.print(f"target: {_TARGET:.0f} times the calls of {name}: {ratio:.1f}, {verdict}", highlight=False)
    upstream, direct = figures["upstream"].calls_per_s, figures["direct"].calls_per_s
    console.print(
        f"through the daemon to a server over stdio: {upstream:,.0f} calls/s; without it: {direct:,.0f}; "
        f"ratio {upstream / direct:.2f}",
        highlight=False,
        soft_wrap=True,
    )
    console.print(f"{_CONNECTIONS} connections, one call in flight each; medians of {_ROUNDS} rounds", highlight=False)


async def _wait_for_upstream(server: Server) -> None:
    """Wait for the source's tool.

    Raises:
        RuntimeError: it was not listed in time.
    """
    give_up = time.perf_counter() + _START_S
    while True:
        try:
            connection = await McpConnection.open(server.http_port, _UPSTREAM)
            try:
                await connection.call_until(0.0)
            finally:
                connection.close()
        except RuntimeError:
            if time.perf_counter() > give_up:
                raise
            await asyncio.sleep(0.1)
        else:
            return


async def _saturate(server: Server, tool: str) -> Round:
    """Call on all connections concurrently."""
    process = psutil.Process(server.process.pid)
    connections = [await McpConnection.open(server.http_port, tool) for _ in range(_CONNECTIONS)]
    try:
        warm = time.perf_counter() + _WARM_UP_S
        await asyncio.gather(*(connection.call_until(warm) for connection in connections))
        began, used, spent = time.perf_counter(), cpu_s(process), time.process_time()
        counts = await asyncio.gather(*(connection.call_until(began + _SECONDS) for connection in connections))
        seconds = time.perf_counter() - began
        return Round(sum(counts), seconds, cpu_s(process) - used, time.process_time() - spent)
    finally:
        for connection in connections:
            connection.close()


async def _saturate_directly() -> Round:
    """Call the source's server with the SDK's client at the same concurrency, without the server's CPU time."""
    command = StdioServerParameters(command=_COMMAND[0], args=_COMMAND[1:], cwd=_ROOT)
    async with Client(command) as client:

        async def call_until(end: float) -> int:
            calls = 0
            while time.perf_counter() < end:
                await client.call_tool("echo", {"text": TEXT % next(NUMBERS)})
                calls += 1
            return calls

        warm = time.perf_counter() + _WARM_UP_S
        await asyncio.gather(*(call_until(warm) for _ in range(_CONNECTIONS)))
        began, spent = time.perf_counter(), time.process_time()
        counts = await asyncio.gather(*(call_until(began + _SECONDS) for _ in range(_CONNECTIONS)))
        return Round(sum(counts), time.perf_counter() - began, 0.0, time.process_time() - spent)


if __name__ == "__main__":
    sys.exit(main())
