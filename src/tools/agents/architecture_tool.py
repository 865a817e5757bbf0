"""The tool ``invoke_architecture``: several agents answer a query together."""

from collections.abc import Callable
from typing import Any

import msgspec
from pydantic import Field

from ...protocol.error_codes import error_from_wire
from ..orchestration import detach
from ..orchestration_context import OrchestrationContext
from ..tool import Arguments, ToolOutput, tool
from ..tool_definition import Tool
from .architecture_flow import ArchitectureFlow
from .architecture_plan import ArchitecturePlan

INVOKE_TOOL = "invoke_architecture"
MAX_ARCHITECTURE_S = 1800.0
"""The maximum timeout, as for an agent's run."""

PlanOf = Callable[[str], ArchitecturePlan]
"""Returns the plan of an architecture by its id. Raises a ``CallError`` if there is none, or it cannot run here."""


class InvokeArguments(Arguments):
    """An architecture and a query."""

    architecture: str = Field(min_length=1, max_length=200, description="The architecture's id in the registry.")
    query: str = Field(min_length=1, max_length=200_000, description="The query to its agents.")
    detach: bool = Field(
        default=False, description="Return a call_id at once, for call_status, call_result and cancel_call."
    )


class PlanArguments(Arguments):
    """The values on which the stored plan depends."""

    architecture: str


@tool("architecture_plan", read_only=True, open_world=False, orchestration=True)
async def architecture_plan(_arguments: PlanArguments, _context: OrchestrationContext) -> ToolOutput:
    """Store the plan of a run."""
    raise NotImplementedError  # a run replaces the function by one that knows the registry


def architecture_tool(plan_of: PlanOf) -> Tool:
    """Returns the tool for these architectures."""

    @tool(
        INVOKE_TOOL,
        read_only=False,
        open_world=True,
        destructive=True,
        timeout_s=MAX_ARCHITECTURE_S,
        orchestration=True,
    )
    async def invoke_architecture(arguments: InvokeArguments, context: OrchestrationContext) -> dict[str, Any]:
        """Ask several agents of the registry together, in the pattern of an architecture: sequential, parallel, loop,
        coordinator, hub-spoke or hierarchical. `results` has the outcome of each agent; `answer` is the answer of the
        architecture.
        """
        plan = plan_of(arguments.architecture) if not context.resumed else None
        if plan is not None:
            for member in plan.members:
                context.find_tool(member.tool)
        if arguments.detach and not context.detached and plan is not None:
            return await detach(context, plan.timeout_s, {"detach": False})
        stored = await _stored_plan(arguments.architecture, plan_of, context)
        return await ArchitectureFlow(stored, context).run(arguments.query)

    return invoke_architecture


async def _stored_plan(architecture: str, plan_of: PlanOf, context: OrchestrationContext) -> ArchitecturePlan:
    """The plan. A resumed run reads it from the journal, so that it continues with the same architecture."""

    async def take(_arguments: PlanArguments, _context: OrchestrationContext) -> ToolOutput:
        return ToolOutput("plan", msgspec.to_builtins(plan_of(architecture)))

    result = await context.call(
        architecture_plan.with_function(take), {"architecture": architecture}, name="plan", journal=True
    )
    if result.error is not None:
        raise error_from_wire(result.error)
    return msgspec.convert(result.structured, ArchitecturePlan)
