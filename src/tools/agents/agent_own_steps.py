"""The hidden tools behind the own steps of a custom agent's code: its work, the time, the budget."""

from typing import Final

import msgspec

from ..tool import Arguments, ToolOutput, tool
from ..tool_context import ToolContext

STEP_TIMEOUT_S: Final = 600.0
"""The timeout of a step, unless the code sets another; at most the run's remaining time."""


class BudgetLeft(msgspec.Struct, frozen=True):
    """The remaining budget of a run."""

    turns: int
    seconds: float
    tokens: int | None
    """The remaining tokens; None if neither this run nor a call around it has a limit."""
    money: dict[str, float]
    """The remaining money by currency."""


class OwnStepArguments(Arguments):
    """A step of an agent's own code."""

    agent: str
    what: str


@tool("agent_step", read_only=False, destructive=True, open_world=True, timeout_s=STEP_TIMEOUT_S)
async def agent_step(_arguments: OwnStepArguments, _context: ToolContext) -> ToolOutput:
    """Run a step of an agent's own code."""
    raise NotImplementedError  # a run replaces this function with one that has the code


@tool("agent_read_step", read_only=True, open_world=True, timeout_s=STEP_TIMEOUT_S)
async def agent_read_step(_arguments: OwnStepArguments, _context: ToolContext) -> ToolOutput:
    """Run a step of an agent's own code that changes nothing."""
    raise NotImplementedError  # a run replaces this function with one that has the code
