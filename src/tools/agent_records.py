"""The interface by which tools read the recorded runs of agents. The daemon implements it with the store."""

from collections.abc import Collection
from typing import Protocol

from ..protocol.agent_record import AgentRecord, AgentRunState, AgentRunSummary
from ..protocol.tool_call import Principal


class AgentRecords(Protocol):
    """The recorded runs of agents. An operator sees the runs of all principals, others their own."""

    async def runs(
        self, principal: Principal, *, agent: str | None, states: Collection[AgentRunState], limit: int
    ) -> list[AgentRunSummary]:
        """The newest runs of one agent, or of all agents. Runs that were made by other calls are omitted.

        Raises:
            ServiceUnavailableError: the database cannot be read.
        """
        ...

    async def record(self, principal: Principal, run_id: str, *, all_results: bool = False) -> AgentRecord:
        """A run with its child calls and the results of its turns, or all results; ``run_id`` is the id of one of its
        calls.

        Raises:
            NotFoundError: there is no such run, it belongs to another principal, or it is too old.
            ServiceUnavailableError: the database cannot be read.
        """
        ...

    def hidden_because(self, principal: Principal, run: AgentRunSummary) -> str | None:
        """Why the texts and arguments of a run are not shown to a principal; None if they are."""
        ...

    @property
    def kept(self) -> str:
        """A sentence with the retention of results and the settings that determine it."""
        ...
