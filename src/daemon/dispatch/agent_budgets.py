"""The daily budgets of agents, which all principals share."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from .budget import Budget
from .recording_ports import JournalPort


class AgentBudgets:
    """The budgets by agent. The first run of an agent with a budget adds it. Only for the event loop's thread."""

    def __init__(self, journal: JournalPort) -> None:
        self._journal = journal
        self._budgets: dict[str, Budget] = {}
        self._restoring = asyncio.Lock()

    def states(self) -> dict[str, dict[str, Any]]:
        """The budgets of agents that ran since the start, by agent, as ``Budget.state``."""
        return {name: budget.state() for name, budget in self._budgets.items() if budget.amounts}

    @property
    def all(self) -> Iterable[Budget]:
        """The budgets of agents that ran since the start."""
        return self._budgets.values()

    async def of(self, agent: str, amounts: Mapping[str, float]) -> Budget:
        """Sets the amounts of the agent's budget, and returns the budget. It includes the amount spent earlier today.

        Raises:
            ServiceUnavailableError: the database cannot be read.
        """
        if agent not in self._budgets:
            async with self._restoring:
                if agent not in self._budgets:
                    budget = Budget({}, owner=f" of the agent {agent}", strict=True, scope=f"agent:{agent}")
                    day = str(budget.state()["day"])
                    budget.restore(day, await self._journal.spent_by_tool(agent, day))
                    self._budgets[agent] = budget
        budget = self._budgets[agent]
        budget.amounts = amounts
        return budget
