"""Retries of one child call: which errors are retried, and after which delay."""

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
"""The default timeout of one attempt: a hanging call must not block a detached run for a day."""


class RetriedCall(Protocol):
    """``OrchestrationContext.call``: tool errors are returned, not raised."""

    def __call__(
        self, tool: str, arguments: Mapping[str, Json], *, name: str, timeout_s: float | None = None
    ) -> Awaitable[ToolResult]: ...


class AttemptResult(msgspec.Struct, frozen=True, kw_only=True):
    """How the last attempt ended."""

    result: ToolResult
    attempts: int
    """The number of attempts, including those of resumed runs."""
    unknown: bool = False
    """It failed but may have had an effect, which a repetition would have twice."""

    @property
    def replayed(self) -> bool:
        """Whether the tool did not run because the result was stored by an earlier run."""
        return self.result.metadata.replayed is True


def delay_s(retry: int, error: ToolError, draw: float) -> float:
    """Returns the seconds before the ``retry``-th retry (from 1), at least ``error.retry_after_ms``.

    ``draw`` is evenly random in [0, 1).
    """
    at_least_s = (error.retry_after_ms or 0) / 1000
    return backoff_s(retry - 1, draw, base_s=BASE_S, cap_s=CAP_S, at_least_s=at_least_s)


def attempt_name(name: str, attempt: int) -> str:
    """The child's name of the ``attempt``-th attempt, counted from 1."""
    return name if attempt == 1 else f"{name}#{attempt}"


def may_have_had_effect(error: ToolError, *, repeatable: bool) -> bool:
    """Whether a failed call may have had an effect that a repetition would have twice (decision 28)."""
    return error.executed != "no" and not repeatable


def _has_other_result(error: ToolError, tool: Tool) -> bool:
    """Whether an earlier run stored a result for other arguments. Idempotent tools simply run again."""
    return error.code == ErrorCode.REQUEST_ID_CONFLICT and not tool.repeatable


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Makes calls and retries them. ``left`` returns the remaining seconds; ``sleep`` takes seconds."""

    call: RetriedCall
    left: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    retry_unknown: bool = False
    """Whether a call that failed in an earlier run is retried although it may have had an effect."""
    draw: Callable[[], float] = random.random

    async def attempt(
        self, tool: Tool, arguments: Mapping[str, Json], *, name: str, retries: int, timeout_s: float | None = None
    ) -> AttemptResult:
        """Call, and retry up to ``retries`` times if the error is retryable and the delay fits into the remaining time.

        A call that failed in an earlier run is repeated at once if that is safe, which does not count as a retry.
        ``timeout_s`` applies to each attempt.
        """
        attempt, retried = 1, 0
        while True:
            result = await self._call(tool, arguments, attempt_name(name, attempt), timeout_s)
            error = result.error
            if error is None:
                return AttemptResult(result=result, attempts=attempt)
            unknown = may_have_had_effect(error, repeatable=tool.repeatable)
            if not result.metadata.replayed:
                wait_s = delay_s(retried + 1, error, self.draw())
                if not error.retryable or retried == retries or wait_s >= self.left():
                    return AttemptResult(result=result, attempts=attempt, unknown=unknown)
                retried += 1
                await self.sleep(wait_s)
            elif _has_other_result(error, tool) or (unknown and not self.retry_unknown):
                return AttemptResult(result=result, attempts=attempt, unknown=unknown)
            attempt += 1

    async def _call(self, tool: Tool, arguments: Mapping[str, Json], name: str, timeout_s: float | None) -> ToolResult:
        timeout_s = min(self.left(), ATTEMPT_S if timeout_s is None else timeout_s)
        return await self.call(tool.name, arguments, name=name, timeout_s=timeout_s)
