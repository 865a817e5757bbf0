"""Creates the server of the dashboard."""

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from ..dashboard import AssetError, Pages, load_assets
from ..sources import SourceManager
from ..tools import RetainedResults
from ..version import __version__
from .access import Authenticator
from .agent_host import AgentHost
from .cluster.cluster_node import ClusterNode
from .config.settings import Settings
from .dashboard_data.action_audit import ActionAudit
from .dashboard_data.agent_data import AgentData
from .dashboard_data.call_data import CallData
from .dashboard_data.call_results import CallResults
from .dashboard_data.cost_data import CostData
from .dashboard_data.daemon_data import DaemonData
from .dashboard_data.source_data import SourceData
from .dispatch import Router
from .observability.call_recorder import CallRecorder
from .observability.daemon_view import LiveDaemonView
from .operator_actions import OperatorActions
from .persistence.state_directory import StateDirectory
from .sign_in_host import SignInHost
from .transports.dashboard import (
    SESSIONS_FILE,
    BrowserSessions,
    DashboardPorts,
    DashboardServer,
    LiveFeed,
    Viewer,
)
from .transports.http_intake import HttpIntake

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardParts:
    """The parts of the daemon that the dashboard shows."""

    router: Router
    view: LiveDaemonView
    recorder: CallRecorder
    sources: SourceManager
    sign_ins: SignInHost
    operations: OperatorActions
    agents: AgentHost
    results: RetainedResults
    settings: Callable[[], Settings]
    cluster: ClusterNode | None = None


def open_dashboard(
    settings: Settings,
    state: StateDirectory,
    parts: DashboardParts,
    intake: HttpIntake,
    authenticator: Authenticator,
) -> "Dashboard | None":
    """The dashboard; None if it is off, or if this installation lacks its assets."""
    if not settings.ui:
        return None
    try:
        assets = load_assets()
    except AssetError as error:
        _log.warning("the dashboard is off", why=str(error))
        return None
    cluster = parts.cluster
    sessions = BrowserSessions(
        state.path / SESSIONS_FILE,
        node="" if cluster is None else cluster.name,
        cookie=None if cluster is None else cluster.cookie,
    )
    router, view, activity = parts.router, parts.view, parts.recorder.activity
    actions = ActionAudit(view.store.audit)
    calls = CallData(router, view, actions, None if parts.cluster is None else parts.cluster.peers)
    ports = DashboardPorts(
        calls=calls,
        results=CallResults(router, view.store, parts.results, parts.settings),
        router=router,
        cost=CostData(view, router),
        agents=AgentData(router, lambda: parts.agents.agents, parts.agents.records),
        daemon=DaemonData(router, view, parts.operations, parts.settings, actions, sessions.__len__),
        sources=SourceData(parts.sources, parts.operations, parts.sign_ins, router, actions),
    )

    def render(viewer: Viewer, call_id: str | None) -> dict[str, str] | None:
        if call_id is not None:
            return server.live_call(viewer, call_id)
        return server.live_now(viewer, activity.ended_calls(viewer.sees))

    def is_valid(viewer: Viewer) -> bool:
        return server.viewer_is_valid(viewer)

    feed = LiveFeed(activity, render, is_valid, lambda viewer: calls.recent(viewer.sees))
    server = DashboardServer(
        Pages(assets, version=__version__),
        assets,
        ports,
        feed,
        sessions,
        intake,
        authenticate=authenticator,
        by_hash=authenticator.by_hash,
        origins=settings.allowed_origins,
        has_auth=settings.auth,
    )
    return Dashboard(server, feed, sessions, authenticator)


class Dashboard:
    """The parts of the dashboard that the daemon uses."""

    def __init__(
        self, server: DashboardServer, feed: LiveFeed, sessions: BrowserSessions, authenticator: Authenticator
    ) -> None:
        self.server = server
        self._feed = feed
        self._sessions = sessions
        self._authenticator = authenticator

    def sign_in_link(self) -> str:
        """The path of a link that signs one browser in with the daemon's token."""
        return f"/ui/open?code={self._sessions.create_link(self._authenticator.own_hash)}"

    def close_streams(self) -> None:
        """End the live pages, which would otherwise delay the shutdown."""
        self._feed.close()
