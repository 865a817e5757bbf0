"""Creates the servers of the protocols of the HTTP port, and their app."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp

from ..protocol.daemon_address import is_loopback
from ..protocol.tool_call import LOCAL
from ..sources import SourceManager
from ..store import Store
from ..tools import ToolsetView
from ..user_credentials import CredentialVault
from .a2a_host import A2AHost
from .access import Authenticator, ProtectedResource
from .agent_host import AgentHost
from .cluster.browser_node import BrowserNode
from .cluster.cluster_node import ClusterNode
from .cluster.http_relay import HttpRelay
from .cluster.peer_api import peer_app
from .config import settings_mapping
from .config.reloadable_settings import SettingsChanges
from .config.settings import Settings
from .dashboard_host import DashboardParts, open_dashboard
from .deploy_host import DeployHost
from .dispatch import Router
from .model_entries import openai_server
from .observability import status_report
from .observability.call_recorder import CallRecorder
from .observability.daemon_view import LiveDaemonView
from .operator_actions import OperatorActions
from .persistence.conversation_manager import ConversationManager
from .persistence.result_files import ResultFiles
from .persistence.state_directory import StateDirectory
from .platform_host import platform_server
from .registry_host import RegistryHost
from .resource_host import ResourceHost
from .sign_in_host import SignInHost
from .transports.http_intake import HttpIntake
from .transports.http_port import side_app
from .transports.mcp import McpServer, SseServer
from .transports.operator_api import operator_app
from .transports.rest import RestServer
from .transports.sign_in_pages import sign_in_routes


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpParts:
    """The parts of the daemon that the servers of the HTTP port use."""

    settings: Callable[[], Settings]
    """Returns the settings in effect."""
    router: Router
    store: Store
    state: StateDirectory
    conversations: ConversationManager
    results: ResultFiles
    view: LiveDaemonView
    recorder: CallRecorder
    resources: ResourceHost
    sources: SourceManager
    agents: AgentHost
    deployments: DeployHost
    credentials: CredentialVault
    sign_ins: SignInHost
    registry: RegistryHost
    authenticator: Authenticator
    resource: ProtectedResource | None
    """None if clients cannot use OAuth."""
    metrics: Callable[[], bytes]
    instructions: Callable[[ToolsetView], str]
    reload: Callable[[], Awaitable[SettingsChanges]]
    published: Callable[[], Awaitable[None]]
    """Returns once the catalog contains all changes of the sources."""
    cluster: ClusterNode | None
    """None if no other daemon uses the database."""


class HttpHost:
    """The servers of the HTTP port."""

    def __init__(self, parts: HttpParts, *, max_requests: int) -> None:
        """``max_requests`` limits the concurrent requests.

        Raises:
            SettingsError: a setting of A2A cannot be used.
        """
        self._parts = parts
        settings, resource = parts.settings(), parts.resource
        intake = HttpIntake(parts.router, max_requests=max_requests, max_body_bytes=settings.max_frame_bytes)
        self.mcp = McpServer(
            parts.router,
            intake,
            origins=settings.allowed_origins,
            authenticate=parts.authenticator,
            instructions=parts.instructions,
            metadata=lambda toolset: None if resource is None else resource.metadata_url(toolset),
            resources=parts.resources,
        )
        self.sse = SseServer(self.mcp, parts.router.node_tokens)
        self.a2a = A2AHost(
            parts.router,
            parts.store,
            parts.conversations,
            intake,
            parts.state,
            parts.results,
            agents=lambda: parts.agents.agents,
            settings=parts.settings,
            authenticate=parts.authenticator,
        )
        self._operations = OperatorActions(
            parts.router,
            parts.store,
            reload=parts.reload,
            sources=parts.sources,
            sign_ins=parts.sign_ins,
            agent_registry=parts.agents.registries,
            published=parts.published,
            settings=parts.settings,
            problems=lambda: parts.view.health(LOCAL)["problems"],
            sign_in_link=self._sign_in_link,
            peers=None if parts.cluster is None else parts.cluster.peers,
        )
        shown = DashboardParts(
            router=parts.router,
            view=parts.view,
            recorder=parts.recorder,
            sources=parts.sources,
            sign_ins=parts.sign_ins,
            operations=self._operations,
            agents=parts.agents,
            results=parts.results,
            settings=parts.settings,
            cluster=parts.cluster,
        )
        self.dashboard = open_dashboard(settings, parts.state, shown, intake, parts.authenticator)
        self.app = self._app(settings, intake)
        self.relay: HttpRelay | None = None
        """In a cluster, relays requests about sessions of other nodes."""
        if (cluster := parts.cluster) is not None:
            peers = peer_app(cluster.service, cluster.key, cluster.membership.epoch)
            browsers = BrowserNode(cluster.name, cluster.cookie)
            self.app = self.relay = HttpRelay(self.app, peers, cluster.membership, cluster.key, browsers)

    def close_streams(self) -> None:
        """Ends the open streams, which would otherwise delay the shutdown."""
        self.mcp.close_streams()
        self.sse.close()
        if self.dashboard is not None:
            self.dashboard.close_streams()
        self.a2a.tasks.close()

    def _sign_in_link(self) -> str | None:
        return None if self.dashboard is None else self.dashboard.sign_in_link()

    def _app(self, settings: Settings, intake: HttpIntake) -> ASGIApp:
        parts, router, authenticator = self._parts, self._parts.router, self._parts.authenticator
        dashboard, resource, origins = self.dashboard, parts.resource, settings.allowed_origins
        return side_app(
            health=lambda: parts.view.health(None),
            agent_health=self._agent_health,
            metrics=parts.metrics,
            metrics_of_all=None if parts.cluster is None else parts.cluster.metrics,
            mcp=self.mcp,
            sse=self.sse,
            openai=openai_server(router, intake, parts.view, origins, authenticator),
            rest=RestServer(router, intake, origins, authenticator, self.mcp.metadata),
            a2a=self.a2a.server,
            dashboard=None if dashboard is None else dashboard.server,
            platform=platform_server(
                settings, router, intake, parts.store, parts.deployments, parts.credentials, authenticator
            ),
            registry=parts.registry.server(intake, router, authenticator),
            is_registry=parts.registry.serves,
            resource=lambda path: None if resource is None else resource.metadata(path, router.catalog.names),
            sign_ins=sign_in_routes(parts.sign_ins),
            operator=operator_app(self._operations, authenticate=authenticator, host=settings.host),
            loopback_only=is_loopback(settings.host),
            allowed_origins=origins,
        )

    def _agent_health(self) -> dict[str, Any] | None:
        if not settings_mapping.runs_as_one_agent(self._parts.settings()):
            return None
        agent = self._parts.agents.only()
        return status_report.agent_health(agent.name, hosted=agent.hosted, accepting=self._parts.router.accepting)
