"""What a pipeline is described by."""

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from ..tool import Arguments
from .call_retry import MAX_RETRIES

MAX_STEPS: Final = 20
MAX_ITEMS: Final = 100
"""That one step runs over, and one batch."""
MAX_AT_ONCE: Final = 10
AT_ONCE: Final = 5
TIMEOUT_S: Final = 120.0
MAX_TIMEOUT_S: Final = 300.0
MAX_DELAY_MS: Final = 60_000

RESUME: Final = "The `run_id` of an earlier run: what it finished is not repeated."
DRY_RUN: Final = "Answer the plan, and run nothing."
ON_UNKNOWN: Final = "With resume: whether a write that was cut off, so that nobody knows its outcome, is tried again."

Seconds = Annotated[float, Field(gt=0, le=MAX_TIMEOUT_S)]
OnError = Literal["stop", "continue", "fallback"]


class Retry(Arguments):
    """How often a step is tried again."""

    max: int = Field(ge=0, le=MAX_RETRIES, description="Retries of each call, where its error is retryable.")


class PipelineStep(Arguments):
    """One call of a tool, or one for each element of a list."""

    id: str = Field(
        pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$", description="Its name: later steps refer to its result as {{id}}."
    )
    tool_name: str
    args: dict[str, Any] | str = Field(
        default={}, description="The tool's arguments, with templates: {{step.field}}, {{input.x | default(0)}}."
    )
    options: dict[str, Any] | None = Field(
        default=None, description="Shapes the result, as execute_tool does: filter, sort, limit, select_fields, …"
    )
    when: str | None = Field(
        default=None, description="A filter over steps and input, such as fetch.total > 0; else the step is skipped."
    )
    for_each: list[Any] | str | None = Field(
        default=None, description="A list, or a template of one; the step runs for each {{item}}, {{index}} from 0."
    )
    concurrency: int = Field(default=AT_ONCE, ge=1, le=MAX_AT_ONCE, description="With for_each: how many at once.")
    on_error: OnError = Field(
        default="stop", description="Begin no other step; go on without a result; or go on with `fallback`."
    )
    fallback: Any = Field(default=None, description="With on_error fallback: what takes the result's place.")
    retry: Retry | None = None
    timeout_s: Seconds | None = Field(default=None, description="Of each of its calls.")
    delay_ms: float = Field(default=0, ge=0, le=MAX_DELAY_MS, description="Waited before it begins.")


class PipelineSteps(Arguments):
    """The part of a pipeline that can be saved."""

    steps: list[PipelineStep] = Field(min_length=1, max_length=MAX_STEPS)
    return_: Any = Field(
        default=None, alias="return", description="A template: what `result` is; else the last step's result."
    )
