"""Calls that answer at once and go on apart: what both kinds take for it, and how they are made."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import Field

from ...protocol.tool_call import Json
from ..orchestration_context import OrchestrationContext
from ..tool import Arguments
from .argument_templates import Problem
from .pipeline_arguments import MAX_TIMEOUT_S, TIMEOUT_S
from .run_limits import CALL_MARGIN_S

DETACHED_TIMEOUT_S: Final = 3600.0
MAX_DETACHED_TIMEOUT_S: Final = 86_400.0
"""As long as results are kept, unless the operator says otherwise."""


class DetachOption(Arguments):
    """What a call takes that can go on without its caller."""

    timeout_s: Annotated[float, Field(gt=0, le=MAX_DETACHED_TIMEOUT_S)] | None = Field(
        default=None,
        description=f"Of all together; {TIMEOUT_S:g} if absent, {MAX_TIMEOUT_S:g} at most; detached "
        f"{DETACHED_TIMEOUT_S:g}, {MAX_DETACHED_TIMEOUT_S:g} at most.",
    )
    detach: bool = Field(
        default=False, description="Answer a call_id at once, for call_status, call_result and cancel_call."
    )

    @property
    def seconds(self) -> float:
        """What all together may take."""
        if self.timeout_s is not None:
            return self.timeout_s
        return DETACHED_TIMEOUT_S if self.detach else TIMEOUT_S

    @property
    def too_long(self) -> list[Problem]:
        """What is wrong with its time."""
        if self.detach or self.seconds <= MAX_TIMEOUT_S:
            return []
        told = f"should be at most {MAX_TIMEOUT_S:g}, or with detach {MAX_DETACHED_TIMEOUT_S:g}"
        return [("timeout_s", f"{told}, not {self.seconds:g}")]


async def detach(context: OrchestrationContext, seconds: float, changed: Mapping[str, Json]) -> dict[str, Any]:
    """Have the call of ``context`` made once more, apart from it, with arguments ``changed``; answers where it is.

    Raises:
        CallError: as ``context.detach``.
    """
    call_id = await context.detach(changed=changed, timeout_s=seconds + CALL_MARGIN_S)
    return {"call_id": call_id, "detached": True}
