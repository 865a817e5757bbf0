"""The running daemon: its parts, how they are joined, and in which order they come and go."""

import asyncio
import gc
import os
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any, Final

import structlog

from ..audit import content_kept
from ..protocol.errors import ServiceUnavailableError
from ..protocol.frames import ServerInfo
from ..protocol.rendezvous import Address, is_loopback
from ..providers import Catalogue
from ..providers.simulator import Simulator
from ..serving import HttpServer
from ..store import Store, StoreError
from ..tools import EFFECT_LOG, FileAccess, Registry, load_registry, simulated_tools
from ..version import __version__
from . import parts, status
from .auth import token_check
from .conversations import Conversations
from .dispatch import Permits, ProviderGate, Router
from .journal import StoreJournal
from .metrics import Gauges, Metrics
from .observe import set_up_logging, tell_of_failure
from .operations import Operations
from .recorder import CallRecorder
from .reload import CERTIFICATE, Changes, compare
from .setting_sources import SettingsError
from .settings import Settings
from .state import StateFolder
from .transports.http import side_app
from .transports.operator import operator_app
from .transports.websocket import WebSocketServer
from .vendors import VENDORS, Vendors, concurrency, open_vendors

_SENDING_GRACE_S: Final = 2.0
"""How long the end waits for the audit's last rows to reach Supabase; what is left goes at the next start."""
_SDK_GRACE_S: Final = 2.0
"""How long the end waits for SDK calls whose callers are answered already."""

_GARBAGE_THRESHOLDS: Final = (10_000, 20, 20)
"""Objects more, and searches of the younger generation, before a generation is searched."""

_log = structlog.get_logger("toold.daemon")


class Daemon:
    """Every part, joined. Also what tools may see of it (``tools.DaemonView``)."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        vendors: Vendors,
        registry: Registry,
        catalogue: Catalogue,
        state: StateFolder,
    ) -> None:
        self.settings = settings
        self.catalogue = catalogue
        self.registry = registry
        self.started_at = time.time()
        self._store = store
        self.sender = parts.sender(settings, store)
        self._vendors = vendors
        self._default_model = parts.default_model(settings, catalogue, vendors)
        self._files = FileAccess(settings.workspace, denied=parts.denied(settings), secrets=settings.readable_secrets)
        self._certificate = parts.certificate(settings)
        self._conversations = Conversations(store, max_tokens=settings.conversation_tokens)
        self._reloading = asyncio.Lock()
        self.gates = {
            name: ProviderGate(provider, vendors.limits[name], on_error=self._provider_failed)
            for name, provider in vendors.providers.items()
        }
        permits = Permits("running", settings.max_running)
        epoch = secrets.token_hex(6)
        names = frozenset(tool.name for tool in registry.tools)
        self.metrics = Metrics(is_tool=names.__contains__, gauges=self._gauges(permits))
        recorder = CallRecorder(store, self.metrics)
        self.router = Router(
            registry,
            self.gates,
            absent=vendors.absent,
            permits=permits,
            bounds=parts.bounds(settings),
            daemon=self,
            files=self._files,
            conversations=self._conversations,
            recorder=recorder,
            journal=StoreJournal(store, recorder),
            epoch=epoch,
        )
        authenticate = token_check((settings.token or state.load_or_create_token()) if settings.auth else None)
        self.websocket = WebSocketServer(
            parts.websocket_options(settings, self._certificate.context if self._certificate else None),
            self.router,
            authenticate=authenticate,
            server=ServerInfo("toold", __version__, epoch),
            instructions=lambda: status.instructions(registry, simulated=self.simulated),
            health=self.health,
        )
        operations = Operations(self.router, store, self.reload)
        app = side_app(
            health=self.health,
            metrics=self.metrics.render,
            operator=operator_app(operations, authenticate=authenticate, host=settings.host),
            loopback_only=is_loopback(settings.host),
        )
        self.http = HttpServer(app, settings.host, settings.http_port, "--http-port")

    def __repr__(self) -> str:
        return f"<Daemon {self.websocket!r} {self.router!r}>"

    # --- what tools may see ------------------------------------------------------------------------------------------

    def default_model(self) -> str:
        if self._default_model is None:
            raise ServiceUnavailableError(" ".join(self._vendors.absent.values()), transient=False)
        return self._default_model

    def providers(self) -> list[dict[str, Any]]:
        labels: dict[str, str] = {vendor.name: vendor.label for vendor in VENDORS}
        return status.provider_rows(labels, self._vendors.providers, self._vendors.absent)

    async def status(self, *, recent: int) -> dict[str, Any]:
        """``health``'s fields, the limits, the providers, the sums of all calls, and the last ``recent`` calls."""
        shown = {
            **self.health(),
            "pid": os.getpid(),
            "simulated": self.simulated,
            "default_model": self._default_model,
            "tools": len(self.registry.tools),
            "limits": status.limits(self.router, self.gates),
            "providers": self.providers(),
            "audit": {
                "written": self._store.written,
                "dropped": self._store.dropped,
                "problem": self._store.problem,
                "remote": {"state": "off"},
            },
        }
        try:
            shown["totals"] = status.totals_row(await self._store.totals())
            shown["recent"] = [status.call_row(row) for row in await self._store.recent(recent)]
            if self.sender:
                shown["audit"]["remote"] = await self.sender.status()
        except StoreError as error:
            shown["problems"].append(str(error))
        return shown

    # --- for the operator --------------------------------------------------------------------------------------------

    @property
    def simulated(self) -> bool:
        return any(provider.simulated for provider in self._vendors.providers.values())

    def health(self) -> dict[str, Any]:
        problems = [*self.registry.problems, *([self._store.problem] if self._store.problem else [])]
        return status.health(
            self.router,
            version=__version__,
            started_at=self.started_at,
            connections=self.websocket.connections,
            problems=problems,
        )

    def address(self) -> Address:
        settings = self.settings
        return Address(
            os.getpid(),
            settings.host,
            self.websocket.port,
            self.http.port,
            settings.tls_cert is not None,
            settings.auth,
            __version__,
            settings.grace_period_s,
        )

    async def reload(self) -> Changes:
        """Read the settings again and go by what can change now, all of it or nothing.

        Raises:
            SettingsError: they cannot be used; everything is as it was.
        """
        async with self._reloading:
            try:
                changes = compare(self.settings, await asyncio.to_thread(self.settings.read_again))
                renewed = self._renew_certificate(changes)
            except SettingsError as error:
                _log.error("the new configuration is refused, the old one stays", reason=str(error))
                raise
            self._go_by(changes.settings)
        reloaded = (*changes.reloaded, *([CERTIFICATE] if renewed else []))
        _log.info("reloaded", reloaded=reloaded, needs_restart=changes.needs_restart)
        return replace(changes, reloaded=reloaded)

    def _renew_certificate(self, changes: Changes) -> bool:
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
        self.router.bounds = parts.bounds(settings)
        self.router.permits.resize(settings.max_running)
        for name, gate in self.gates.items():
            gate.permits.resize(concurrency(settings)[name])
        self._files.look_below(settings.workspace, denied=parts.denied(settings), secrets=settings.readable_secrets)
        self._conversations.max_tokens = settings.conversation_tokens
        self._default_model = parts.default_model(settings, self.catalogue, self._vendors)
        self._store.go_by(content_kept(settings.audit_content), parts.retention(settings))

    def _provider_failed(self, provider: str, code: str) -> None:
        self.metrics.provider_failed(provider, code)
        _log.warning("provider failed", provider=provider, code=code)

    def _gauges(self, permits: Permits) -> Gauges:
        return Gauges(
            limits={"running": permits, **{name: gate.permits for name, gate in self.gates.items()}},
            connections=lambda: self.websocket.connections,
            rows_written=lambda: self._store.written,
            rows_dropped=lambda: self._store.dropped,
            rows_unsent=lambda: self.sender.backlog if self.sender else 0,
        )


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[Daemon]:
    """A daemon that listens and takes calls; on the way out it drains and ends, within the grace period and a little.

    Raises:
        StateError: the state folder cannot be used, or another daemon runs in it.
        StoreError: the database cannot be opened.
        OSError: a port cannot be listened on; the message names it.
    """
    async with AsyncExitStack() as stack:
        state = stack.enter_context(StateFolder(settings.state_dir))
        store = _open_store(settings, state)
        stack.push_async_callback(store.close)
        catalogue = Catalogue.load()
        simulator = await stack.enter_async_context(Simulator(catalogue=catalogue)) if settings.simulated else None
        vendors = open_vendors(settings, simulator)
        simulated = simulated_tools(state.path / EFFECT_LOG) if settings.simulated else ()
        registry = load_registry(simulated, workflow_dir=settings.workflow_dir)
        daemon = Daemon(settings, state=state, store=store, catalogue=catalogue, vendors=vendors, registry=registry)
        if daemon.sender:
            stack.push_async_callback(daemon.sender.close, _SENDING_GRACE_S)
        for gate in daemon.gates.values():
            stack.push_async_callback(gate.close, _SDK_GRACE_S)
        await daemon.http.start()
        stack.push_async_callback(daemon.http.close)
        await daemon.websocket.start()
        stack.push_async_callback(daemon.websocket.close)
        state.write_address(daemon.address())
        if daemon.sender:
            daemon.sender.start()
        background = [asyncio.create_task(daemon.router.keep_beat(), name="beat")]
        background.append(asyncio.create_task(daemon.router.sessions.keep(), name="sessions"))
        # The SDKs take seconds to import: in threads, now that calls are taken; the first one waits for its own.
        background.append(asyncio.create_task(_warm_up(vendors), name="warm up"))
        for task in background:
            task.add_done_callback(tell_of_failure)
        try:
            yield daemon
        finally:
            await _drain(daemon)
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
            state.remove_address()


def _open_store(settings: Settings, state: StateFolder) -> Store:
    content, retention = content_kept(settings.audit_content), parts.retention(settings)
    expects_chain = state.has_audit_key
    key = state.load_or_create_audit_key()
    try:
        return Store(state.database, content=content, retention=retention, key=key, expects_chain=expects_chain)
    except StoreError:
        if not expects_chain:
            state.remove_audit_key()  # it signed nothing: the next start is a first one again
        raise


async def _warm_up(vendors: Vendors) -> None:
    await asyncio.gather(*(provider.warm_up() for provider in vendors.providers.values()))
    # What the SDKs' modules made stays for good: without it each search for cyclic garbage is short. A call makes some
    # dozens of objects that go by themselves, so by the default (700) there would be a search every few calls.
    gc.freeze()
    gc.set_threshold(*_GARBAGE_THRESHOLDS)


async def _drain(daemon: Daemon) -> None:
    grace_s = daemon.settings.grace_period_s
    _log.info("going down", calls=daemon.router.accepted, grace_s=grace_s)
    closing = asyncio.create_task(daemon.router.close("The daemon is going down; send the call again later.", grace_s))
    await daemon.websocket.announce_end(grace_s * 1000)
    await closing
