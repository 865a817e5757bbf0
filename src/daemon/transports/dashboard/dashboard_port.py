"""The interface through which the dashboard's transport gets its data and actions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ....protocol.agent_record import AgentRunSummary
from ....protocol.authorization import Authorization
from ....protocol.tool_call import Principal, ToolResult
from ....store import CallFilter, CallPage, CallRow, DailyUsage, Sums
from ....tools import Agent
from ...dispatch import Router


@dataclass(frozen=True, slots=True)
class Viewer:
    """The signed-in user of the dashboard."""

    access: Authorization
    secret: str
    """The CSRF token of its browser session."""
    attention: Mapping[str, int] = field(default_factory=dict, compare=False)
    """For the navigation: the number of items that wait for this person, by the page's path."""

    @property
    def principal(self) -> Principal:
        return self.access.principal

    @property
    def name(self) -> str:
        return self.principal.name

    @property
    def operator(self) -> bool:
        """Whether the viewer sees everything; other viewers see only their own calls."""
        return self.principal.operator

    @property
    def sees(self) -> str | None:
        """The principal whose calls the viewer sees; None: all."""
        return None if self.operator else self.name


@dataclass(frozen=True, slots=True)
class KeptResult:
    """The result of an ended call, or why it is not shown."""

    result: ToolResult | None = None
    missing: str = ""


class ResultsPort(Protocol):
    """The stored results of ended calls."""

    async def find(self, viewer: Viewer, row: CallRow) -> KeptResult:
        """The result of a call that the viewer sees. Never raises a ``CallError``."""

    def audit_content(self) -> str:
        """The setting ``audit_content``: how much the audit records of arguments and of the texts of errors."""


class SourcesPort(Protocol):
    """The sources of tools, for operators. Each method raises a ``CallError`` if it fails."""

    def states(self) -> list[dict[str, Any]]:
        """The fields of ``SourceState``, and ``where``, the location of each source."""

    def source(self, name: str) -> dict[str, Any] | None:
        """The same for one source, with its ``tools``, ``notes``, versions ``waiting``, log ``lines``, ``signs_in``."""

    async def approve(self, viewer: Viewer, name: str, tool: str, digest: str) -> None: ...

    async def refresh(self, viewer: Viewer, name: str) -> None: ...

    async def sign_in(self, viewer: Viewer, name: str) -> str:
        """The address of the page that begins the daemon's sign-in."""

    async def sign_out(self, viewer: Viewer, name: str) -> None: ...


class DashboardPort(Protocol):
    """Each method raises a ``CallError`` if it fails. ``sees`` is ``Viewer.sees``."""

    def now(self, sees: str | None) -> dict[str, Any]:
        """``running``: the rows of running calls, with their ``depth``; ``running_total``; ``waiting``: the number of
        waiting calls; ``limits``; ``problems``; for operators ``connections``, and the amounts ``spent`` today by
        currency. If several nodes share the database: the name of this ``node``, and the nodes that are ``unanswered``.
        """

    async def recent(self, sees: str | None) -> list[dict[str, Any]]:
        """The calls that ended last, newest first, as ``LiveActivity.ended_calls`` has them; empty if the database
        cannot be read.
        """

    def running(self, call_id: str, sees: str | None) -> list[dict[str, Any]]:
        """The row of a running call and those of its running descendants, each child below its parent; empty if it does
        not run.
        """

    async def is_paused(self, call_id: str, viewer: Viewer) -> bool:
        """Whether the call waits for decisions of a person."""

    async def search(self, wanted: CallFilter, before: int | None, limit: int) -> CallPage: ...

    async def call_tree(self, call_id: str, sees: str | None) -> list[CallRow]:
        """An ended call and its ended descendants, in the order in which they started; empty if there is none."""

    def is_agent(self, tool: str) -> bool:
        """Whether the tool is an agent, so that its calls are runs."""

    def tool_names(self, viewer: Viewer) -> list[str]:
        """The sorted names of the tools that the viewer may use; of all tools for an operator without toolsets."""

    async def tool_usage(self, sees: str | None) -> Mapping[str, Sums]:
        """The sums over all recorded calls, by tool."""

    async def cancel(self, viewer: Viewer, call_id: str) -> None: ...


class CostPort(Protocol):
    """The cost of models, and the budgets. Each method raises a ``CallError`` if it fails."""

    async def usage(self, day: str, sees: str | None) -> Sequence[DailyUsage]:
        """The sums since a day (``YYYY-MM-DD``, UTC)."""

    def budgets(self, viewer: Viewer) -> Mapping[str, Mapping[str, Any]]:
        """The budgets to which the viewer's calls are charged, by owner (``Budget.state``)."""


class AgentsPort(Protocol):
    """Hosted agents and their runs. Each method raises a ``CallError`` if it fails."""

    def agents(self, viewer: Viewer) -> Sequence[Agent]:
        """The agents that the viewer may call."""

    async def runs(self, viewer: Viewer, agent: str | None, limit: int) -> Sequence[AgentRunSummary]: ...

    async def run(self, viewer: Viewer, run_id: str) -> dict[str, Any]:
        """``summary``, ``run`` (``RecordedRun``), why its content is ``hidden`` or None, how long it is ``kept``."""

    async def waiting(self, viewer: Viewer) -> Sequence[dict[str, Any]]:
        """Paused calls with their open ``requests``; ``own``: the viewer decides; why they are ``hidden`` or None."""

    async def decide(
        self,
        viewer: Viewer,
        call_id: str,
        request_id: str,
        decision: str,
        arguments: Mapping[str, Any] | None,
        text: str | None,
    ) -> None: ...


class DaemonPort(Protocol):
    """The state of the daemon. Each method raises a ``CallError`` if it fails."""

    browsers: Callable[[], int]
    """The number of signed-in browsers."""

    def models(self) -> dict[str, Any]:
        """``providers`` with their permits, ``models``, ``default_model``."""

    def sessions(self) -> list[dict[str, Any]]:
        """The sessions in memory, those with most calls first."""

    async def health(self, viewer: Viewer) -> dict[str, Any]:
        """``report``, ``checks`` of the running daemon, ``audit``, ``disk``, ``limits``, ``versions``."""

    async def doctor(self, viewer: Viewer) -> Sequence[dict[str, Any]]:
        """The checks of ``toold doctor``, which contact vendors; takes seconds."""

    async def settings(self) -> dict[str, Any]:
        """``settings_report``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardPorts:
    """The data and actions of each group of pages."""

    calls: DashboardPort
    results: ResultsPort
    router: Router
    sources: SourcesPort
    cost: CostPort
    agents: AgentsPort
    daemon: DaemonPort
