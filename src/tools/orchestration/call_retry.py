"""Retries of one child call, and their delays. ``protocol/error_codes.py`` decides which errors are retryable."""

import math
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

import msgspec

from ...protocol.backoff import backoff_s
from ...protocol.error_codes import ErrorCode, OutcomeUnknownError, ToolError, ToolExecutionError
from ...protocol.input_request import CallPausedError
from ...protocol.name_suggestions import as_sentence
from ...protocol.terminal_text import one_line
from ...protocol.tool_call import Json, Metadata, Timings, ToolResult
from ...shaping import weight
from ..tool_definition import Tool
from .run_limits import trimmed

MAX_RETRIES: Final = 3
BASE_S: Final = 1.0
MAX_SET_DELAY_S: Final = 3600.0
"""The longest delay that a caller may set. Callers that want to wait longer make another call."""

ATTEMPT_S: Final = 300.0
"""The default timeout of one attempt: a hanging call must not block a detached run for a day."""


_QUESTION_CHARS: Final = 1000
"""The maximum length of a part's question in its error."""
ANSWER_BYTES: Final = 64 * 1024
"""The maximum size of a partial answer in the details of an error, the same as of data in a text."""


class RetriedCall(Protocol):
    """``OrchestrationContext.call``: tool errors are returned, not raised."""

    def __call__(
        self, tool: str, arguments: Mapping[str, Json], *, name: str, timeout_s: float | None = None
    ) -> Awaitable[ToolResult]: ...


class AttemptResult(msgspec.Struct, frozen=True, kw_only=True):
    """How the last attempt ended."""

    result: ToolResult
    error: ToolError | None = None
    """The result's error, or the error made for a result whose parts did not all succeed."""
    attempts: int
    """The number of attempts, including those of resumed runs."""
    retries: int = 0
    """The retries in this run."""
    delayed_s: float = 0.0
    """The sum of the delays before the retries."""
    unknown: bool = False
    """The call failed but may have had an effect; a repetition could have the effect twice."""

    @property
    def replayed(self) -> bool:
        """Whether the tool did not run because the result was stored by an earlier run."""
        return self.result.metadata.replayed is True


def delay_s(retry: int, error: ToolError, draw: float, max_delay_s: float | None = None) -> float | None:
    """Returns the seconds before the ``retry``-th retry (from 1), at least ``error.retry_after_ms``; None if
    ``retry_after_ms`` exceeds ``max_delay_s``.

    ``draw`` is a uniform random number in [0, 1).
    """
    at_least_s = (error.retry_after_ms or 0) / 1000
    if max_delay_s is None:
        return backoff_s(retry - 1, draw, base_s=BASE_S, cap_s=math.inf, at_least_s=at_least_s)
    if at_least_s > max_delay_s:
        return None
    return min(max_delay_s, backoff_s(retry - 1, draw, base_s=BASE_S, cap_s=max_delay_s, at_least_s=at_least_s))


def attempt_name(name: str, attempt: int) -> str:
    """The child's name of the ``attempt``-th attempt, counted from 1."""
    return name if attempt == 1 else f"{name}#{attempt}"


def may_have_had_effect(error: ToolError, *, repeatable: bool) -> bool:
    """Whether a failed call may have had an effect that a repetition would duplicate (decision 28)."""
    return error.executed != "no" and not repeatable


def parts_error(tool: str, result: ToolResult, call_id: str | None = None) -> ToolError | None:
    """The error of a call whose answer reports on its parts, if not all of them succeeded.

    ``details.answer`` is the report, as far as it fits; with ``call_id``, the message refers to ``call_result``
    instead. The error is not retryable: a repetition would run all parts again.
    """
    parts = result.metadata.parts
    if result.error is not None or parts is None or parts.outcome == "succeeded":
        return None
    message, details = as_sentence(f"{tool}: {parts.reason}"), None
    if call_id is not None:
        message = f"{message} call_result with call_id {call_id!r} returns its answer."
    else:
        answer, whole = _fitting(result.value)
        details = {"answer": answer}
        message = message if whole else f"{message} details.answer has only a part of its answer, which is too large."
    if parts.outcome == "unknown":
        return OutcomeUnknownError(message, details=details).to_tool_error()
    return ToolExecutionError(message, executed="yes", details=details).to_tool_error()


def cannot_wait(tool: str, pause: CallPausedError) -> ToolError:
    """The error of a part that would wait for a person. The other parts cannot wait for it."""
    message = (
        f"The tool {tool} waits for a person. A part of another call cannot wait; call {tool} directly. Effects "
        "that it had before it paused remain."
    )
    asked = one_line("; ".join(request.text for request in pause.requests if request.text), _QUESTION_CHARS)
    shown = f"{message} Its question: {asked}" if asked else message
    return ToolExecutionError(shown, summary=message).to_tool_error()


def _fitting(answer: Json) -> tuple[Json, bool]:
    """The part of the answer that fits into an error, and whether that is the whole answer."""
    if isinstance(answer, dict):
        return trimmed(answer, ANSWER_BYTES)
    fits = weight(answer, ANSWER_BYTES) <= ANSWER_BYTES
    return (answer if fits else None), fits


def _has_other_result(error: ToolError, tool: Tool) -> bool:
    """Whether an earlier run stored a result for other arguments. Idempotent tools simply run again."""
    return error.code == ErrorCode.REQUEST_ID_CONFLICT and not tool.repeatable


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Makes calls and retries them. ``left`` returns the remaining seconds; ``sleep`` takes seconds."""

    call: RetriedCall
    left: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    retry_unknown: bool = False
    """Whether to retry calls that failed in an earlier run and may have had an effect."""
    draw: Callable[[], float] = random.random

    async def attempt(
        self,
        tool: Tool,
        arguments: Mapping[str, Json],
        *,
        name: str,
        retries: int,
        max_delay_s: float | None = None,
        timeout_s: float | None = None,
    ) -> AttemptResult:
        """Call, and retry up to ``retries`` times while the error is retryable and the delay is at most ``max_delay_s``
        and fits into the remaining time.

        A call that failed in an earlier run is repeated at once if that is safe; this does not count as a retry. A call
        fails, without a retry, if not all of its parts succeed. ``timeout_s`` applies to each attempt.
        """
        attempt, retried, delayed_s = 1, 0, 0.0
        while True:
            result = await self._call(tool, arguments, attempt_name(name, attempt), timeout_s)
            error = result.error
            if error is None:
                error = parts_error(tool.name, result)
                unknown = error is not None and error.code == ErrorCode.OUTCOME_UNKNOWN
                break
            unknown = may_have_had_effect(error, repeatable=tool.repeatable)
            if not result.metadata.replayed:
                wait_s = delay_s(retried + 1, error, self.draw(), max_delay_s)
                if not error.retryable or retried == retries or wait_s is None or wait_s >= self.left():
                    break
                retried += 1
                delayed_s += wait_s
                await self.sleep(wait_s)
            elif _has_other_result(error, tool) or (unknown and not self.retry_unknown):
                break
            attempt += 1
        return AttemptResult(
            result=result, error=error, attempts=attempt, unknown=unknown, retries=retried, delayed_s=delayed_s
        )

    async def _call(self, tool: Tool, arguments: Mapping[str, Json], name: str, timeout_s: float | None) -> ToolResult:
        timeout_s = min(self.left(), ATTEMPT_S if timeout_s is None else timeout_s)
        try:
            return await self.call(tool.name, arguments, name=name, timeout_s=timeout_s)
        except CallPausedError as pause:
            return ToolResult(Metadata(0.0, Timings()), error=cannot_wait(tool.name, pause))
