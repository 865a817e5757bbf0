"""The order of calls, and what is left of it once some were made. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from .record import Call, Configuration, Load

MAX_ROUNDS: Final = 30
WAVES: Final = 4
"""A turn under concurrency is so many calls a worker at least, or most of it would be its beginning and its end."""


class Turn(msgspec.Struct, frozen=True):
    """Calls of one tool under one load that follow each other."""

    load: Load
    round: int
    tool: str
    iterations: range


def rounds_for(iterations: int, loads: Sequence[Load]) -> int:
    """How many turns each tool has: many, so that what slows the machine for a while slows every tool's calls alike;
    but not so many that a turn were no load of its kind. By rate it is one: a turn ends with its last answer, and calls
    of a next one would be due only when a daemon that hangs goes on."""
    if any(load.rate_per_s for load in loads):
        return 1
    widest = max(load.concurrency or 1 for load in loads)
    a_turn = 1 if widest == 1 else WAVES * widest
    return max(1, min(MAX_ROUNDS, iterations // a_turn))


def turns(configuration: Configuration) -> Iterator[Turn]:
    """Round by round; within one, every load has its turn of every tool, so that a machine that gets busier is in all
    alike."""
    edges = [
        round(number * configuration.iterations / configuration.rounds) for number in range(configuration.rounds + 1)
    ]
    for number, (first, after) in enumerate(pairwise(edges), start=1):
        for load in configuration.loads:
            for tool in configuration.tools:
                yield Turn(load, number, tool, range(first + 1, after + 1))


def left_over(configuration: Configuration, made: Iterable[Call]) -> dict[Turn, list[int]]:
    """The turns that are not over, each with the iterations that were not made."""
    done = {(call.tool_name, call.load, call.iteration) for call in made}
    left = {
        turn: [number for number in turn.iterations if (turn.tool, turn.load, number) not in done]
        for turn in turns(configuration)
    }
    return {turn: iterations for turn, iterations in left.items() if iterations}


def planned(configuration: Configuration) -> int:
    """How many calls the whole run records."""
    return len(configuration.loads) * len(configuration.tools) * configuration.iterations
