"""The frame of a program that runs agents of another project in its own process: a round per line of stdin.

A line has the prefix of the runs' names. The answer is a line of JSON: for each run its name, when it began and ended
(``time.monotonic``), and its answer or error. It imports nothing but the standard library, and uvloop.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable

import uvloop

from .flow import AGENTS, RUNS, question


def serve_rounds(about: str, ask: Callable[[int, str], Awaitable[str]]) -> None:
    """``ask`` sends a question to the agent with this number, and returns its answer. It is called within the loop."""
    uvloop.run(_serve(about, ask))


async def _serve(about: str, ask: Callable[[int, str], Awaitable[str]]) -> None:
    print(about, flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        print(json.dumps(await round_of(line.strip(), ask)), flush=True)


async def round_of(prefix: str, ask: Callable[[int, str], Awaitable[str]]) -> list[tuple[str, float, float, str]]:
    """Each run's name, begin, end, and answer or error. The runs begin at once, each with another agent."""

    async def run(number: int) -> tuple[str, float, float, str]:
        name = f"{prefix}-{number}"
        began = time.monotonic()
        try:
            answer = await ask(number * AGENTS // RUNS, question(name))
        except Exception as error:  # noqa: BLE001 - whatever it is, the run has failed
            answer = f"{type(error).__name__}: {error}"
        return name, began, time.monotonic(), answer

    return list(await asyncio.gather(*map(run, range(RUNS))))
