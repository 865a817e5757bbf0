"""The ``detach`` and ``timeout_s`` arguments of ``execute_pipeline`` and ``execute_batch``."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from ...protocol.detached_answer import detached_answer
from ...protocol.tool_call import Json
from ..orchestration_context import OrchestrationContext
from ..tool import Arguments
from .argument_templates import Problem
from .pipeline_arguments import MAX_TIMEOUT_S, TIMEOUT_S
from .run_limits import CALL_MARGIN_S

DETACHED_TIMEOUT_S: Final = 3600.0
MAX_DETACHED_TIMEOUT_S: Final = 86_400.0
"""The default retention of results."""


class DetachOption(Arguments):
    """Arguments of tools that can run as detached calls."""

    timeout_s: Annotated[float, Field(gt=0, le=MAX_DETACHED_TIMEOUT_S)] | None = Field(
        default=None,
        description=f"For the whole call; default {TIMEOUT_S:g}, at most {MAX_TIMEOUT_S:g}; detached: default "
        f"{DETACHED_TIMEOUT_S:g}, at most {MAX_DETACHED_TIMEOUT_S:g}.",
    )
    timeout_ms: Annotated[float | None, Field(gt=0, le=MAX_DETACHED_TIMEOUT_S * 1000), SkipJsonSchema()] = None
    """The same timeout in milliseconds, under the name that other servers use."""
    detach: bool = Field(
        default=False, description="Return a call_id at once, for call_status, call_result and cancel_call."
    )

    @property
    def seconds(self) -> float:
        """The timeout of the whole call."""
        if self.timeout_s is not None:
            return self.timeout_s
        if self.timeout_ms is not None:
            return self.timeout_ms / 1000
        return DETACHED_TIMEOUT_S if self.detach else TIMEOUT_S

    @property
    def timeout_problems(self) -> list[Problem]:
        """The error if the timeout is too long or set twice; otherwise empty."""
        if self.timeout_s is not None and self.timeout_ms is not None:
            return [("timeout_ms", "is the same as timeout_s; set one of them")]
        if self.detach or self.seconds <= MAX_TIMEOUT_S:
            return []
        message = f"should be at most {MAX_TIMEOUT_S:g}, or with detach {MAX_DETACHED_TIMEOUT_S:g}"
        return [("timeout_s", f"{message}, not {self.seconds:g}")]


async def detach(context: OrchestrationContext, seconds: float, changed: Mapping[str, Json]) -> dict[str, Any]:
    """Run the call of ``context`` once more as a detached call, with the ``changed`` arguments; returns its id.

    Raises:
        CallError: as raised by ``context.detach``.
    """
    call_id = await context.detach(changed=changed, timeout_s=seconds + CALL_MARGIN_S)
    return detached_answer(call_id)
