"""The order of calls, and the calls that remain after some were made. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from .record import Call, Configuration, Load

MAX_ROUNDS: Final = 30
WAVES: Final = 4
"""The least number of calls per worker in a concurrent turn; with fewer, start and end would dominate."""


class Turn(msgspec.Struct, frozen=True):
    """Consecutive calls of one tool under one load."""

    load: Load
    round: int
    tool: str
    iterations: range


def rounds_for(iterations: int, loads: Sequence[Load]) -> int:
    """The number of turns per tool: many, so that a temporary slowdown of the machine affects all tools, but few enough
    for each turn to reach its load. At a fixed rate it is one: a turn ends with its last answer, so a hanging daemon
    would delay the calls of a next turn."""
    if any(load.rate_per_s for load in loads):
        return 1
    widest = max(load.concurrency or 1 for load in loads)
    a_turn = 1 if widest == 1 else WAVES * widest
    return max(1, min(MAX_ROUNDS, iterations // a_turn))


def turns(configuration: Configuration) -> Iterator[Turn]:
    """Yields the turns round by round. Each round contains every load and tool, so a busier machine affects all."""
    edges = [
        round(number * configuration.iterations / configuration.rounds) for number in range(configuration.rounds + 1)
    ]
    for number, (first, after) in enumerate(pairwise(edges), start=1):
        for load in configuration.loads:
            for tool in configuration.tools:
                yield Turn(load, number, tool, range(first + 1, after + 1))


def remaining_turns(configuration: Configuration, made: Iterable[Call]) -> dict[Turn, list[int]]:
    """The unfinished turns, each with its remaining iterations."""
    done = {(call.tool_name, call.load, call.iteration) for call in made}
    left = {
        turn: [number for number in turn.iterations if (turn.tool, turn.load, number) not in done]
        for turn in turns(configuration)
    }
    return {turn: iterations for turn, iterations in left.items() if iterations}


def planned(configuration: Configuration) -> int:
    """The number of calls that the whole run records."""
    return len(configuration.loads) * len(configuration.tools) * configuration.iterations
