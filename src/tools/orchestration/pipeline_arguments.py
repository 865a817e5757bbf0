"""The arguments that describe a pipeline."""

from typing import Annotated, Any, Final, Literal

from pydantic import AliasChoices, Field

from ..tool import Arguments
from .call_retry import MAX_RETRIES, MAX_SET_DELAY_S

MAX_STEPS: Final = 20
MAX_ITEMS: Final = 100
"""The largest number of items of a step with ``for_each``, and of a batch."""
MAX_AT_ONCE: Final = 10
AT_ONCE: Final = 5
TIMEOUT_S: Final = 120.0
MAX_TIMEOUT_S: Final = 300.0
MAX_DELAY_MS: Final = 60_000

RESUME: Final = "The `run_id` of an earlier run: its finished steps are not repeated."
DRY_RUN: Final = "Return the plan without running it."
ON_UNKNOWN: Final = "With resume: whether interrupted writes, whose outcome is unknown, are retried."

Seconds = Annotated[float, Field(gt=0, le=MAX_TIMEOUT_S)]
OnError = Literal["stop", "continue", "fallback"]


MaxDelay = Annotated[float, Field(gt=0, le=MAX_SET_DELAY_S)]
MAX_DELAY: Final = "The longest delay before a retry. An error that asks for a longer delay is not retried."


class Retry(Arguments):
    """How often a step is retried."""

    max: int = Field(ge=0, le=MAX_RETRIES, description="Retries per call, if its error is retryable.")
    max_delay_s: MaxDelay | None = Field(default=None, description=MAX_DELAY)


class PipelineStep(Arguments):
    """One call of a tool, or one call for each element of a list."""

    id: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$", description="Later steps refer to its result as {{id}}.")
    tool_name: str
    args: dict[str, Any] | str = Field(
        default={}, description="The tool's arguments, with templates: {{step.field}}, {{input.x | default(0)}}."
    )
    options: dict[str, Any] | None = Field(
        default=None, description="Shape the result, as in execute_tool: filter, sort, limit, select_fields, …"
    )
    when: str | None = Field(
        default=None,
        description="A filter over steps and input, such as fetch.total > 0; if false, the step is skipped",
    )
    for_each: list[Any] | str | None = Field(
        default=None,
        description="A list, or a template of one; the step runs for each {{item}}, {{index}} from 0.",
        validation_alias=AliasChoices("for_each", "loop"),
    )
    filter: str | None = Field(
        default=None, description="With for_each: the elements for which it runs, such as email IS_NOT_NULL."
    )
    concurrency: int = Field(default=AT_ONCE, ge=1, le=MAX_AT_ONCE, description="With for_each: calls at once.")
    on_error: OnError = Field(
        default="stop", description="stop: start no further step; continue without a result; or use `fallback`."
    )
    fallback: Any = Field(default=None, description="With on_error fallback: replaces the result.")
    retry: Retry | None = None
    timeout_s: Seconds | None = Field(default=None, description="Per call.")
    delay_ms: float = Field(default=0, ge=0, le=MAX_DELAY_MS, description="Delay before the step starts.")


class PipelineSteps(Arguments):
    """The part of a pipeline that can be saved."""

    steps: list[PipelineStep] = Field(min_length=1, max_length=MAX_STEPS)
    return_: Any = Field(
        default=None,
        alias="return",
        description="A template for `result`, or {step: [fields]}; default: the last step's result.",
    )
