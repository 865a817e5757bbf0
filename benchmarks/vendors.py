"""``python -m benchmarks.vendors``: the CPU time of a chat with a configured vendor, relative to Kimi, in one run.

One daemon with the simulator, rounds of ``chat`` in alternating order. The simulator runs in the daemon, so its work is
part of every figure. Kimi is measured twice: the difference between the two is what this machine cannot tell apart.
"""

import asyncio
import sys
from statistics import median
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from toold.client import MCPWebSocketClient

from .servers import Server, daemon

ROUNDS: Final = 9
_CALLS: Final = 60
_AT_ONCE: Final = 4
"""Fewer than the concurrent requests that each vendor gets."""
_LEAST_NOISE: Final = 0.1
_CONFIG: Final = '[providers.acme]\nbase_url = "http://127.0.0.1:9/v1"\nmax_in_flight = 6\n'
MODELS: Final = {"kimi": "kimi-k2.6", "acme": "acme/large", "kimi, again": "kimi-k2.6"}
"""Column → model. Without ``thinking`` of the model, both vendors send the same request."""


def main() -> int:
    """Measure and print. Returns 1 if the configured vendor costs more than the noise."""
    console = Console()
    try:
        with console.status("measuring"), daemon(config=_CONFIG) as server:
            server.settle()
            seen = asyncio.run(_measure(server))
    except RuntimeError as error:
        console.print(f"not measured: {error}", markup=False, soft_wrap=True)
        return 1
    ratios = {name: [cpu / base for cpu, base in zip(times, seen["kimi"], strict=True)] for name, times in seen.items()}
    noise = max(_LEAST_NOISE, abs(median(ratios["kimi, again"]) - 1))
    table = Table(box=SIMPLE_HEAD, title=f"CPU time of a chat, {ROUNDS} rounds of {_CALLS} calls")
    for heading in ("vendor", "CPU ms per call", "to kimi"):
        table.add_column(heading)
    for name, times in seen.items():
        table.add_row(name, f"{1000 * median(times):.2f}", f"{median(ratios[name]):.2f}")
    console.print(table)
    console.print(f"noise {noise:.2f}")
    return 0 if median(ratios["acme"]) - 1 <= noise else 1


async def _measure(server: Server) -> dict[str, list[float]]:
    """CPU seconds of the daemon per call, by vendor and round."""
    seen: dict[str, list[float]] = {name: [] for name in MODELS}
    async with MCPWebSocketClient(f"ws://127.0.0.1:{server.port}") as client:
        for model in MODELS.values():
            await _chats(client, model)  # imports, first connections
        for number in range(ROUNDS):
            for name, model in sorted(MODELS.items(), reverse=number % 2 == 1):
                before = server.cpu_s()
                await _chats(client, model)
                seen[name].append((server.cpu_s() - before) / _CALLS)
    return seen


async def _chats(client: MCPWebSocketClient, model: str) -> None:
    places = asyncio.Semaphore(_AT_ONCE)

    async def chat() -> None:
        async with places:
            await client.call("chat", {"prompt": "Say hello.", "model": model})

    async with asyncio.TaskGroup() as group:
        for _ in range(_CALLS):
            group.create_task(chat())


if __name__ == "__main__":
    sys.exit(main())
