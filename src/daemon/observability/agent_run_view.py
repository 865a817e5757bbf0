"""The recorded runs of agents, for their principals and for operators. Implements ``tools.AgentRecords``."""

from collections.abc import Callable, Collection
from typing import Final

from ...protocol.agent_record import AgentRecord, AgentRunState, AgentRunSummary
from ...protocol.error_codes import NotFoundError, ServiceUnavailableError
from ...protocol.tool_call import Principal
from ...store import Store, StoreError
from ..config.settings import Settings

_SHOWN_ID_CHARS: Final = 120


class AgentRunView:
    """Implements ``tools.AgentRecords`` with the store."""

    def __init__(self, store: Store, settings: Callable[[], Settings]) -> None:
        self._store = store
        self._settings = settings

    async def runs(
        self, principal: Principal, *, agent: str | None, states: Collection[AgentRunState], limit: int
    ) -> list[AgentRunSummary]:
        name = None if principal.operator else principal.name
        try:
            return await self._store.journal.agent_runs(name, agent=agent, states=states, limit=limit)
        except StoreError as error:
            raise _unreadable(error) from error

    async def record(self, principal: Principal, run_id: str, *, all_results: bool = False) -> AgentRecord:
        name = None if principal.operator else principal.name
        try:
            record = await self._store.journal.agent_record(run_id, name, all_results=all_results)
        except StoreError as error:
            raise _unreadable(error) from error
        if record is None:
            shown = run_id[:_SHOWN_ID_CHARS]
            raise NotFoundError(
                f"There is no run {shown!r} of an agent, or it is not yours, or it is older than seven days; "
                "agent_runs without run_id lists the runs."
            )
        return record

    def hidden_because(self, principal: Principal, run: AgentRunSummary) -> str | None:
        """Why the content of a run is hidden: operators see other principals' content only if the audit stores it,
        too."""
        content = self._settings().audit_content
        if run.principal == principal.name or content == "full":
            return None
        return (
            f"The run belongs to {run.principal}. Its texts and arguments are shown to others only with "
            f'audit_content = "full"; it is "{content}".'
        )

    @property
    def kept(self) -> str:
        hours = self._settings().result_ttl_s / 3600
        return (
            f"Results are kept for {hours:g} h after the run has ended (result_ttl_s), or until the principal's newer "
            "results need their space."
        )


def _unreadable(error: StoreError) -> ServiceUnavailableError:
    return ServiceUnavailableError.content_free(
        f"The runs cannot be read at present ({error.reason}); try again later."
    )
