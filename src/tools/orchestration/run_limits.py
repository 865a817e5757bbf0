"""The limits of one run: time for its parts, concurrency, memory for results, and the size of its answer."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from ...protocol.error_codes import CallCancelledError, ResultTooLargeError, ToolError
from ...protocol.tool_call import Json
from ...shaping import weight

ANSWER_S: Final = 1.5
"""Reserved from the call's remaining time for its answer. A call whose tool ignores the cancellation is answered after
1 s.
"""
ANSWER_SHARE: Final = 0.2
"""The largest share of a short call's time that is reserved."""
CALL_MARGIN_S: Final = 5.0
"""The call's default timeout exceeds the largest timeout of its parts by this many seconds."""


def time_left(timeout_s: float, call_left_s: float, clock: Callable[[], float] = time.monotonic) -> Callable[[], float]:
    """Returns a function that returns the seconds that the parts have left: ``timeout_s`` from now, within the call's
    remaining time.
    """
    margin_s = min(ANSWER_S, call_left_s * ANSWER_SHARE)
    until = clock() + min(timeout_s, call_left_s - margin_s)
    return lambda: max(0.0, until - clock())


I = TypeVar("I")  # noqa: E741 - an item
R = TypeVar("R")


async def bounded_map(
    items: Sequence[I], work: Callable[[int, I], Awaitable[R]], *, concurrency: int, may_start: Callable[[], bool]
) -> list[R | None]:
    """The results of ``work(index, item)`` in the items' order, with at most ``concurrency`` items in progress; None
    for items that were not started because ``may_start`` returned False. Cancelling the caller cancels all work and
    waits for it.
    """
    done: list[R | None] = [None] * len(items)
    waiting = iter(enumerate(items))

    async def worker(waiting: Iterator[tuple[int, I]]) -> None:
        while may_start() and (next_one := next(waiting, None)) is not None:
            index, item = next_one
            done[index] = await work(index, item)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(concurrency, len(items))):
            group.create_task(worker(waiting))
    return done


MAX_RESULTS_BYTES: Final = 64 * 1024**2
"""Three times the largest frame. The answer contains all results, in memory, before it spills to a file."""

_FULL: Final = (
    f"The tool has run, but the results of this call's parts exceed {MAX_RESULTS_BYTES:,} bytes together; reduce each "
    "result with options or select_fields, or write it to a file with return_mode 'file'."
)


class ResultBudget:
    """The bytes that the results of one call's parts may still take. They stay in memory until the answer is made."""

    def __init__(self, max_bytes: int = MAX_RESULTS_BYTES) -> None:
        self._left = max_bytes

    def spend(self, value: Json) -> ToolError | None:
        """Spend the size of a result; returns an error, and spends nothing, if the budget is too small."""
        needed = weight(value, self._left)
        if needed > self._left:
            return ResultTooLargeError(_FULL, executed="yes").to_tool_error()
        self._left -= needed
        return None

    def keep_details(self, error: ToolError) -> ToolError:
        """The error, without its details if these exceed the budget. Like results, they stay in memory until the
        answer.
        """
        if not error.details or self.spend(error.details) is None:
            return error
        return msgspec.structs.replace(error, details=None)


REASON_CHARS: Final = 500
"""The length of ``PartsOutcome.reason``, the same as of a message in the audit."""
MAX_PARTIAL_ANSWER_BYTES: Final = 1024**2
"""The largest partial answer in an error."""
_SHARE: Final = 8
"""The partial answer takes at most this fraction of an answer, so that the error fits into a frame."""

_PROGRESS: Final = "details.so_far has the report so far"


def cancellation_error(answer: Mapping[str, Json], answer_bytes: int, run_id: str | None = None) -> CallCancelledError:
    """The error of a cancelled call, with its partial ``answer``. A large ``answer`` is trimmed: results are omitted
    first, then errors, then steps. Results of child calls are stored under their own ids.
    """
    so_far, whole = trimmed(answer, min(MAX_PARTIAL_ANSWER_BYTES, answer_bytes // _SHARE))
    message = _PROGRESS if whole else f"{_PROGRESS}, without parts that are too large for an error"
    details: dict[str, Json] = {"so_far": so_far}
    if run_id is not None:
        message = f"{message}; call again with resume set to details.run_id to continue"
        details["run_id"] = run_id
    return CallCancelledError(f"{message}.", details=details)


def trimmed(answer: Mapping[str, Json], max_bytes: int) -> tuple[dict[str, Json], bool]:
    """The report of a pipeline or a batch for an error: above ``max_bytes`` it omits results, then errors, then steps.
    Also returns whether the report is complete.
    """
    left, whole = dict(answer), True
    for part in ("result", "results", "errors", "error", "step_results"):
        if weight(left, max_bytes) <= max_bytes:
            break
        left, whole = _without(left, part), False
    return left, whole


def _without(answer: Mapping[str, Any], part: str) -> dict[str, Any]:
    """The answer without one of its parts; the part is also removed from its steps."""
    left = {name: value for name, value in answer.items() if name != part}
    if isinstance(steps := left.get("step_results"), dict):
        left["step_results"] = {name: _without(step, part) for name, step in steps.items()}
    return left
