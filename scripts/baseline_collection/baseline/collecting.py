"""A run: the tools take turns, each turn under its load, over connections that stay open."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Final

import msgspec
from toold.client import CallResult, ConnectionFailedError, ConnectionLostError, MCPWebSocketClient
from toold.protocol.error_codes import CallError
from toold.protocol.tool_call import Json
from toold.shaping import ShapingError, compile_template

from .calling import Caller, Clock
from .draft import Draft
from .matrix import Matrix, Step
from .plan import Turn, left_over, turns
from .record import Call, Load, RecordError

CALLS_A_CONNECTION: Final = 8
"""What one session runs at once by default (docs/limits.md): a higher concurrency takes more connections."""
OPEN_LOOP_CONNECTIONS: Final = 8
"""Calls by rate go over so many, in turn."""
CLIENT_NAME: Final = "toold-baseline"


class CollectionError(Exception):
    """The run cannot go on; the message says why. What was kept so far stands in the draft."""


Connect = Callable[[], MCPWebSocketClient]


@asynccontextmanager
async def connected(connect: Connect, count: int) -> AsyncIterator[list[MCPWebSocketClient]]:
    """So many connections, each a session.

    Raises:
        CollectionError: the daemon cannot be reached or refuses.
    """
    async with AsyncExitStack() as stack:
        try:
            clients = [await stack.enter_async_context(connect()) for _ in range(count)]
        except ConnectionFailedError as error:
            hint = " (--simulate starts a daemon for the run)" if error.nobody_there else ""
            raise CollectionError(f"{error}{hint}") from error
        yield clients


def connections_for(loads: Sequence[Load]) -> int:
    """How many connections these loads take."""
    return max(
        OPEN_LOOP_CONNECTIONS if load.concurrency is None else math.ceil(load.concurrency / CALLS_A_CONNECTION)
        for load in loads
    )


class Side(msgspec.Struct, frozen=True):
    """One daemon of a run: where its calls are kept, how it is reached, and how its tools are called."""

    draft: Draft
    connect: Connect
    matrix: Matrix


async def collect(sides: Sequence[Side], ended: Callable[[Call], None]) -> None:
    """Make every call that the drafts' configuration plans and that is not in them yet.

    Several sides, whose configurations are alike but for the daemon, take each turn one after the other, so that
    whatever else the machine does hits all of them alike. ``ended`` hears of each call that was kept.

    Raises:
        CollectionError: a daemon is gone, or what a tool needs could not be had.
    """
    configuration = sides[0].draft.run.configuration
    try:
        async with AsyncExitStack() as stack:
            runs = [await stack.enter_async_context(_opened(side, ended)) for side in sides]
            for tool in configuration.tools:
                for run in runs:
                    await run.warm_up(tool, configuration.warmup)
            for turn in turns(configuration):
                for run in runs if turn.round % 2 else reversed(runs):  # who begins changes
                    await run.take(turn)
    except ConnectionFailedError as error:
        raise CollectionError(f"the daemon is gone: {error}") from error


@asynccontextmanager
async def _opened(side: Side, ended: Callable[[Call], None]) -> AsyncIterator["_Run"]:
    """A side's connections, and what its tools need, which is undone at the end."""
    draft, matrix = side.draft, side.matrix
    configuration = draft.run.configuration
    left = left_over(configuration, draft.calls)

    def keep(call: Call) -> None:
        draft.add(call)
        ended(call)

    caller = Caller(Clock(draft.run.started), draft.segment, configuration.timeout_s, keep)
    async with connected(side.connect, connections_for(configuration.loads)) as clients:
        needs: dict[str, Json] = {}
        try:
            for name in dict.fromkeys(need for turn in left for need in matrix.tools[turn.tool].needs):
                needs[name] = await _prepare(clients[0], name, matrix.needs[name])
            yield _Run(caller, matrix, clients, needs, left)
        finally:
            for name, result in needs.items():
                await _undo(clients[0], matrix.needs[name].undo, result)


class _Run:
    """One side, while it is called."""

    def __init__(
        self,
        caller: Caller,
        matrix: Matrix,
        clients: list[MCPWebSocketClient],
        needs: dict[str, Json],
        left: dict[Turn, list[int]],
    ) -> None:
        self._caller = caller
        self._matrix = matrix
        self._clients = clients
        self._needs = needs
        self._left = left

    async def warm_up(self, tool: str, calls: int) -> None:
        """Calls that are not recorded, one after the other, where any are left that are."""
        if not any(turn.tool == tool for turn in self._left):
            return
        arguments = self._arguments(tool)
        for _ in range(calls):
            with suppress(CallError, ConnectionLostError):  # the measured calls meet the same, and say so
                result = await self._clients[0].call(tool, arguments)
                await _undo(self._clients[0], self._matrix.tools[tool].undo, result.structured)

    async def take(self, turn: Turn) -> None:
        """What is left of a turn: its calls, and what undoes their effects."""
        iterations = self._left.get(turn)
        if not iterations:
            return
        arguments = self._arguments(turn.tool)
        results: list[Json] = []
        offer = self._offer_at_once if turn.load.rate_per_s is None else self._offer_by_rate
        try:
            await offer(turn, iter(iterations), arguments, results)
        except* (ConnectionFailedError, RecordError) as group:
            raise group.exceptions[0] from None
        finally:
            for result in results:
                await _undo(self._clients[0], self._matrix.tools[turn.tool].undo, result)

    def _arguments(self, tool: str) -> dict[str, Any]:
        case = self._matrix.tools[tool]
        if not case.needs:  # the arguments of tools that call tools have templates of their own
            return case.arguments
        try:
            filled: dict[str, Any] = compile_template(case.arguments).resolve(self._needs)
        except ShapingError as error:
            raise CollectionError(f"the arguments of {tool} cannot be filled in: {error}") from error
        return filled

    async def _offer_at_once(
        self, turn: Turn, iterations: Iterator[int], arguments: dict[str, Any], results: list[Json]
    ) -> None:
        async def work(client: MCPWebSocketClient) -> None:
            for iteration in iterations:
                result = await self._caller.call(client, turn, iteration, arguments)
                results.append(result)  # each as it comes: what was called before a break is undone too

        async with asyncio.TaskGroup() as workers:
            for number in range(turn.load.concurrency or 1):
                workers.create_task(work(self._clients[number // CALLS_A_CONNECTION]))

    async def _offer_by_rate(
        self, turn: Turn, iterations: Iterator[int], arguments: dict[str, Any], results: list[Json]
    ) -> None:
        async def call(client: MCPWebSocketClient, iteration: int, due: float) -> None:
            results.append(await self._caller.call(client, turn, iteration, arguments, due))

        rate = turn.load.rate_per_s or 1.0
        began = time.perf_counter()
        async with asyncio.TaskGroup() as calls:
            for number, iteration in enumerate(iterations):
                due = began + number / rate
                if (wait := due - time.perf_counter()) > 0:
                    await asyncio.sleep(wait)
                calls.create_task(call(self._clients[number % len(self._clients)], iteration, due))


async def _prepare(client: MCPWebSocketClient, name: str, step: Step) -> Json:
    try:
        result: CallResult = await client.call(step.tool, step.arguments)
    except (CallError, ConnectionLostError) as error:
        raise CollectionError(f"{step.tool}, which [needs.{name}] of the matrix calls, failed: {error}") from error
    return result.structured


async def _undo(client: MCPWebSocketClient, step: Step | None, result: Json) -> None:
    """Take back what a call did. Where that fails nothing else can be done here; the call itself stands as it was."""
    if step is None or result is None:
        return
    try:
        arguments = compile_template(step.arguments).resolve({"result": result})
        await client.call(step.tool, arguments, auto_reconnect=False)  # who is gone is waited for once, by a call
    except (CallError, ConnectionFailedError, ConnectionLostError, ShapingError):
        return
