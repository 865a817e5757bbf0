"""``python -m tests.chaos.soak``: detects leaks while clients connect and disconnect (docs/faults.md). Exit code 1 if
the daemon's memory, open files or threads grow.
"""

import argparse
import asyncio
import json
import logging
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psutil
from toold.client import ConnectionFailedError, ConnectionLostError, MCPWebSocketClient
from toold.protocol.error_codes import CallError
from websockets.asyncio.client import connect

from .daemon import Daemon, DaemonError
from .evidence import LONGEST_TURN_S, turns
from .flat import FEWEST, Course, course
from .proxy import Fault, Plan, Proxy

WINDOW_S: Final = 5.0
"""An abandoned session leaves the daemon's memory after this; short, so that a run of minutes shows it."""
SAMPLE_S: Final = 1.0
MIB: Final = 1024**2
SLACK: Final[Mapping[str, float]] = {"memory": 2 * MIB, "open files": 4, "threads": 1}
"""Memory is allocated in arenas of 1 MiB; the number of open connections and requests varies between samples."""
_LIFE_CALLS: Final = 150
"""The calls of one client; another one follows. Sessions have to end, since each retains the ids of its last 4,096
calls."""
_LEFT_CALLS: Final = 5
_RESUMING, _PLAIN, _LEAVING, _IDLE = 6, 4, 3, 20
_FAILURES: Final = (CallError, ConnectionFailedError, ConnectionLostError)


@dataclass(slots=True)
class Soak:
    """The observations of a soak."""

    calls: Counter[str] = field(default_factory=Counter)
    """The number of calls by outcome."""
    clients: Counter[str] = field(default_factory=Counter)
    samples: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in SLACK})
    connections: list[int] = field(default_factory=list)
    longest_turn_s: float = 0.0
    """The longest turn of the event loop that the daemon logged."""

    def courses(self) -> dict[str, Course]:
        return {name: course(self.samples[name], slack) for name, slack in SLACK.items()}


def break_often(number: int) -> Plan:
    """Plans a break after some calls for every connection; one in ten only stalls. Pure."""
    chance = random.Random(number)
    faults: list[Fault] = ["cut clean", "cut in a frame", "stall"]
    (fault,) = chance.choices(faults, [5, 4, 1])
    return Plan(fault, chance.randrange(4_000, 30_000), chance.random() < 0.5, 0.5)


async def soak(directory: Path, seconds: float, every_s: float, say: Callable[[str], None] = lambda _: None) -> Soak:
    """Let clients come and go for ``seconds``, and sample the daemon every ``every_s`` seconds.

    Raises:
        DaemonError: the daemon did not start or did not stop cleanly.
    """
    done = Soak()
    daemon = Daemon(
        directory, {"TOOLD_PROGRESS_WINDOW_S": str(WINDOW_S), "TOOLD_LOG_LEVEL": "warning", "TOOLD_WARM_UP": "true"}
    )
    async with AsyncExitStack() as stack:
        stack.push_async_callback(daemon.close)
        await daemon.start()
        proxy = await stack.enter_async_context(Proxy(lambda: [daemon.port], break_often))
        lives: Sequence[tuple[int, Callable[..., Awaitable[None]], int]] = [
            (_RESUMING, _resume, proxy.port),
            (_PLAIN, _plain, daemon.port),
            (_LEAVING, _abandon, daemon.port),
        ]
        tasks = [
            asyncio.create_task(_again_and_again(life, done, port, daemon.token))
            for number, life, port in lives
            for _ in range(number)
        ]
        idle = [await _client(done, "idle", daemon.port, daemon.token) for _ in range(_IDLE)]
        await _sample(done, daemon, idle[0], seconds, every_s, say)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for client in idle:
            await client.disconnect()
        await daemon.stop()
        done.longest_turn_s = max(turns(daemon.logged()), default=0.0)
    return done


async def _sample(
    done: Soak,
    daemon: Daemon,
    watcher: MCPWebSocketClient,
    seconds: float,
    every_s: float,
    say: Callable[[str], None],
) -> None:
    process, began = psutil.Process(daemon.pid), time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        await asyncio.sleep(every_s)
        with process.oneshot():
            memory, threads = process.memory_info().rss, process.num_threads()
        for name, value in (("memory", memory), ("open files", process.num_fds()), ("threads", threads)):
            done.samples[name].append(value)
        done.connections.append((await watcher.health())["connections"])
        if len(done.connections) % 30 == 0:
            calls, clients = done.calls.total(), done.clients.total()
            say(f"{passed:4.0f} s: {memory / MIB:.1f} MiB, {calls} calls, {clients} clients so far")


async def _client(done: Soak, kind: str, port: int, token: str, **call_specs: Any) -> MCPWebSocketClient:
    done.clients[kind] += 1
    client = MCPWebSocketClient("127.0.0.1", port, token, session_id=f"soak-{kind}", **call_specs)
    while not await client.connect():
        pass
    return client


async def _again_and_again(life: Callable[..., Awaitable[None]], done: Soak, port: int, token: str) -> None:
    while True:
        await life(done, port, token)


async def _resume(done: Soak, port: int, token: str) -> None:
    """A client whose connection breaks repeatedly, and that ends its session cleanly."""
    client = await _client(done, "resuming", port, token)
    try:
        await asyncio.gather(*(_calls(done, client, _LIFE_CALLS // 4) for _ in range(4)))
    finally:
        await client.disconnect()


async def _plain(done: Soak, port: int, token: str) -> None:
    """A client without features."""
    client = await _client(done, "plain", port, token, features=())
    try:
        await _calls(done, client, _LIFE_CALLS // 3)
    finally:
        await client.disconnect()


async def _abandon(done: Soak, port: int, token: str) -> None:
    """A client that could resume, but disconnects in the middle of its calls and never returns."""
    done.clients["abandoning"] += 1
    async with connect(f"ws://127.0.0.1:{port}/", compression=None, proxy=None) as socket:
        await socket.send(json.dumps({"op": "hello", "token": token, "features": ["resume"]}))
        await socket.recv()
        for number in range(_LEFT_CALLS):
            call = {"name": "sim_effect", "arguments": {"text": "x" * 300, "delay_ms": 20 * number}}
            await socket.send(json.dumps({"op": "call_tool", "request_id": number, **call}))
        await socket.recv()
        socket.transport.abort()
    done.calls["abandoned"] += _LEFT_CALLS
    await asyncio.sleep(0.1)


async def _calls(done: Soak, client: MCPWebSocketClient, number: int) -> None:
    for count in range(number):
        name = "echo" if count % 2 else "sim_effect"
        try:
            await client.call(name, {"text": "x" * 300, "delay_ms": random.choice([0, 5, 20])}, timeout=60)
        except _FAILURES as error:
            done.calls[type(error).__name__] += 1
        else:
            done.calls["ok"] += 1
        await asyncio.sleep(0.01)


def report(done: Soak, seconds: float) -> str:
    """The calls and clients, the figures by quarter, and the verdict."""
    lines = [
        "",
        f"{seconds / 60:g} min, {done.calls.total()} calls: "
        + ", ".join(f"{number} {outcome}" for outcome, number in done.calls.most_common()),
        "clients: " + ", ".join(f"{number} {kind}" for kind, number in done.clients.items()),
        f"concurrent connections: {min(done.connections)} to {max(done.connections)}",
        "",
        f"{'':<12}{'warm-up':>10}{'2nd':>10}{'3rd':>10}{'last':>10}{'grown':>10}{'rise':>10}{'allowed':>10}",
    ]
    lines.insert(-2, f"longest logged turn of the event loop: {done.longest_turn_s:g} s, allowed {LONGEST_TURN_S:g} s")
    courses = done.courses()
    for name, went in courses.items():
        unit = MIB if name == "memory" else 1
        figures = [*went.quarters, went.grown, went.rise, went.allowed]
        lines.append(
            f"{name:<12}{''.join(f'{figure / unit:>10.2f}' for figure in figures)}  "
            f"{'MiB, ' if unit > 1 else ''}{'flat' if went.flat else 'NOT FLAT'}"
        )
    return "\n".join(lines)


def main() -> int:
    """Run the soak and print the report."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.soak", description="Check the daemon for leaks.")
    parser.add_argument("--minutes", type=float, default=5.0, help="duration (%(default)g)")
    seconds = parser.parse_args().minutes * 60
    if seconds < FEWEST * 2 * SAMPLE_S:
        parser.error(f"a verdict takes at least {FEWEST * 2 * SAMPLE_S / 60:.2g} minutes")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the started processes on the way out
    logging.getLogger("toold").setLevel(logging.ERROR)  # every broken connection logs a warning
    with tempfile.TemporaryDirectory(prefix="toold-soak-") as directory:
        try:
            done = asyncio.run(soak(Path(directory), seconds, SAMPLE_S, lambda line: print(line, flush=True)))
        except DaemonError as error:
            print(error, file=sys.stderr)
            return 1
    print(report(done, seconds))
    flat = all(went.flat for went in done.courses().values())
    print("\nflat" if flat else "\nthe daemon grows")
    prompt = done.longest_turn_s <= LONGEST_TURN_S
    if not prompt:
        print("the event loop was blocked")
    return 0 if flat and prompt else 1


if __name__ == "__main__":
    sys.exit(main())
