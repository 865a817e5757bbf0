"""A run: the tools are called in turns, each turn under its load, over connections that stay open."""

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
from .plan import Turn, remaining_turns, turns
from .record import Call, Load, RecordError

CALLS_A_CONNECTION: Final = 8
"""The default concurrency of one session (docs/limits.md); a higher concurrency uses more connections."""
OPEN_LOOP_CONNECTIONS: Final = 8
"""Calls at a fixed rate are distributed over this many connections."""
CLIENT_NAME: Final = "toold-baseline"


class CollectionError(Exception):
    """The run cannot continue; the message says why. The draft has the calls recorded so far."""


Connect = Callable[[], MCPWebSocketClient]


@asynccontextmanager
async def connected(connect: Connect, count: int) -> AsyncIterator[list[MCPWebSocketClient]]:
    """Opens ``count`` connections, each with its own session.

    Raises:
        CollectionError: the daemon is unreachable or refuses.
    """
    async with AsyncExitStack() as stack:
        try:
            clients = [await stack.enter_async_context(connect()) for _ in range(count)]
        except ConnectionFailedError as error:
            hint = " (--simulate starts a daemon for the run)" if error.not_listening else ""
            raise CollectionError(f"{error}{hint}") from error
        yield clients


def connections_for(loads: Sequence[Load]) -> int:
    """The number of connections that these loads need."""
    return max(
        OPEN_LOOP_CONNECTIONS if load.concurrency is None else math.ceil(load.concurrency / CALLS_A_CONNECTION)
        for load in loads
    )


class Side(msgspec.Struct, frozen=True):
    """One daemon of a run: its draft, how to connect to it, and how to call its tools."""

    draft: Draft
    connect: Connect
    matrix: Matrix


async def collect(sides: Sequence[Side], ended: Callable[[Call], None]) -> None:
    """Make every planned call that is not in the drafts yet.

    Several sides, whose configurations differ only in the daemon, alternate within each turn, so that other load on the
    machine affects all of them. ``ended`` is called with each recorded call.

    Raises:
        CollectionError: a daemon stopped, or a tool's prerequisite failed.
    """
    configuration = sides[0].draft.run.configuration
    try:
        async with AsyncExitStack() as stack:
            runs = [await stack.enter_async_context(_opened(side, ended)) for side in sides]
            for tool in configuration.tools:
                for run in runs:
                    await run.warm_up(tool, configuration.warmup)
            for turn in turns(configuration):
                for run in runs if turn.round % 2 else reversed(runs):  # alternate which side begins
                    await run.take(turn)
    except ConnectionFailedError as error:
        raise CollectionError(f"the daemon stopped: {error}") from error


@asynccontextmanager
async def _opened(side: Side, ended: Callable[[Call], None]) -> AsyncIterator["_Run"]:
    """Opens a side's connections and prepares what its tools need; undoes that at the end."""
    draft, matrix = side.draft, side.matrix
    configuration = draft.run.configuration
    left = remaining_turns(configuration, draft.calls)

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
    """One side during the run."""

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
        """Make unrecorded calls, one after the other, if recorded ones remain for the tool."""
        if not any(turn.tool == tool for turn in self._left):
            return
        arguments = self._arguments(tool)
        for _ in range(calls):
            with suppress(CallError, ConnectionLostError):  # the measured calls record the same error
                result = await self._clients[0].call(tool, arguments)
                await _undo(self._clients[0], self._matrix.tools[tool].undo, result.structured)

    async def take(self, turn: Turn) -> None:
        """Make the remaining calls of a turn and undo their effects."""
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
        if not case.needs:  # orchestration tools have templates in their arguments
            return case.arguments
        try:
            filled: dict[str, Any] = compile_template(case.arguments).resolve(self._needs)
        except ShapingError as error:
            raise CollectionError(f"the arguments of {tool} cannot be filled from its needs: {error}") from error
        return filled

    async def _offer_at_once(
        self, turn: Turn, iterations: Iterator[int], arguments: dict[str, Any], results: list[Json]
    ) -> None:
        async def work(client: MCPWebSocketClient) -> None:
            for iteration in iterations:
                result = await self._caller.call(client, turn, iteration, arguments)
                results.append(result)  # at once, so that calls before a disconnect are undone too

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
        raise CollectionError(f"{step.tool}, called for [needs.{name}] of the matrix, failed: {error}") from error
    return result.structured


async def _undo(client: MCPWebSocketClient, step: Step | None, result: Json) -> None:
    """Undo the effect of a call. A failure to undo is ignored; the recorded call is unaffected."""
    if step is None or result is None:
        return
    try:
        arguments = compile_template(step.arguments).resolve({"result": result})
        await client.call(step.tool, arguments, auto_reconnect=False)  # only measured calls wait for a reconnect
    except (CallError, ConnectionFailedError, ConnectionLostError, ShapingError):
        return
