"""Agents of pydantic-ai, as an installed package has them. The tests install it as ``acme_pydantic``."""

import asyncio
from typing import Any

from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, RunContext
from toold.tools import AgentContext
from toold.tools.agents.pydantic_agent import run_agent

worked: list[str] = []
"""What the agents' own tools did; a resumed run does not do it again."""


class City(BaseModel):
    """A structured answer."""

    name: str
    people: int


helper: Agent[AgentContext, str] = Agent(deps_type=AgentContext, instructions="Be brief.")
geographer: Agent[None, City] = Agent(output_type=City, retries=2)
careful: Agent[None, str] = Agent(instructions="Ask before you write.")
needy: Agent[int, str] = Agent(deps_type=int)


@helper.tool  # type: ignore[untyped-decorator] # pydantic-ai is not installed where mypy runs
async def own_tool(run: RunContext[AgentContext], number: int) -> dict[str, Any]:
    """A tool of the agent itself."""
    if number < 0:
        raise ModelRetry("the number must not be negative")
    worked.append(f"own {number}")
    return {"doubled": number * 2, "run": run.deps.run_id}


@careful.tool_plain  # type: ignore[untyped-decorator] # as above
def count(word: str) -> int:
    """A tool that is not async."""
    worked.append(f"count {word}")
    return len(word)


async def with_dependencies(context: AgentContext) -> str:
    """Code that runs two agents at the same time, one of them with dependencies."""
    first, second = await asyncio.gather(
        run_agent(needy, context.branch("needy"), deps=7, role="main"),
        run_agent(careful, context.branch("careful"), "Say hello."),
    )
    return f"{first} | {second}"
