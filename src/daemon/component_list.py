"""The list of the daemon's components. A new component is one entry here."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final

import structlog

from ..audit import content_reducer
from ..store import Store, StoreError
from .app import Daemon
from .cluster.shared_files import shared_files
from .component import Component
from .config import settings_mapping
from .config.default_model import allowed_models, default_model, fallback_lists
from .config.provider_terms import provider_terms
from .config.settings import Settings
from .credential_host import prepare_vault
from .earlier_state import load_detached, restore_usage, resume_detached
from .memory_return import MemoryReturn
from .observability.logging_setup import log_content, set_up_logging
from .observability.loop_lag import watch_loop_lag
from .persistence.state_directory import FullDiskError
from .provider_setup import concurrency, daily_budgets

_SENDING_GRACE_S: Final = 2.0
"""The time at shutdown for sending the last audit rows to Supabase, and the last spans. The remaining rows are sent
after the next start; the remaining spans are lost."""
_SDK_GRACE_S: Final = 2.0
"""The time at shutdown for SDK calls whose callers are already answered."""
_ADDRESS_RETRY_S: Final = 1.0
"""Time between two attempts to write the address file to a full disk."""
_LEASE_CHECKS: Final = 8
"""How many times per lease a node checks whether the lease has ended."""
_ADOPTION_INTERVAL_S: Final = 60.0
"""How often a node looks for detached calls to adopt, if no death is reported."""
_GARBAGE_THRESHOLDS: Final = (10_000, 20, 20)
"""The thresholds of garbage collection: new objects, or collections of the younger generation."""

_log = structlog.get_logger("toold.daemon")


class ComponentList:
    """Creates the list of a daemon's components."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    def components(self) -> list[Component]:
        """The components in the order in which they start and apply settings. They close in reverse order."""
        daemon, a2a = self._daemon, self._daemon.http_host.a2a
        apply_to_logging = _if_changed(
            daemon.settings,
            lambda settings: (settings.log_format, settings.log_level),
            lambda settings: set_up_logging(settings.log_format, settings.log_level),
        )
        apply_to_catalog = _if_changed(
            daemon.settings, settings_mapping.catalog_settings, lambda _: daemon.publisher.request()
        )
        address = _Publishing(daemon)
        usage = _Restoring(daemon.store, partial(restore_usage, daemon))
        detached = _Restoring(daemon.store, partial(load_detached, daemon))
        served = _Restoring(daemon.store, daemon.registry_host.load)
        return [
            Component("logging", apply=apply_to_logging),
            Component("store", apply=self._apply_to_store),
            Component("results", run=daemon.results.run, apply=self._apply_to_results, close=self._close_results),
            Component("sandbox", apply=self._apply_to_sandbox, close=daemon.sandbox.close),
            Component("audit sender", run=self._start_sender, close=self._close_sender),
            Component("traces", start=self._start_traces, close=self._close_traces),
            Component("hooks", start=self._start_hooks, apply=self._apply_to_hooks, close=daemon.call_hooks.close),
            Component("dispatch", run=daemon.router.heartbeats.run, apply=self._apply_to_dispatch),
            Component("call cache", run=daemon.router.cache.sweep, apply=lambda _: daemon.router.cache.clear()),
            Component("provider limiters", apply=self._apply_to_limiters, close=self._close_limiters),
            Component("sessions", run=daemon.router.sessions.unload_idle),
            Component("memory", run=MemoryReturn(lambda: daemon.router.held_bytes).watch),
            Component("files", apply=self._apply_to_files),
            Component("conversations", apply=self._apply_to_conversations),
            Component("default model", apply=self._apply_to_model),
            Component("prompts", apply=self._apply_to_prompts, close=daemon.prompts.close),
            Component("budget", start=usage.begin, run=usage.finish, apply=self._apply_to_budget),
            Component("served registry", start=served.begin, run=served.finish),
            Component("agents at LiteLLM", run=daemon.registry_host.registration.run),
            Component("detached calls", start=detached.begin, run=partial(self._resume_detached, detached)),
            Component(
                "credentials",
                run=partial(prepare_vault, daemon.store, *{daemon.credentials, daemon.sign_ins.vault}),
                close=daemon.credentials.close,
            ),
            Component("paused calls", run=self._expire_requests),
            Component("push notifications", run=self._send_notifications, close=a2a.close_notifications),
            Component("http", start=daemon.http.start, close=daemon.http.close),
            Component("websocket", start=daemon.websocket.start, close=daemon.websocket.close),
            *self._cluster_components(),
            Component("tokens", run=partial(daemon.tokens.watch, daemon.close_unauthorized)),
            Component(
                "model availability", run=partial(daemon.view.availability.keep, at_once=daemon.settings.warm_up)
            ),
            # Importing the SDKs takes seconds; an earlier call waits for its SDK.
            Component("warm up and loop lag", run=self._warm_up_and_watch),
            Component("configuration", run=daemon.config_watcher.run),
            Component("tool catalog", apply=apply_to_catalog, close=daemon.publisher.close),
            Component("deployments", close=daemon.deployments.close),
            Component(
                "agent registry",
                run=daemon.agent_registry.run,
                apply=self._apply_to_registry,
                close=daemon.agent_registry.close,
            ),
            Component("knowledge", run=daemon.hosts.knowledge.run, apply=daemon.hosts.apply, close=daemon.hosts.close),
            Component("embeddings of documents", run=daemon.hosts.knowledge.embed),
            Component("sources", start=self._start_sources, apply=self._apply_to_sources, close=daemon.sources.close),
            Component("address file", start=address.begin, run=address.finish, close=self._remove_address),
        ]

    def _cluster_components(self) -> list[Component]:
        """The components of a node. They start after the ports, because the node announces its ports to the other
        nodes."""
        cluster = self._daemon.cluster
        if cluster is None:
            return []
        router, mcp = self._daemon.router, self._daemon.http_host.mcp
        router.lookup.peers = cluster.peers
        self._daemon.conversations.check_node = cluster.peers.check
        router.node_tokens.join(cluster.name, lambda: cluster.membership.peers)
        self._daemon.sources.on_quarantine = cluster.pins.notify
        mcp.on_unknown_request, cluster.service.cancel_request = cluster.peers.cancel_request, mcp.cancel_here
        return [
            Component("membership", start=self._announce, run=cluster.membership.run, close=self._close_peers),
            Component("lease", run=self._watch_lease),
            Component("limits of all nodes", run=cluster.admissions.run),
            Component("running calls of all nodes", run=cluster.shares.run),
            Component("pins of all nodes", run=cluster.pins.run),
            Component("adoption", run=self._adopt_detached),
        ]

    async def _announce(self) -> None:
        daemon = self._daemon
        if daemon.cluster is not None:
            files = shared_files(daemon.settings)
            ports = {"port": daemon.websocket.own_port, "http_port": daemon.http.own_port}
            await daemon.cluster.announce(daemon.settings, files, **ports)
            await daemon.cluster.membership.refresh()

    async def _close_peers(self) -> None:
        if self._daemon.cluster is not None:
            await self._daemon.cluster.peers.close()
        if self._daemon.http_host.relay is not None:
            await self._daemon.http_host.relay.close()

    async def _watch_lease(self) -> None:
        """Closes the connections of resumable sessions if this node loses its lease; they resume at another one."""
        cluster = self._daemon.cluster
        while cluster is not None:
            if not cluster.membership.may_answer:
                self._daemon.websocket.close_lapsed()
            await asyncio.sleep(cluster.store.lease.lease_s / _LEASE_CHECKS)

    async def _adopt_detached(self) -> None:
        """Takes over the detached calls of nodes that died."""
        cluster = self._daemon.cluster
        while cluster is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_ADOPTION_INTERVAL_S):
                    await cluster.membership.node_died.wait()
            cluster.membership.node_died.clear()
            try:
                await load_detached(self._daemon)
                await resume_detached(self._daemon)
            except StoreError as error:
                _log.warning("detached calls cannot be adopted now", reason=error.reason)

    def _apply_to_store(self, settings: Settings) -> None:
        self._daemon.recorder.content = settings.audit_content
        log_content(settings.audit_content)
        self._daemon.store.apply(
            content_reducer(settings.audit_content),
            settings_mapping.retention(settings),
            copy_conversations=settings_mapping.copies_conversations(settings),
        )

    def _apply_to_results(self, settings: Settings) -> None:
        self._daemon.results.apply(
            ttl_s=settings.retained_results_keep_s, max_bytes=settings.retained_results_keep_bytes
        )

    async def _close_results(self) -> None:
        self._daemon.results.close()

    def _apply_to_sandbox(self, settings: Settings) -> None:
        self._daemon.sandbox.limits = settings_mapping.sandbox_limits(settings)

    async def _start_sender(self) -> None:
        if self._daemon.sender:
            self._daemon.sender.start()

    async def _close_sender(self) -> None:
        if self._daemon.sender:
            await self._daemon.sender.close(_SENDING_GRACE_S)

    async def _start_traces(self) -> None:
        if self._daemon.traces:
            self._daemon.traces.sender.start()

    async def _close_traces(self) -> None:
        if self._daemon.traces:
            await self._daemon.traces.sender.close(_SENDING_GRACE_S)

    async def _start_hooks(self) -> None:
        self._apply_to_hooks(self._daemon.settings)

    def _apply_to_hooks(self, settings: Settings) -> None:
        self._daemon.call_hooks.apply(settings.hooks)

    def _apply_to_dispatch(self, settings: Settings) -> None:
        self._daemon.router.limits = settings_mapping.dispatch_limits(settings)
        self._daemon.router.permits.resize(settings.max_running)

    def _apply_to_limiters(self, settings: Settings) -> None:
        for name, limiter in self._daemon.limiters.items():
            limiter.permits.resize(concurrency(settings)[name])

    async def _close_limiters(self) -> None:
        for limiter in reversed(self._daemon.limiters.values()):
            await limiter.close(_SDK_GRACE_S)

    def _apply_to_files(self, settings: Settings) -> None:
        self._daemon.files.set_roots(
            settings.workspace,
            denied=settings_mapping.denied_paths(settings),
            secrets=settings.readable_secrets,
            client_workspaces=settings_mapping.client_workspaces(settings),
        )

    def _apply_to_conversations(self, settings: Settings) -> None:
        self._daemon.conversations.max_tokens = settings.conversation_tokens

    def _apply_to_model(self, settings: Settings) -> None:
        view = self._daemon.view
        for name, terms in provider_terms(settings.providers, settings.models).items():
            self._daemon.catalog.open_providers[name].apply(terms)
        view.catalog, view.locale = allowed_models(settings, self._daemon.catalog), settings.locale
        view.fallbacks = fallback_lists(settings)
        view.chosen_model = default_model(settings, view.catalog, self._daemon.vendors.providers)

    def _apply_to_prompts(self, settings: Settings) -> None:
        self._daemon.prompts.apply(settings.prompts)

    def _apply_to_budget(self, settings: Settings) -> None:
        self._daemon.view.budget.amounts = settings.daily_budget
        self._daemon.provider_budgets.apply(daily_budgets(settings))
        self._daemon.principal_limits.quotas.apply(settings_mapping.call_quotas(settings))

    async def _warm_up_and_watch(self) -> None:
        # A call creates dozens of objects that need no collection; with the default threshold (700), a collection would
        # run every few calls. The objects of modules are permanent; once frozen, they do not slow down collections.
        # Objects of the SDKs are frozen after the warm-up, all others before the sources are read.
        gc.set_threshold(*_GARBAGE_THRESHOLDS)
        gc.freeze()
        if self._daemon.settings.warm_up:
            await asyncio.gather(
                self._daemon.http_host.mcp.warm_up(),
                *(provider.warm_up() for provider in self._daemon.vendors.providers.values()),
            )
            gc.freeze()
        # Not earlier: importing the SDKs delays the event loop.
        await watch_loop_lag(self._daemon.metrics.loop_lagged)

    async def _start_sources(self) -> None:
        self._daemon.sources.apply(self._daemon.settings.sources)

    def _apply_to_sources(self, settings: Settings) -> None:
        self._daemon.sources.apply(settings.sources)
        self._daemon.sources.refresh()

    def _apply_to_registry(self, settings: Settings) -> None:
        self._daemon.agent_registry.apply(settings_mapping.agent_registry(settings))
        self._daemon.agent_registry.refresh()
        self._daemon.registry_host.apply(settings)
        self._daemon.agents.update()

    async def _resume_detached(self, loading: "_Restoring") -> None:
        await loading.finish()
        await resume_detached(self._daemon)

    async def _expire_requests(self) -> None:
        await self._daemon.store.opened()
        await self._daemon.router.paused.expire()

    async def _send_notifications(self) -> None:
        await self._daemon.store.opened()
        await self._daemon.http_host.a2a.send_notifications()

    async def _remove_address(self) -> None:
        self._daemon.state.remove_address()


class _Restoring:
    """Restores state from the database: at the start, or, if the disk is too full to open it, once it is open."""

    def __init__(self, store: Store, restore: Callable[[], Awaitable[None]]) -> None:
        self._store = store
        self._restore = restore
        self._restored = False

    async def begin(self) -> None:
        """At the start."""
        if self._store.is_open:
            await self._restore()
            self._restored = True

    async def finish(self) -> None:
        """In the background."""
        if not self._restored:
            await self._store.opened()
            await self._restore()


class _Publishing:
    """Writes the address file: at the start, or, if the disk is too full, as soon as it has space."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._written = False

    async def begin(self) -> None:
        """At the start."""
        try:
            self._write()
        except FullDiskError as error:
            _log.error("clients on this machine need --port until the disk has space", reason=str(error))

    async def finish(self) -> None:
        """In the background."""
        while not self._written:
            await asyncio.sleep(_ADDRESS_RETRY_S)
            with suppress(FullDiskError):
                self._write()

    def _write(self) -> None:
        self._daemon.state.write_address(self._daemon.address())
        self._written = True


def _if_changed(
    settings: Settings, part: Callable[[Settings], object], apply: Callable[[Settings], None]
) -> Callable[[Settings], None]:
    """An ``apply`` function that does nothing if this part of the settings has not changed."""
    current = part(settings)

    def apply_if_changed(new: Settings) -> None:
        nonlocal current
        if part(new) != current:
            current = part(new)
            apply(new)

    return apply_if_changed
