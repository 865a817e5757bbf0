"""The calls of one program: they start when the program waits for them, and end with the program."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pydantic_monty as monty

from .engine_failures import TOOL_ERROR
from .sandbox_errors import ProgramStoppedError, ToolFailedError

Call = Callable[[str, str, dict[str, Any]], Awaitable[Any]]
"""``await call(module, function, arguments)`` makes a call and returns its value as plain JSON.

Raises:
    ToolFailedError: the call failed; the program may catch it.
"""


class InnerCalls:
    """The program's pending calls, by the engine's numbers.

    The engine reports a call when the expression is evaluated, not when it is awaited. Calls start when the program
    waits, so that calls awaited together start together.
    """

    def __init__(self, max_calls: int) -> None:
        self._max_calls = max_calls
        self._count = 0
        # Evaluated, but not awaited yet.
        self._pending: dict[int, tuple[Callable[[], Awaitable[Any]], int | None]] = {}
        # Awaited.
        self._tasks: dict[int, asyncio.Task[Any]] = {}

    @property
    def never_awaited(self) -> list[int]:
        """The lines of the calls that were never awaited, except calls after an ``await`` whose expression did not
        complete."""
        return sorted({line for _, line in self._pending.values() if line is not None})

    def count_one(self) -> None:
        """Count a tool call.

        Raises:
            ProgramStoppedError: the program made too many calls.
        """
        self._count += 1
        if self._count > self._max_calls:
            raise ProgramStoppedError(
                "calls", f"The program made more than {self._max_calls:,} calls; make it process less data."
            )

    def add(self, number: int, begin: Callable[[], Awaitable[Any]], line: int | None) -> None:
        """Add something that the program may await, and its line if no ``await`` precedes it."""
        self._pending[number] = (begin, line)

    async def settled(self, numbers: Iterable[int]) -> dict[int, monty.ExternalSettledResult]:
        """Start the calls that have not started, in the order of their numbers, and wait until at least one call has
        ended."""
        waiting = dict[asyncio.Task[Any], int]()
        for number in sorted(numbers):
            if number not in self._tasks:
                begin, _ = self._pending.pop(number)
                self._tasks[number] = asyncio.ensure_future(begin())
            waiting[self._tasks[number]] = number
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        return {waiting[task]: outcome(self._tasks.pop(waiting[task])) for task in done}

    async def end(self) -> None:
        """Cancel all running calls and wait for them."""
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for task in tasks:
            task.cancelled() or task.exception()  # mark the exception as retrieved for asyncio


def outcome(task: asyncio.Task[Any]) -> monty.ExternalSettledResult:
    """The result of an ended task, in the engine's form."""
    try:
        return {"return_value": task.result()}
    except ToolFailedError as error:
        return {"exc_type": TOOL_ERROR, "message": str(error)}
