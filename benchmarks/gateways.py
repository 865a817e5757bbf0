"""``python -m benchmarks.gateways``: ``echo`` of one and of four upstream MCP servers through gateways, in turns within
one run: the daemon, FastMCP's proxy and ContextForge, each in its own environment.

The upstreams are servers of the MCP SDK, over HTTP, and for the gateways that start programs also over stdio. Each
connection has one call in flight; the connections are spread over the upstreams, and every text is unique.
"""

import asyncio
import json
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final

import psutil
import uvloop
from rich.console import Console
from rich.table import Table

from .gateway_servers import context_forge, fastmcp_proxy
from .load import cpu_s
from .mcp_connection import McpConnection
from .servers import Server, daemon, mcp_sdk_server

_ROUNDS: Final = 3
_CONNECTIONS: Final = 4
"""FastMCP's proxy may start all programs for each call: more connections measure that alone."""
_WARM_UP_S: Final = 0.3
_SECONDS: Final = 1.0
_MEASURING_S: Final = 150.0
"""No round begins later than this."""
_UPSTREAMS: Final = 4
_START_S: Final = 60.0
_ANSWER_S: Final = 20.0
"""The longest wait for one answer before the load."""
_ROUND_S: Final = 45.0
"""The longest wait for the answers of a round."""
_SETTLE_S: Final = 3.0
"""After the start, before the first round."""
_ROOT: Final = Path(__file__).parents[1]
_COMMAND: Final = [sys.executable, "-m", "benchmarks.mcp_sdk_server", "stdio"]


@dataclass
class Subject:
    """A server under load, and the results of its rounds."""

    name: str
    upstreams: int
    server: Server
    tools: Sequence[str]
    token: str = ""
    calls_per_s: list[float] = field(default_factory=list)
    p50_ms: list[float] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)
    hung: bool = False
    """It did not answer all calls of a round."""


def main() -> int:
    """Measure and print."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the started processes on the way out
    console = Console()
    with ExitStack() as stack:
        with console.status("starting the gateways, one of which takes a minute"):
            subjects = _subjects(stack, console)
        with console.status("measuring"):
            enough = time.perf_counter() + _MEASURING_S
            for number in range(_ROUNDS):
                if number and time.perf_counter() > enough:
                    break
                for subject in subjects if number % 2 == 0 else reversed(subjects):  # alternate the order
                    if subject.hung:
                        continue
                    try:
                        uvloop.run(asyncio.wait_for(_measure(subject), _ROUND_S))
                    except (TimeoutError, RuntimeError) as error:
                        subject.hung = True
                        console.print(f"no answers under load: {subject.name}, {subject.upstreams}: {error!r}")
                    print(f"round {number}: {subject.name}, {subject.upstreams}", file=sys.stderr, flush=True)
    _show(subjects, console)
    return 0


def _subjects(stack: ExitStack, console: Console) -> list[Subject]:
    servers = [stack.enter_context(mcp_sdk_server("stateless")) for _ in range(_UPSTREAMS)]
    urls = [f"http://127.0.0.1:{server.port}/mcp" for server in servers]
    subjects = [Subject("no gateway, HTTP", 1, servers[0], ["echo"])]
    for count in (1, _UPSTREAMS):
        names = [f"up{number}" for number in range(1, count + 1)]
        over_http: list[dict[str, object]] = [{"url": url} for url in urls[:count]]
        over_stdio: list[dict[str, object]] = [
            {"command": _COMMAND[0], "args": _COMMAND[1:], "cwd": str(_ROOT)} for _ in names
        ]
        for way, upstreams in (("HTTP", over_http), ("stdio", over_stdio)):
            config = dict(zip(names, upstreams, strict=True))
            ours = stack.enter_context(daemon(config=_settings(config)))
            subjects.append(Subject(f"toold, {way}", count, ours, [f"{name}_echo" for name in names]))
            try:
                proxy = stack.enter_context(fastmcp_proxy(config))
            except RuntimeError as error:
                console.print(f"not measured: {error}", markup=False)
            else:
                tools = ["echo"] if count == 1 else [f"{name}_echo" for name in names]
                subjects.append(Subject(f"FastMCP, {way}", count, proxy, tools))
    subjects += _context_forge(stack, console, urls)
    answering = []
    for subject in subjects:
        if uvloop.run(_answers(subject)):
            answering.append(subject)
        else:
            console.print(f"not measured: {subject.name} with {subject.upstreams} upstreams does not answer")
        print(f"started: {subject.name}, {subject.upstreams}", file=sys.stderr, flush=True)
    time.sleep(_SETTLE_S)
    return answering


def _context_forge(stack: ExitStack, console: Console, urls: Sequence[str]) -> list[Subject]:
    """ContextForge, in one process with all upstreams since its start takes half a minute of computing time; with one
    upstream, only the tool of the first is called.
    """
    names = [f"up{number}" for number in range(1, len(urls) + 1)]
    try:
        forge, token = stack.enter_context(context_forge(dict(zip(names, urls, strict=True))))
    except RuntimeError as error:
        console.print(f"not measured: {error}", markup=False)
        return []
    tools = [f"{name}-echo" for name in names]
    return [Subject("ContextForge, HTTP", count, forge, tools[:count], token) for count in (1, len(urls))]


def _settings(config: dict[str, dict[str, object]]) -> str:
    tables = []
    for name, server in config.items():
        fields = {"type": "mcp", "prefix": "always"}
        if "url" in server:
            lines = [f"url = {json.dumps(server['url'])}", "allow_private = true"]
        else:
            lines = [f"command = {json.dumps(_COMMAND)}", f"cwd = {json.dumps(server['cwd'])}"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in fields.items()]
        tables.append("\n".join([f"[sources.{name}]", *lines]))
    return "\n".join(tables)


async def _answers(subject: Subject) -> bool:
    """Whether each tool answers in time, once."""
    give_up = time.perf_counter() + _START_S
    for tool in subject.tools:
        while True:
            try:
                async with asyncio.timeout(_ANSWER_S):
                    connection = await McpConnection.open(subject.server.http_port, tool, subject.token)
                    try:
                        await connection.call_until(0.0)
                    finally:
                        connection.close()
                break
            except (RuntimeError, TimeoutError):
                if time.perf_counter() > give_up:
                    return False
                await asyncio.sleep(0.1)
    return True


async def _measure(subject: Subject) -> None:
    process = psutil.Process(subject.server.process.pid)
    tools = [subject.tools[number % len(subject.tools)] for number in range(_CONNECTIONS)]
    # At the same time: servers close connections that are idle for 5 s.
    opening = [McpConnection.open(subject.server.http_port, tool, subject.token) for tool in tools]
    connections = await asyncio.gather(*opening)
    try:
        warm = time.perf_counter() + _WARM_UP_S
        await asyncio.gather(*(connection.call_until(warm) for connection in connections))
        began, used = time.perf_counter(), cpu_s(process)
        counts = await asyncio.gather(*(connection.call_until(began + _SECONDS) for connection in connections))
        seconds, calls = time.perf_counter() - began, sum(counts)
        subject.calls_per_s.append(calls / seconds)
        subject.cpu_us.append((cpu_s(process) - used) / calls * 1e6)
        subject.p50_ms.append(median(one for connection in connections for one in connection.latencies) * 1e3)
    finally:
        for connection in connections:
            connection.close()


def _show(subjects: Sequence[Subject], console: Console) -> None:
    table = Table("", "upstreams", "calls/s", "p50 ms", "× toold", "CPU µs", "× toold", box=None)
    table.columns[0].no_wrap = True
    for column in table.columns[1:]:
        column.justify = "right"
    for subject in subjects:
        if not subject.p50_ms:
            continue
        way = subject.name.rpartition(", ")[2]
        ours = next(one for one in subjects if one.name == f"toold, {way}" and one.upstreams == subject.upstreams)
        p50, cpu = median(subject.p50_ms), median(subject.cpu_us)
        table.add_row(
            subject.name,
            str(subject.upstreams),
            f"{median(subject.calls_per_s):,.0f}",
            f"{p50:,.1f}",
            f"{p50 / median(ours.p50_ms):.1f}",
            f"{cpu:,.0f}",
            f"{cpu / median(ours.cpu_us):.1f}",
        )
    console.print(table)
    for about in dict.fromkeys(subject.server.about for subject in subjects if subject.server.about):
        console.print(about, highlight=False, soft_wrap=True)
    rounds = len(subjects[0].p50_ms)
    console.print(
        f"{_CONNECTIONS} connections, one call in flight each; medians of {rounds} rounds of {_SECONDS:g} s or longer; "
        f"CPU of the gateway's own process; load average {psutil.getloadavg()[0]:.1f}",
        highlight=False,
        soft_wrap=True,
    )


if __name__ == "__main__":
    sys.exit(main())
