"""One call of another tool, again where that may help: which errors are tried again, and how long after."""

import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

import msgspec

from ...protocol.backoff import backoff_s
from ...protocol.error_codes import ErrorCode, ToolError
from ...protocol.tool_call import Json, ToolResult
from ..tool_definition import Tool

MAX_RETRIES: Final = 3
BASE_S: Final = 1.0
CAP_S: Final = 30.0
"""The longest window of the backoff, unless ``retry_after_ms`` asks for more."""

ATTEMPT_S: Final = 300.0
"""One call of a detached run has no longer, unless it was said: what hangs must not hold the others up for a day."""


class RetriedCall(Protocol):
    """``OrchestrationContext.call``: never raises for what the tool did."""

    def __call__(
        self, tool: str, arguments: Mapping[str, Json], *, name: str, timeout_s: float | None = None
    ) -> Awaitable[ToolResult]: ...


class AttemptResult(msgspec.Struct, frozen=True, kw_only=True):
    """How the last attempt ended."""

    result: ToolResult
    attempts: int
    """How many were made, those of earlier runs that were taken up included."""
    unknown: bool = False
    """It failed, and may have had an effect all the same that a repetition would have twice."""

    @property
    def replayed(self) -> bool:
        """Whether nothing ran: the result is that of an earlier run."""
        return self.result.metadata.replayed is True


def delay_s(retry: int, error: ToolError, draw: float) -> float:
    """Returns the seconds before the ``retry``-th retry (from 1), at least ``error.retry_after_ms``.

    ``draw`` is evenly random in [0, 1).
    """
    at_least_s = (error.retry_after_ms or 0) / 1000
    return backoff_s(retry - 1, draw, base_s=BASE_S, cap_s=CAP_S, at_least_s=at_least_s)


def attempt_name(name: str, attempt: int) -> str:
    """What the ``attempt``-th attempt, from 1, is called under its parent."""
    return name if attempt == 1 else f"{name}#{attempt}"


def may_be_done(error: ToolError, *, repeatable: bool) -> bool:
    """Whether a call that ended so may have had an effect that a repetition would have twice (decision 28)."""
    return error.executed != "no" and not repeatable


def _is_done(error: ToolError, tool: Tool) -> bool:
    """Whether an earlier run has a result here, of other arguments than now. What may be called twice just is."""
    return error.code == ErrorCode.REQUEST_ID_CONFLICT and not tool.repeatable


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How calls are made and made again. ``left`` says how many seconds there are; ``sleep`` takes seconds."""

    call: RetriedCall
    left: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    retry_unknown: bool = False
    """Whether what failed in an earlier run is tried again though it may have had its effect."""
    draw: Callable[[], float] = random.random

    async def attempt(
        self, tool: Tool, arguments: Mapping[str, Json], *, name: str, retries: int, timeout_s: float | None = None
    ) -> AttemptResult:
        """Call, and again up to ``retries`` times where the error is retryable and the wait for it fits.

        What failed in an earlier run is tried again at once, where that can do no harm, and is no retry.
        ``timeout_s`` is each attempt's.
        """
        attempt, retried = 1, 0
        while True:
            result = await self._call(tool, arguments, attempt_name(name, attempt), timeout_s)
            error = result.error
            if error is None:
                return AttemptResult(result=result, attempts=attempt)
            unknown = may_be_done(error, repeatable=tool.repeatable)
            if not result.metadata.replayed:
                wait_s = delay_s(retried + 1, error, self.draw())
                if not error.retryable or retried == retries or wait_s >= self.left():
                    return AttemptResult(result=result, attempts=attempt, unknown=unknown)
                retried += 1
                await self.sleep(wait_s)
            elif _is_done(error, tool) or (unknown and not self.retry_unknown):
                return AttemptResult(result=result, attempts=attempt, unknown=unknown)
            attempt += 1

    async def _call(self, tool: Tool, arguments: Mapping[str, Json], name: str, timeout_s: float | None) -> ToolResult:
        timeout_s = min(self.left(), ATTEMPT_S if timeout_s is None else timeout_s)
        return await self.call(tool.name, arguments, name=name, timeout_s=timeout_s)
