"""Failover: asks the next model if one fails before its answer begins.

Only models that the caller or the operator named are asked. If a model refuses the request, no other model is asked.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from ...protocol.error_codes import (
    BudgetSpentError,
    CallError,
    CallTimeoutError,
    InvalidArgumentsError,
    RateLimitedError,
    ServiceUnavailableError,
)
from ...protocol.tool_call import FAILOVER_REASON
from ..model_question import AUTO
from ..tool_context import ToolContext
from .attachments import errors_of
from .model_selection import ModelChoice

T = TypeVar("T")

MAX_FALLBACKS: Final = 8
"""The maximum number of models in ``fallback``: with more, each would have too little of the call's time."""


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """A model that failed before its answer began, or a configured fallback that cannot answer this call."""

    model: str
    error: CallError

    def as_data(self) -> dict[str, str]:
        return {"model": self.model, "code": self.error.code.value, "error": self.error.message}


@dataclass(slots=True)
class AnswerStart:
    """Whether an attempt's answer has begun. Until then, the attempt's time is limited."""

    limit: asyncio.Timeout
    begun: bool = False

    def note(self) -> None:
        """Note that the model has sent something: from now on, only the call's deadline limits the attempt."""
        if not self.begun:
            self.begun = True
            with suppress(RuntimeError):  # the time has just ended
                self.limit.reschedule(None)


def select_models(
    first: ModelChoice,
    requested: Sequence[str] | None,
    configured: Sequence[str],
    select: Callable[[str], ModelChoice],
) -> list[ModelChoice | FailedAttempt]:
    """Returns ``first`` and its fallbacks, without duplicates. Sends nothing.

    ``requested`` are the fallbacks that the call names. If it is None, the operator's ``configured`` fallbacks apply,
    without the models that cannot answer this call: a setting must not make a call invalid.

    Raises:
        CallError: the call names an unknown model or one that cannot answer it; the error names the item.
    """
    models: list[ModelChoice | FailedAttempt] = [first]
    chosen = {first.model.id}
    for place, name in enumerate(configured if requested is None else requested):
        try:
            with errors_of(f"fallback.{place}"):
                if name.strip().lower() == AUTO:
                    raise InvalidArgumentsError("Name the models; auto may select the model that has failed.")
                choice = select(name)
        except CallError as error:
            if requested is not None:
                raise
            models.append(FailedAttempt(name, error))
            continue
        if choice.model.id not in chosen:
            models.append(choice)
            chosen.add(choice.model.id)
    return models


def may_fall_back(error: CallError) -> bool:
    """Whether another model may answer instead: the vendor is out of order, out of quota or too slow. The daily budget
    applies to all models, and a refusal counts as an answer.
    """
    if isinstance(error, BudgetSpentError):
        return False
    return isinstance(error, ServiceUnavailableError | RateLimitedError | CallTimeoutError)


async def first_answer(
    models: Sequence[ModelChoice | FailedAttempt],
    ask: Callable[[ModelChoice, Callable[[], None] | None], Awaitable[T]],
    context: ToolContext,
) -> tuple[T, tuple[FailedAttempt, ...]]:
    """Asks the models in order until one answers; returns the answer and the failed attempts.

    ``ask`` gets a model and the function to call when its answer begins (None for the last model). While other models
    remain, an attempt whose answer has not begun gets an equal share of the remaining time.

    Raises:
        CallError: the last model failed, or an error excludes fallbacks; ``details.fallback`` has the failed attempts.
    """
    failed: tuple[FailedAttempt, ...] = ()
    others = sum(isinstance(model, ModelChoice) for model in models)
    for place, choice in enumerate(models):
        if isinstance(choice, FailedAttempt):
            failed = (*failed, choice)
            continue
        others -= 1
        asked = replace(choice, reason=_reason(failed)) if failed else choice
        if not others:
            try:
                return await ask(asked, None), failed
            except CallError as error:
                passed_over = [model for model in models[place:] if isinstance(model, FailedAttempt)]
                if failed:
                    _report((*failed, FailedAttempt(choice.model.id, error)), context)
                raise _with_attempts(error, (*failed, *(passed_over if may_fall_back(error) else ()))) from error
        share_s = context.remaining() / (others + 1)
        start: AnswerStart | None = None
        try:
            async with asyncio.timeout(share_s) as limit:
                start = AnswerStart(limit)
                return await ask(asked, start.note), failed
        except TimeoutError:
            message = f"{choice.model.id} did not begin its answer within {share_s:.3g} s."
            failure: CallError = CallTimeoutError.content_free(message)
        except CallError as error:
            if (start is not None and start.begun) or not may_fall_back(error):
                raise _with_attempts(error, failed) from error
            failure = error
        failed = (*failed, FailedAttempt(choice.model.id, failure))
        _report(failed, context)
    raise AssertionError("there is at least one model")


def attempts_data(failed: Sequence[FailedAttempt]) -> dict[str, Any]:
    """The field that failed attempts add to ``structured``."""
    return {"fallback": [attempt.as_data() for attempt in failed]} if failed else {}


def asking(choice: ModelChoice) -> str:
    """The progress of a call that asks a model; it names the models that failed before."""
    after = f", {choice.reason}" if (choice.reason or "").startswith(FAILOVER_REASON) else ""
    return f"asking {choice.model.id}{after}"


def _report(failed: Sequence[FailedAttempt], context: ToolContext) -> None:
    """Reports all failures of the call so far, because a report may replace an earlier one that was not sent yet."""
    context.progress(", ".join(f"{attempt.model} failed ({attempt.error.code.value})" for attempt in failed))


def _reason(failed: Sequence[FailedAttempt]) -> str:
    reasons = ", ".join(f"{attempt.model} ({attempt.error.code.value})" for attempt in failed)
    return f"{FAILOVER_REASON}{reasons}"


def _with_attempts(error: CallError, failed: Sequence[FailedAttempt]) -> CallError:
    if failed:
        error.details = {**(error.details or {}), **attempts_data(failed)}
    return error
