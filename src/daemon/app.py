"""The daemon: creates its components and connects them."""

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import structlog

from ..agent_registry import KEPT_AGENTS_DIRECTORY, RegistryWatch
from ..call_hooks import CallHooks
from ..fairness import Permits
from ..prompts import KEPT_PROMPTS_DIRECTORY, PromptChain
from ..protocol.daemon_address import CONFIGURATION_REFUSED, DaemonAddress
from ..protocol.frames import ServerInfo
from ..providers import ModelCatalog
from ..sandbox import Sandbox
from ..serving import ConnectionLimits, ConnectionSlots, HttpPeer, HttpServer
from ..sources import SourceManager
from ..store import Store
from ..tools import INVOKE_TOOL, Tool, ToolCatalog, ToolRegistry, ToolsetView, agent_files, instructions, mask_of
from ..version import __version__
from .access import Authenticator, TokenBook, TokenFile
from .agent_host import AgentHost
from .catalog_publisher import CatalogPublisher
from .cluster.cluster_node import open_cluster
from .component import Component
from .config import settings_mapping
from .config.config_watcher import ConfigWatcher
from .config.default_model import allowed_models, default_model, fallback_lists
from .config.reloadable_settings import SettingsChanges, compare
from .config.setting_sources import SettingsError
from .config.settings import Settings
from .deploy_host import DeployHost
from .dispatch import PrincipalLimit, PrincipalLimits, ProviderBudgets, ProviderLimiter, RateLimits, Router, SourceRate
from .dispatch.budget import Budget
from .http_host import HttpHost, HttpParts
from .observability.agent_run_view import AgentRunView
from .observability.call_recorder import CallRecorder
from .observability.daemon_view import LiveDaemonView
from .observability.logging_setup import hide, log_content
from .observability.metrics import MetricGauges, Metrics
from .observability.model_availability import ModelAvailability
from .persistence.conversation_manager import ConversationManager
from .persistence.state_directory import StateDirectory
from .persistence.store_journal import StoreJournal
from .persistence.store_pauses import StorePauses
from .persistence.vendor_file_owners import VendorFileOwners
from .provider_setup import ConfiguredProviders, daily_budgets
from .registry_host import RegistryHost
from .resource_host import ResourceHost
from .settings_content import SettingsContent
from .sign_in_host import open_credentials
from .spans.trace_setup import open_traces
from .store_opening import open_pins, open_retained_results
from .tool_hosts import ToolHosts
from .transports.websocket_server import WebSocketServer
from .workers.worker_slot import WorkerSlot

_log = structlog.get_logger("toold.daemon")


class Daemon:
    """All components of one daemon."""

    on_reload: Callable[[], None] = staticmethod(lambda: None)
    """Called after an operator has reloaded the settings through this process."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        vendors: ConfiguredProviders,
        registry: ToolRegistry,
        catalog: ModelCatalog,
        state: StateDirectory,
        connections: ConnectionLimits,
        epoch: str,
        node_name: str,
        worker: WorkerSlot | None = None,
    ) -> None:
        """``epoch`` identifies the process, ``node_name`` its node; ``worker`` is set if it shares the ports."""
        self.settings, self.worker = settings, worker
        self.catalog = catalog
        """All models; ``view.catalog`` has the models that the operator allows."""
        self.state, self.store, self.vendors = state, store, vendors
        self.sender = settings_mapping.sender(settings, store)
        self.files = settings_mapping.workspace_access(settings)
        self.results = open_retained_results(settings, state, node_name)
        self.sandbox = Sandbox(settings_mapping.sandbox_limits(settings), programs=settings.code_programs)
        self.conversations = ConversationManager(store, catalog, max_tokens=settings.conversation_tokens)
        self.config_watcher = ConfigWatcher(self.watched_files, self.reload)
        self._installed_tools = registry
        binder = settings_mapping.tool_binder(settings, registry)
        hide(mask_of(binder.values))
        self.publisher = CatalogPublisher(
            binder,
            registry=lambda: self._installed_tools.with_more(
                [*self._made_tools(), *self.sources.tools], self.sources.instructions
            ),
            make_catalog=lambda registry: settings_mapping.tool_catalog(self.settings, registry),
            current=lambda: self.router.catalog,
            replace=self.replace_catalog,
        )
        self.registry_host = RegistryHost(store, lambda: self.settings, self._host_agents, self.publisher.request)
        self.prompts = PromptChain(
            settings.prompts,
            state.path / KEPT_PROMPTS_DIRECTORY,
            own=self.registry_host.prompt,
            own_listing=self.registry_host.prompts,
        )
        self.hosts, self.deployments, self.agent_registry, self.agents = self._open_hosts(settings)
        self._content = SettingsContent(self.publisher, self.agents, registry, settings_mapping.certificate(settings))
        self.credentials, self.sign_ins = open_credentials(store, state.path, lambda: self)
        self.resources = ResourceHost(self.results, self.conversations, self)
        self.sources: SourceManager = SourceManager(
            self.sign_ins.opener(open_pins(store, state.path), self._taken, self.resources), self.publisher.request
        )
        self.limiters = {
            name: ProviderLimiter(provider, vendors.limits[name], on_error=self._provider_failed)
            for name, provider in vendors.providers.items()
        }
        permits = Permits("running", settings.max_running)
        self.traces = open_traces(settings.otel, epoch)
        self.metrics = Metrics(is_tool=lambda name: name in self.registry, gauges=self._gauges(permits))
        self.recorder = CallRecorder(
            store.audit, self.metrics, settings.audit_content, self.traces.recorder if self.traces else None
        )
        log_content(settings.audit_content)
        allowed = allowed_models(settings, catalog)
        self.call_hooks = CallHooks()
        self.provider_budgets = ProviderBudgets()
        self.provider_budgets.apply(daily_budgets(settings))
        self.cluster = open_cluster(store.cluster, settings, node_name, lambda: self)
        self.view = LiveDaemonView(
            catalog=allowed,
            locale=settings.locale,
            fallbacks=fallback_lists(settings),
            started_at=time.time(),
            started_monotonic=time.monotonic(),
            store=store,
            sender=self.sender,
            vendors=vendors,
            limiters=self.limiters,
            budget=Budget(settings.daily_budget),
            provider_budgets=self.provider_budgets,
            availability=ModelAvailability(self.limiters, catalog.open_providers),
            router=lambda: self.router,
            connections=lambda: self.websocket.connections,
            chosen_model=default_model(settings, allowed, vendors.providers),
            sources=self.sources,
            results=self.results,
            agent_registry=self.agents.registries,
            cluster=self.cluster,
            hooks=self.call_hooks,
        )
        shared_limits = None if store.cluster is None else store.cluster.limits
        self.principal_limits = PrincipalLimits(
            self.view.budget,
            self.provider_budgets,
            settings_mapping.call_quotas(settings),
            shared=shared_limits,
            shares=None if self.cluster is None else self.cluster.shares,
        )
        journal = StoreJournal(store, self.recorder, shared=store.cluster is not None)
        self.router: Router = Router(
            catalog=self.publisher.first(),
            limiters=self.limiters,
            unconfigured=vendors.absent,
            permits=permits,
            limits=settings_mapping.dispatch_limits(settings),
            daemon=self.view,
            files=self.files,
            conversations=self.conversations,
            principal_limits=self.principal_limits,
            results=self.results,
            rate_limits=RateLimits(self._rate_of, shared_limits),
            sandbox=self.sandbox,
            file_owners=VendorFileOwners(store),
            recorder=self.recorder,
            journal=journal,
            pauses=StorePauses(store, journal),
            epoch=epoch,
            credentials=self.credentials,
            hooks=self.call_hooks,
            traces=self.traces.recorder if self.traces else None,
            admissions=None if self.cluster is None else self.cluster.admissions,
        )
        self.router.on_listing = self.sources.look_again
        resource = settings_mapping.resource(settings)
        self._has_oauth, self._has_auth = resource is not None, settings.auth
        own = (settings.token or state.load_or_create_token()) if settings.auth else None
        self.tokens = TokenFile(state.path, self._tokens_changed)
        self._authenticator = Authenticator(
            own, lambda: self.tokens.book, settings_mapping.issuer(resource, lambda: self.router.catalog.names)
        )
        self.websocket: WebSocketServer = WebSocketServer(
            settings_mapping.websocket_options(
                settings, self._content.tls_context, connections, None if worker is None else worker.port
            ),
            self.router,
            authenticate=self._authenticator,
            server=ServerInfo("toold", __version__, epoch),
            instructions=self.instructions,
            health=self.view.health,
            resources=self.resources,
            relay=None if self.cluster is None else self.cluster.relay,
        )
        parts = HttpParts(
            settings=lambda: self.settings,
            router=self.router,
            store=store,
            state=state,
            conversations=self.conversations,
            results=self.results,
            view=self.view,
            recorder=self.recorder,
            resources=self.resources,
            sources=self.sources,
            agents=self.agents,
            deployments=self.deployments,
            credentials=self.credentials,
            sign_ins=self.sign_ins,
            registry=self.registry_host,
            authenticator=self._authenticator,
            resource=resource,
            metrics=self.metrics.render,
            instructions=self.instructions,
            reload=self._reload_everywhere,
            published=self.publisher.published,
            cluster=self.cluster,
        )
        self.http_host = HttpHost(parts, max_requests=connections.authenticated)
        self.http = HttpServer(
            self.http_host.app,
            settings.host,
            settings.http_port if worker is None else worker.http_port,
            "--http-port",
            slots=ConnectionSlots[HttpPeer](connections),
            shared=worker is not None,
        )
        self.components: Sequence[Component] = ()
        """In the order in which they start; set by ``lifecycle.running``."""

    def __repr__(self) -> str:
        return f"<Daemon {self.websocket!r} {self.router!r}>"

    # --- tools -------------------------------------------------------------------------------------------------------

    def _open_hosts(self, settings: Settings) -> tuple[ToolHosts, DeployHost, RegistryWatch, AgentHost]:
        hosts = ToolHosts(
            lambda: self.settings, self.state.path, lambda: self.view, lambda: self.router, self.publisher.request
        )
        deployments = DeployHost(
            lambda: self.settings,
            self.state,
            self.prompts,
            registered=lambda: self.registry,
            update=self._host_agents,
            http_port=lambda: self.http.port,
        )
        watch = RegistryWatch(
            settings_mapping.agent_registry(settings),
            self.state.path / KEPT_AGENTS_DIRECTORY,
            lambda: self.agents.update(),  # noqa: PLW0108 - made with the registry
        )
        host = AgentHost(
            settings_mapping.hosted_agents(settings),
            self.registry_host.together_with(watch),
            self.prompts,
            AgentRunView(self.store, lambda: self.settings),
            taken=frozenset([INVOKE_TOOL, *(tool.name for tool in self._installed_tools.tools)]),
            changed=self.publisher.request,
            deployed=deployments.deployed,
            more=deployments.tools,
        )
        return hosts, deployments, watch, host

    async def _host_agents(self) -> None:
        self.agents.update()
        await self.publisher.published()

    @property
    def registry(self) -> ToolRegistry:
        """The current tools."""
        return self.router.catalog.registry

    def _made_tools(self) -> Sequence[Tool]:
        return [*self.hosts.tools, *self.agents.tools, *self.registry_host.tools]

    def _rate_of(self, source: str) -> SourceRate | None:
        """The rate limit of a source; None for the daemon's own tools and those of installed packages."""
        settings = self.settings.sources.get(source)
        return None if settings is None else settings.rate

    def _taken(self, source: str) -> set[str]:
        """The names of all tools except this source's."""
        own = {tool.name for tool in (*self._installed_tools.tools, *self._made_tools())}
        return own | {tool.name for tool in self.sources.tools if tool.source != source}

    def instructions(self, view: ToolsetView) -> str:
        """The instructions for clients with this toolset, on every transport."""
        return instructions(view, simulated=self.view.simulated)

    def replace_catalog(self, catalog: ToolCatalog) -> None:
        """Replace all tools in one step.

        Running calls keep their tools. Clients that support it are notified if their listing changes.
        """
        self.router.catalog = catalog
        self.router.cache.keep_only(catalog.registry)
        self.websocket.tools_changed()
        self.http_host.mcp.tools_changed()

    # --- access ------------------------------------------------------------------------------------------------------

    def close_unauthorized(self) -> None:
        """Close the connections whose token is no longer valid."""
        self.websocket.close_unauthorized(self._authenticator.denial_reason)
        self.http_host.mcp.close_unauthorized(self._authenticator.denial_reason)
        self.http_host.sse.close_unauthorized(self._authenticator.denial_reason)

    def _tokens_changed(self, book: TokenBook) -> None:
        self.principal_limits.apply(
            PrincipalLimit(token.principal, token.max_running, token.daily_budget) for token in book.tokens
        )
        # If there is only one principal, a reserve for other principals would be wasted.
        several = self._has_auth and (self._has_oauth or bool(book.tokens))
        for permits in (self.router.permits, *(limiter.permits for limiter in self.limiters.values())):
            permits.keep_reserve(several)

    @property
    def connections(self) -> int:
        """The WebSocket connections with a valid hello."""
        return self.websocket.connections

    # --- operator ----------------------------------------------------------------------------------------------------

    def address(self) -> DaemonAddress:
        """The address to publish."""
        settings = self.settings
        return DaemonAddress(
            os.getpid(),
            settings.host,
            self.websocket.port,
            self.http.port,
            settings.tls_cert is not None,
            settings.auth,
            __version__,
            settings.grace_period_s,
        )

    async def reload(self) -> SettingsChanges:
        """Load the settings again and apply those that can change, all of them or none.

        Raises:
            SettingsError: the settings are invalid; nothing has changed.
        """
        async with self.config_watcher.reading():
            try:
                changes = compare(self.settings, await asyncio.to_thread(self.settings.load_again))
                content = await self._content.load(changes)
            except SettingsError as error:
                _log.error(CONFIGURATION_REFUSED, reason=str(error))
                self.view.reload_error = str(error)
                raise
            self.view.reload_error = None
            self.settings = changes.settings
            for component in self.components:
                component.apply(changes.settings)
            reloaded = (*changes.reloaded, *self._content.apply(content, changes))
            await self.publisher.published()
        _log.info("reloaded", reloaded=reloaded, needs_restart=changes.needs_restart)
        return replace(changes, reloaded=reloaded)

    async def _reload_everywhere(self) -> SettingsChanges:
        changes = await self.reload()
        self.on_reload()
        return changes

    def watched_files(self) -> Sequence[Path]:
        """The files whose changes are applied at once. Reads a directory."""
        directory = self.settings.agent_dir
        return [*self.settings.config_places, *(agent_files(directory) if directory else ())]

    def _provider_failed(self, provider: str, code: str) -> None:
        self.metrics.provider_failed(provider, code)
        _log.warning("provider failed", provider=provider, code=code)

    def _gauges(self, permits: Permits) -> MetricGauges:
        return MetricGauges(
            limits={"running": permits, **{name: limiter.permits for name, limiter in self.limiters.items()}},
            connections=lambda: self.websocket.connections,
            calls=lambda: self.router.accepted,
            rows_written=lambda: self.store.audit.rows_written,
            rows_dropped=lambda: self.store.audit.rows_dropped,
            rows_unsent=lambda: self.sender.backlog if self.sender else 0,
            spans=self.traces,
            hooks=lambda: self.call_hooks.counts,
            nodes=None if self.store.cluster is None else self._nodes_by_state,
        )

    def _nodes_by_state(self) -> Mapping[str, int]:
        return {} if self.cluster is None else self.cluster.membership.by_state
