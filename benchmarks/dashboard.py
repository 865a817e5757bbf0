"""``python -m benchmarks --dashboard``: the CPU time of the daemon with ten open live pages, compared with none.

A load generator sends 1,000 calls per second in alternating rounds with and without pages. The pages are streams of
server-sent events that this process reads. Rounds without pages are measured twice: the difference between the two is
what this machine cannot tell apart.
"""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from statistics import median
from typing import Final

import httpx
import uvloop
from rich.console import Console

from .load import Pace, Paced
from .servers import LoadGenerator, Server, daemon, load_generator

PAGES: Final = 10
RATE: Final = 1_000
ROUNDS: Final = 15
ROUND_S: Final = 3.0
TARGET: Final = 0.03
"""The most CPU time that the pages add, as a share of the loop's, which is one core."""
_CONNECTIONS: Final = 16


@dataclass(frozen=True, slots=True)
class Measured:
    """Medians of the rounds."""

    none_share: float
    """CPU time of the daemon without pages, as a share of one core."""
    pages_share: float
    added: float
    """CPU time that the pages add, as a share of one core: median of the differences within a round."""
    noise: float
    """The same of none to none."""
    ratio: float
    """With pages to none."""


def measure() -> Measured:
    """Raises RuntimeError if a server did not start."""
    with daemon() as server, load_generator() as load:
        server.settle()
        return uvloop.run(_rounds(server, load))


def show(measured: Measured, console: Console) -> None:
    """Print one line."""
    verdict = "met" if measured.added <= TARGET else "missed"
    if abs(measured.noise) > TARGET:
        verdict = "this machine cannot tell"
    console.print(
        f"{PAGES} open live pages at {RATE:,} calls per second: {measured.pages_share:.1%} of a core, none: "
        f"{measured.none_share:.1%}; the pages take {measured.added:.1%} of the loop (target: at most {TARGET:.0%}, "
        f"{verdict}; none compared with itself: {measured.noise:.1%}); {measured.ratio:.3f} times none",
        highlight=False,
        soft_wrap=True,
    )


async def _rounds(server: Server, load: LoadGenerator) -> Measured:
    ways = {"none": 0, "pages": PAGES, "none, again": 0}
    seen: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(ROUNDS + 1):
        for name, pages in list(ways.items())[:: 1 if number % 2 == 0 else -1]:  # alternate the order
            share = await _round(server, load, pages)
            if number:  # the first round is not counted: imports, first connections
                seen[name].append(share)
    none, with_pages, again = seen["none"], seen["pages"], seen["none, again"]
    return Measured(
        none_share=median(none),
        pages_share=median(with_pages),
        added=median(a - b for a, b in zip(with_pages, none, strict=True)),
        noise=median(a - b for a, b in zip(again, none, strict=True)),
        ratio=median(a / b for a, b in zip(with_pages, none, strict=True)),
    )


async def _round(server: Server, load: LoadGenerator, pages: int) -> float:
    """The CPU time of one round in seconds per second."""
    url = f"http://127.0.0.1:{server.http_port}"
    async with AsyncExitStack() as stack:
        limits = httpx.Limits(max_connections=PAGES + 1)
        http = httpx.AsyncClient(base_url=url, limits=limits, timeout=60.0, trust_env=False, follow_redirects=True)
        await stack.enter_async_context(http)
        if pages:
            (await http.get("/ui/now")).raise_for_status()  # gets the cookie
        readers = []
        for _ in range(pages):
            stream = await stack.enter_async_context(http.stream("GET", "/ui/live"))
            if not stream.headers["content-type"].startswith("text/event-stream"):
                raise RuntimeError(f"/ui/live answered {stream.status_code} instead of a stream")
            readers.append(asyncio.create_task(_read(stream)))
        order = Pace(port=server.port, connections=_CONNECTIONS, rate=RATE, seconds=ROUND_S)
        used = server.cpu_s()
        await asyncio.get_running_loop().run_in_executor(None, load.ask, order, Paced)
        share = (server.cpu_s() - used) / ROUND_S
        for reader in readers:
            reader.cancel()
        for result in await asyncio.gather(*readers, return_exceptions=True):
            ended_early = not isinstance(result, asyncio.CancelledError)
            if ended_early:
                raise RuntimeError(f"a page ended early: {result!r}")
        return share


async def _read(stream: httpx.Response) -> None:
    async for _ in stream.aiter_raw():
        pass
