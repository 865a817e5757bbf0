"""The running daemon: its parts, how they are joined, and in which order they come and go."""

import asyncio
import os
import secrets
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

import structlog

from ..audit import content_reducer
from ..protocol.daemon_address import DaemonAddress, is_loopback
from ..protocol.error_codes import CallError
from ..protocol.frames import ServerInfo
from ..providers import ModelCatalog
from ..sandbox import Sandbox
from ..serving import HttpServer
from ..sources import PINS_DIRECTORY, SourceManager, open_source
from ..store import Store, StoreError, day_of
from ..tools import BoundValue, FileAccess, ToolCatalog, ToolRegistry, ToolsetView, instructions, mask_of, with_bound
from ..version import __version__
from .access import Authenticator, TokenBook, TokenFile
from .access.authentication import token_check
from .config import settings_mapping
from .config.setting_sources import SettingsError
from .config.settings import Settings
from .config.settings_diff import BOUND_VALUES, CERTIFICATE, SettingsChanges, compare
from .dispatch import Permits, PrincipalLimit, PrincipalLimits, ProviderLimiter, RateLimits, Router, SourceRate
from .dispatch.budget import Budget
from .observability import status_report
from .observability.call_recorder import CallRecorder
from .observability.daemon_view import LiveDaemonView
from .observability.logging_setup import hide, set_up_logging
from .observability.metrics import MetricGauges, Metrics
from .observability.model_availability import ModelAvailability
from .operator_actions import OperatorActions
from .persistence.conversation_manager import ConversationManager
from .persistence.result_files import RESULTS_DIRECTORY, open_results
from .persistence.state_directory import StateDirectory
from .persistence.store_journal import StoreJournal
from .provider_setup import ConfiguredProviders, concurrency
from .transports.http_port import side_app
from .transports.mcp import McpServer
from .transports.operator_api import operator_app
from .transports.websocket_server import WebSocketServer

_SOURCES_PATIENCE_S: Final = 30.0
"""Detached calls wait no longer for sources that load."""

_log = structlog.get_logger("toold.daemon")


class Daemon:
    """Every part, joined."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        vendors: ConfiguredProviders,
        registry: ToolRegistry,
        catalog: ModelCatalog,
        state: StateDirectory,
    ) -> None:
        self.settings = settings
        self.catalog = catalog
        self._store = store
        self.sender = settings_mapping.sender(settings, store)
        self._vendors = vendors
        self._files = FileAccess(
            settings.workspace, denied=settings_mapping.denied(settings), secrets=settings.readable_secrets
        )
        self._certificate = settings_mapping.certificate(settings)
        self.results = open_results(
            state.path / RESULTS_DIRECTORY, keep_s=settings.results_keep_s, keep_bytes=settings.results_keep_bytes
        )
        self.sandbox = Sandbox(settings_mapping.sandbox_limits(settings), programs=settings.code_programs)
        self._conversations = ConversationManager(store, catalog, max_tokens=settings.conversation_tokens)
        self._reloading = asyncio.Lock()
        self._installed = registry
        self._bound = settings_mapping.bound(settings, registry)
        hide(mask_of(self._bound))
        opening = partial(open_source, pins=state.path / PINS_DIRECTORY, taken=self._taken)
        self.sources = SourceManager(opening, self._sources_changed)
        self.gates = {
            name: ProviderLimiter(provider, vendors.limits[name], on_error=self._provider_failed)
            for name, provider in vendors.providers.items()
        }
        permits = Permits("running", settings.max_running)
        epoch = secrets.token_hex(6)
        self.metrics = Metrics(is_tool=lambda name: name in self.registry, gauges=self._gauges(permits))
        recorder = CallRecorder(store.audit, self.metrics)
        self.view = LiveDaemonView(
            catalog=catalog,
            started_at=time.time(),
            started_monotonic=time.monotonic(),
            store=store,
            sender=self.sender,
            vendors=vendors,
            gates=self.gates,
            budget=Budget(settings.daily_budget),
            availability=ModelAvailability(self.gates),
            router=lambda: self.router,
            connections=lambda: self.websocket.connections,
            chosen_model=settings_mapping.default_model(settings, catalog, vendors),
            sources=self.sources,
        )
        self._allowances = PrincipalLimits(self.view.budget)
        self.router = Router(
            catalog=settings_mapping.offer(settings, with_bound(registry, self._bound)[0]),
            limiters=self.gates,
            unconfigured=vendors.absent,
            permits=permits,
            limits=settings_mapping.bounds(settings),
            daemon=self.view,
            files=self._files,
            conversations=self._conversations,
            principal_limits=self._allowances,
            results=self.results,
            rate_limits=RateLimits(self._rate_of),
            sandbox=self.sandbox,
            recorder=recorder,
            journal=StoreJournal(store, recorder),
            epoch=epoch,
        )
        own = (settings.token or state.load_or_create_token()) if settings.auth else None
        self.tokens = TokenFile(state.path, self._tokens_changed)
        resource = settings_mapping.resource(settings)
        self._door = Authenticator(
            own, lambda: self.tokens.book, settings_mapping.issuer(resource, lambda: self.router.catalog.names)
        )
        self.websocket = WebSocketServer(
            settings_mapping.websocket_options(settings, self._certificate.context if self._certificate else None),
            self.router,
            authenticate=self._door,
            server=ServerInfo("toold", __version__, epoch),
            instructions=self.instructions,
            health=self.view.health,
        )
        self.mcp = McpServer(
            settings_mapping.mcp_options(settings),
            self.router,
            authenticate=self._door,
            instructions=self.instructions,
            metadata=lambda toolset: None if resource is None else resource.metadata_url(toolset),
        )
        operations = OperatorActions(self.router, store, self.reload, self.sources)
        app = side_app(
            health=self.view.health,
            metrics=self.metrics.render,
            mcp=self.mcp,
            resource=lambda path: None if resource is None else resource.metadata(path, self.router.catalog.names),
            operator=operator_app(operations, authenticate=token_check(own), host=settings.host),
            loopback_only=is_loopback(settings.host),
            allowed_origins=settings.allowed_origins,
        )
        self.http = HttpServer(app, settings.host, settings.http_port, "--http-port")

    def __repr__(self) -> str:
        return f"<Daemon {self.websocket!r} {self.router!r}>"

    # --- the tools ---------------------------------------------------------------------------------------------------

    @property
    def registry(self) -> ToolRegistry:
        """The tools that there are now."""
        return self.router.catalog.registry

    def publish(self, registry: ToolRegistry) -> None:
        """Let these tools take the place of all that there were, in one step.

        Calls that run keep their tools. Who is connected and understands it is told, where its own listing changes.
        """
        bound, misfits = with_bound(registry, self._bound)
        for misfit in misfits:
            _log.warning("a tool is left out", why=misfit)
        self._offer(settings_mapping.offer(self.settings, bound))

    def _rate_of(self, source: str) -> SourceRate | None:
        """How often a source may be called now; None for the daemon's own tools, and those of packages."""
        settings = self.settings.sources.get(source)
        return None if settings is None else settings.rate

    def _taken(self, source: str) -> set[str]:
        """The names of all tools but this source's."""
        own = {tool.name for tool in self._installed.tools}
        return own | {tool.name for tool in self.sources.tools if tool.source != source}

    def _sources_changed(self) -> None:
        self.publish(self._installed.with_more(self.sources.tools))

    def instructions(self, selection: ToolsetView) -> str:
        """What a client is told that has this selection, whichever transport it came by."""
        return instructions(selection, simulated=self.view.simulated)

    def _offer(self, offer: ToolCatalog) -> None:
        self.router.catalog = offer
        self.websocket.tools_changed()
        self.mcp.tools_changed()

    # --- who may come in ---------------------------------------------------------------------------------------------

    def close_unauthorized(self) -> None:
        """Close the connections of those who were let in by what is not good any more."""
        self.websocket.close_unauthorized(self._door.denial_reason)
        self.mcp.close_unauthorized(self._door.denial_reason)

    def _tokens_changed(self, book: TokenBook) -> None:
        self._allowances.apply(
            PrincipalLimit(token.principal, token.max_running, token.daily_budget) for token in book.tokens
        )

    async def recall_today(self) -> None:
        """Reckon with what was spent today before the start.

        Raises:
            StoreError: it cannot be read.
        """
        today = day_of(time.time())
        sums = await self._store.audit.spent_since(today)
        self.metrics.restore(sums)
        self.view.budget.restore(today, status_report.cost_of(sums))
        for principal in {one.principal for one in sums}:
            spent = status_report.cost_of([one for one in sums if one.principal == principal])
            self._allowances.restore(principal, today, spent)

    async def recall_detached(self) -> None:
        """Look which detached calls are to go on.

        Raises:
            StoreError: it cannot be read.
        """
        try:
            await self.router.load_detached()
        except CallError as error:
            raise StoreError(error.message, error.message) from error

    async def go_on_detached(self) -> None:
        """Let them go on, as soon as the sources have their tools, or are too late."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_SOURCES_PATIENCE_S):
                await self.sources.loaded()
        await self.router.resume_detached()

    # --- for the operator --------------------------------------------------------------------------------------------

    def address(self) -> DaemonAddress:
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
        """Read the settings again and go by what can change now, all of it or nothing.

        Raises:
            SettingsError: they cannot be used; everything is as it was.
        """
        async with self._reloading:
            try:
                changes = compare(self.settings, await asyncio.to_thread(self.settings.load_again))
                bound = await asyncio.to_thread(settings_mapping.bound, changes.settings, self._installed)
                renewed = self._renew_certificate(changes)
            except SettingsError as error:
                _log.error("the new configuration is refused; the old one stays in effect", reason=str(error))
                self.view.reload_error = str(error)
                raise
            self.view.reload_error = None
            self._go_by(changes.settings)
            rebound = self._bind(bound) and "bind" not in changes.reloaded
        beside = [name for name, changed in ((BOUND_VALUES, rebound), (CERTIFICATE, renewed)) if changed]
        reloaded = (*changes.reloaded, *beside)
        _log.info("reloaded", reloaded=reloaded, needs_restart=changes.needs_restart)
        return replace(changes, reloaded=reloaded)

    def _bind(self, bound: tuple[BoundValue, ...]) -> bool:
        """Whether they are others than before."""
        if bound == self._bound:
            return False
        self._bound = bound
        hide(mask_of(bound))
        self._sources_changed()
        return True

    def _renew_certificate(self, changes: SettingsChanges) -> bool:
        """Whether its files have another content now; files of another name wait for a restart."""
        if self._certificate is None or not {"tls_cert", "tls_key"}.isdisjoint(changes.needs_restart):
            return False
        try:
            return self._certificate.renew()
        except OSError as error:
            raise SettingsError(f"tls_cert and tls_key: must be a certificate and its key ({error})") from None

    def _go_by(self, settings: Settings) -> None:
        old, self.settings = self.settings, settings
        if (settings.log_format, settings.log_level) != (old.log_format, old.log_level):
            set_up_logging(settings.log_format, settings.log_level)
        self.router.limits = settings_mapping.bounds(settings)
        self.router.permits.resize(settings.max_running)
        for name, gate in self.gates.items():
            gate.permits.resize(concurrency(settings)[name])
        self._files.look_below(
            settings.workspace, denied=settings_mapping.denied(settings), secrets=settings.readable_secrets
        )
        self._conversations.max_tokens = settings.conversation_tokens
        self.results.go_by(keep_s=settings.results_keep_s, keep_bytes=settings.results_keep_bytes)
        self.sandbox.limits = settings_mapping.sandbox_limits(settings)
        self.view.chosen_model = settings_mapping.default_model(settings, self.catalog, self._vendors)
        self.view.budget.amounts = settings.daily_budget
        if settings_mapping.offering(settings) != settings_mapping.offering(old):
            self._offer(settings_mapping.offer(settings, self.registry))
        self.sources.apply(settings.sources)
        self.sources.refresh()
        self._store.apply(
            content_reducer(settings.audit_content),
            settings_mapping.retention(settings),
            copy_conversations=settings_mapping.copies_conversations(settings),
        )

    def _provider_failed(self, provider: str, code: str) -> None:
        self.metrics.provider_failed(provider, code)
        _log.warning("provider failed", provider=provider, code=code)

    def _gauges(self, permits: Permits) -> MetricGauges:
        return MetricGauges(
            limits={"running": permits, **{name: gate.permits for name, gate in self.gates.items()}},
            connections=lambda: self.websocket.connections,
            rows_written=lambda: self._store.audit.rows_written,
            rows_dropped=lambda: self._store.audit.rows_dropped,
            rows_unsent=lambda: self.sender.backlog if self.sender else 0,
        )
