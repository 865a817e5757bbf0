"""The limits of one run: time for its parts, concurrency, memory for results, and the size of its answer."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from ...protocol.error_codes import CallCancelledError, ResultTooLargeError, ToolError
from ...protocol.tool_call import Json
from ...shaping import weight

ANSWER_S: Final = 1.5
"""Kept of the call's own time for its answer: a tool that does not end when it is told to is answered for after 1 s."""
ANSWER_SHARE: Final = 0.2
"""Of a short call it is at most this share."""
CALL_MARGIN_S: Final = 5.0
"""By so much the deadline of a call that names none is longer than what its parts may take at most."""


def time_left(timeout_s: float, call_left_s: float, clock: Callable[[], float] = time.monotonic) -> Callable[[], float]:
    """A function that says how many seconds the parts have from now on: ``timeout_s`` from the beginning, within what
    the call has left.
    """
    margin_s = min(ANSWER_S, call_left_s * ANSWER_SHARE)
    until = clock() + min(timeout_s, call_left_s - margin_s)
    return lambda: max(0.0, until - clock())


I = TypeVar("I")  # noqa: E741 - an item
R = TypeVar("R")


async def slide(
    items: Sequence[I], work: Callable[[int, I], Awaitable[R]], *, at_once: int, go_on: Callable[[], bool]
) -> list[R | None]:
    """What ``work(index, item)`` made of each item, in the items' order; None for those that were not begun, since
    ``go_on`` said no. When the caller is cancelled, so is all work, and it is waited for.
    """
    done: list[R | None] = [None] * len(items)
    waiting = iter(enumerate(items))

    async def take(waiting: Iterator[tuple[int, I]]) -> None:
        while go_on() and (next_one := next(waiting, None)) is not None:
            index, item = next_one
            done[index] = await work(index, item)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(at_once, len(items))):
            group.create_task(take(waiting))
    return done


MAX_RESULTS_BYTES: Final = 64 * 1024**2
"""Three times the largest frame; an answer is made of all of them, in memory, before it is kept as a file."""

_FULL: Final = (
    f"It has run, but the results of this call's parts are more than {MAX_RESULTS_BYTES:,} bytes together; keep what "
    "is needed of each, by options or select_fields, or have it kept by return_mode 'file'."
)


class ResultBudget:
    """What is left of it for one call."""

    def __init__(self, most: int = MAX_RESULTS_BYTES) -> None:
        self._left = most

    def take(self, value: Json) -> ToolError | None:
        """Take the room of a result; the error where there is not enough, and then nothing is taken."""
        needed = weight(value, self._left)
        if needed > self._left:
            return ResultTooLargeError(_FULL, executed="yes").to_tool_error()
        self._left -= needed
        return None


MOST_BYTES: Final = 1024**2
"""Of what was done, in an error: a caller that cancels wants no more."""
_SHARE: Final = 8
"""It has at most this part of an answer, or the error itself might have no room in a frame."""

_TOLD: Final = "details.so_far has what was done"


def cut_off(answer: Mapping[str, Json], answer_bytes: int, run_id: str | None = None) -> CallCancelledError:
    """The error of a call that was told to end, with its ``answer`` up to then. Where that is large beside
    ``max_answer_bytes`` it goes without results, then without errors, and then without its steps: what calls
    that it made came to is kept under their own ids.
    """
    told, so_far = _TOLD, dict(answer)
    most = min(MOST_BYTES, answer_bytes // _SHARE)
    for part in ("result", "results", "errors", "error", "step_results"):
        if weight(so_far, most) <= most:
            break
        told = f"{_TOLD}, but for what is too large for an error"
        so_far = _without(so_far, part)
    details: dict[str, Json] = {"so_far": so_far}
    if run_id is not None:
        told = f"{told}; resume with details.run_id goes on"
        details["run_id"] = run_id
    return CallCancelledError(f"{told}.", details=details)


def _without(answer: Mapping[str, Any], part: str) -> dict[str, Any]:
    """The answer without one of its parts, and without that of its steps."""
    left = {name: value for name, value in answer.items() if name != part}
    if isinstance(steps := left.get("step_results"), dict):
        left["step_results"] = {name: _without(step, part) for name, step in steps.items()}
    return left
