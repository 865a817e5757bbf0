"""The calls that one program makes: begun when it waits for them, and ended with it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pydantic_monty as monty

from .engine_failures import TOOL_ERROR
from .sandbox_errors import ProgramStoppedError, ToolFailedError

Call = Callable[[str, str, dict[str, Any]], Awaitable[Any]]
"""``await call(module, function, arguments)`` does a call and returns its value as plain JSON.

Raises:
    ToolFailedError: it failed; the program may catch it.
"""


class InnerCalls:
    """What a program waits for, by the engine's numbers.

    The engine tells of a call when it is written, not when it is awaited. It is begun when the program waits, by which
    time all that it waits for together are written.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0
        # Written, and not waited for yet.
        self._made: dict[int, tuple[Callable[[], Awaitable[Any]], int | None]] = {}
        # Waited for.
        self._tasks: dict[int, asyncio.Task[Any]] = {}

    @property
    def never_awaited(self) -> list[int]:
        """The lines of the calls that were never waited for, but those with an ``await``: what they were part of ended
        before."""
        return sorted({line for _, line in self._made.values() if line is not None})

    def count_one(self) -> None:
        """Count a call of a tool.

        Raises:
            ProgramStoppedError: there are too many.
        """
        self._count += 1
        if self._count > self._most:
            raise ProgramStoppedError(
                "calls", f"The program made more than {self._most:,} calls; narrow down what it works on."
            )

    def make(self, number: int, begin: Callable[[], Awaitable[Any]], line: int | None) -> None:
        """Take note of something that the program may wait for, and the line where it stands without an ``await``."""
        self._made[number] = (begin, line)

    async def settled(self, numbers: Iterable[int]) -> dict[int, monty.ExternalSettledResult]:
        """Begin those that are not begun, in the order in which they are written, and wait until one or more of them
        have ended."""
        waiting = dict[asyncio.Task[Any], int]()
        for number in sorted(numbers):
            if number not in self._tasks:
                begin, _ = self._made.pop(number)
                self._tasks[number] = asyncio.ensure_future(begin())
            waiting[self._tasks[number]] = number
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        return {waiting[task]: outcome(self._tasks.pop(waiting[task])) for task in done}

    async def end(self) -> None:
        """Cancel what is still going, and wait for it."""
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for task in tasks:
            task.cancelled() or task.exception()  # looked at, or asyncio would complain


def outcome(task: asyncio.Task[Any]) -> monty.ExternalSettledResult:
    """What the program gets for a task that has ended."""
    try:
        return {"return_value": task.result()}
    except ToolFailedError as error:
        return {"exc_type": TOOL_ERROR, "message": str(error)}
