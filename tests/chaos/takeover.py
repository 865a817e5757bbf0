"""``python -m tests.chaos.takeover``: how long a client of a cluster gets no answer when the node of its session ends.

Three nodes with the default lease, one client of the library with its own times, and a balancer that skips closed
ports, and nodes that do not answer at ``/readyz``, whose connections it cuts. The client calls without pause; each
fault hits the node that holds its session.
"""

import argparse
import asyncio
import logging
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import httpx
from toold.client import MCPWebSocketClient
from toold.protocol.error_codes import CallError

from .cluster_nodes import FENCED, Node, database, start_nodes
from .daemon import DaemonError
from .project import ProjectError
from .proxy import Plan, Proxy
from .run import end_all

_CHECK_S: Final = 1.0
"""The interval of the balancer's health checks, and the time for an answer; two missing answers take a node out."""
_SETTLE_S: Final = 3.0
"""Between a fault and the next one, after the node runs again."""


MEDIAN_AFTER_KILL_S: Final = 1.0


async def _kill(node: Node) -> None:
    await node.daemon.kill()


async def _drain(node: Node) -> None:
    await node.daemon.stop()


async def _pause(node: Node) -> None:
    node.daemon.signal(signal.SIGSTOP)


FAULTS: Final[dict[str, Callable[[Node], Awaitable[None]]]] = {"kill -9": _kill, "SIGTERM": _drain, "SIGSTOP": _pause}


def aim_of(fault: str, lease_s: float) -> float | None:
    """What the median should be less than, in seconds. A node that is paused keeps its sessions for three quarters of
    its lease.
    """
    return {"kill -9": MEDIAN_AFTER_KILL_S, "SIGSTOP": lease_s}.get(fault)


@dataclass(frozen=True, slots=True)
class Gap:
    """The longest time without an answer around a fault, in seconds."""

    total: float
    until_connecting: float
    """The part until the client connects again: it has noticed that its connection ended, and its pause is over."""


async def measure(directory: Path, fault: str, times: int, lease_s: float) -> list[Gap]:
    """Returns the gap around each fault."""
    gaps: list[Gap] = []
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(database())
        nodes, token = await start_nodes(stack, directory, server, {"TOOLD_LEASE_S": str(lease_s)})
        plan = Plan("none", 0, False, 0)
        connected = [time.monotonic()]
        down = set[int]()

        def upstream() -> list[int]:
            connected.append(time.monotonic())
            return [node.daemon.port for node in nodes if node.daemon.port not in down]

        balancer = await stack.enter_async_context(Proxy(upstream, lambda _: plan))
        checks = [asyncio.create_task(_check(node, balancer, down)) for node in nodes]
        stack.push_async_callback(end_all, checks)
        client = MCPWebSocketClient("127.0.0.1", balancer.port, token)
        await client.connect()
        stack.push_async_callback(client.disconnect)
        answers = [time.monotonic()]
        calling = asyncio.create_task(_call(client, answers))
        for _ in range(times):
            holder = await _holder(client, nodes)
            nodes.remove(holder)
            nodes.append(holder)  # the balancer tries the others first
            began = time.monotonic()
            await FAULTS[fault](holder)
            while answers[-1] < began + 0.1 or time.monotonic() - answers[-1] > 0.5:
                await asyncio.sleep(0.05)
            await asyncio.sleep(_SETTLE_S)
            around = [at for at in answers if at > began - 1]
            last, _ = max(pairwise(around), key=lambda pair: pair[1] - pair[0])
            first = next(at for at in answers if at > last)
            again = min((at for at in connected if last < at < first), default=first)
            gaps.append(Gap(first - last, again - last))
            print(f"{fault}: {gaps[-1].total:.2f} s", file=sys.stderr, flush=True)
            if fault == "SIGSTOP":
                holder.daemon.signal(signal.SIGCONT)
                await holder.daemon.ended()
                assert holder.daemon.exit_code == FENCED
            await holder.start()
            await asyncio.sleep(_SETTLE_S)
        calling.cancel()
    return gaps


async def _check(node: Node, balancer: Proxy, down: set[int]) -> None:
    """Checks a node until cancelled; ``down`` has the ports of those that do not answer."""
    url, port, missing = f"http://127.0.0.1:{node.daemon.http_port}/readyz", node.daemon.port, 0
    async with httpx.AsyncClient(trust_env=False, timeout=_CHECK_S) as http:
        while True:
            try:
                ready = (await http.get(url)).status_code == 200
            except httpx.HTTPError:
                ready = False
            missing = 0 if ready else missing + 1
            if ready:
                down.discard(port)
            elif missing == 2:
                down.add(port)
                balancer.cut_to(port)
            await asyncio.sleep(_CHECK_S)


async def _call(client: MCPWebSocketClient, answers: list[float]) -> None:
    while True:
        with suppress(CallError):
            await client.call("sim_effect", {"text": "takeover"}, timeout=300)
        answers.append(time.monotonic())


async def _holder(client: MCPWebSocketClient, nodes: list[Node]) -> Node:
    """The node that holds the client's session."""
    status = (await client.call("status", {})).structured
    assert isinstance(status, dict)
    (name,) = [node["name"] for node in status["nodes"] if node["this"]]
    return next(node for node in nodes if node.name == name)


def main() -> int:
    """Print the shortest, the median and the longest time for each fault."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.takeover", description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=10, help="of each fault (%(default)s)")
    parser.add_argument("--lease", type=float, default=10.0, help="lease_s of the nodes (%(default)g)")
    parser.add_argument("--faults", default=",".join(FAULTS), help="which faults, separated by commas")
    arguments = parser.parse_args()
    logging.getLogger("toold").setLevel(logging.ERROR)
    for fault in arguments.faults.split(","):
        directory = Path(tempfile.mkdtemp(prefix="toold-takeover-"))
        try:
            gaps = asyncio.run(measure(directory, fault, arguments.times, arguments.lease))
        except (ProjectError, DaemonError) as error:
            print(error, file=sys.stderr)
            return 1
        finally:
            shutil.rmtree(directory)
        print(f"load average {os.getloadavg()[0]:.1f} of {os.cpu_count()} processors", flush=True)
        whole, served = [gap.total for gap in gaps], [gap.total - gap.until_connecting for gap in gaps]
        print(f"{fault:<10}{len(gaps):>3} times: {_range(whole)} s without an answer", flush=True)
        print(f"{'':<10}          {_range(served)} s of it after the client had begun to connect again", flush=True)
        aim = aim_of(fault, arguments.lease)
        if aim is not None:
            met = "met" if statistics.median(whole) < aim else "missed"
            print(f"{'':<10}          aim: median under {aim:g} s, {met}", flush=True)
    return 0


def _range(values: list[float]) -> str:
    shown = " / ".join(f"{each:.2f}" for each in (min(values), statistics.median(values), max(values)))
    return f"min / median / max {shown}"


if __name__ == "__main__":
    sys.exit(main())
