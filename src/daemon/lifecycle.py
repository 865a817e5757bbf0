"""From a daemon's start to its end: what is opened in which order, what runs beside the calls, and the drain."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import structlog

from ..audit import content_reducer
from ..providers import ModelCatalog
from ..providers.simulator import Simulator
from ..store import Store, StoreError
from ..tools import EFFECT_LOG, load_registry, simulated_tools
from .app import Daemon
from .config import settings_mapping
from .config.config_watcher import watch_config
from .config.settings import Settings
from .observability.logging_setup import log_task_failure
from .persistence.state_directory import StateDirectory
from .provider_setup import ConfiguredProviders, open_vendors
from .transports.mcp import McpServer

_SENDING_GRACE_S: Final = 2.0
"""How long the end waits for the audit's last rows to reach Supabase; what is left goes at the next start."""
_SDK_GRACE_S: Final = 2.0
"""How long the end waits for SDK calls whose callers are answered already."""

_GARBAGE_THRESHOLDS: Final = (10_000, 20, 20)
"""Objects more, and searches of the younger generation, before a generation is searched."""

REST_S: Final = 2.5
"""Of the grace period, for what comes after the calls: answering for tools that do not let go (a second), farewells,
and leaving behind what hangs (a second, or two).
"""

_log = structlog.get_logger("toold.daemon")


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[Daemon]:
    """A daemon that listens and takes calls; on the way out it drains and ends, within the grace period and a little.

    Raises:
        SettingsError: a bound argument cannot be used.
        StateError: the state directory cannot be used, or another daemon runs in it.
        StoreError: the database cannot be opened.
        OSError: a port cannot be listened on; the message names it.
    """
    async with AsyncExitStack() as stack:
        state = stack.enter_context(StateDirectory(settings.state_dir))
        store = _open_store(settings, state)
        stack.push_async_callback(store.close)
        catalog = ModelCatalog.load()
        simulator = await stack.enter_async_context(Simulator(catalog=catalog)) if settings.simulated else None
        vendors = open_vendors(settings, simulator)
        simulated = simulated_tools(state.path / EFFECT_LOG) if settings.simulated else ()
        registry = load_registry(simulated, workflow_dir=settings.workflow_dir, pipeline_dir=settings.pipeline_dir)
        daemon = Daemon(settings, state=state, store=store, catalog=catalog, vendors=vendors, registry=registry)
        stack.callback(daemon.results.close)
        stack.push_async_callback(daemon.sandbox.close)
        if daemon.sender:
            stack.push_async_callback(daemon.sender.close, _SENDING_GRACE_S)
        for gate in daemon.gates.values():
            stack.push_async_callback(gate.close, _SDK_GRACE_S)
        await daemon.recall_today()
        await daemon.recall_detached()
        await daemon.http.start()
        stack.push_async_callback(daemon.http.close)
        await daemon.websocket.start()
        stack.push_async_callback(daemon.websocket.close)
        state.write_address(daemon.address())
        if daemon.sender:
            daemon.sender.start()
        background = [asyncio.create_task(daemon.router.send_heartbeats(), name="heartbeats")]
        background.append(asyncio.create_task(daemon.router.sessions.unload_idle(), name="sessions"))
        background.append(asyncio.create_task(daemon.results.tidy(), name="result files"))
        # The SDKs take seconds to import: in threads, now that calls are taken; the first one waits for its own.
        background.append(asyncio.create_task(_warm_up(vendors, daemon.mcp), name="warm up"))
        background.append(asyncio.create_task(daemon.tokens.watch(daemon.close_unauthorized), name="tokens"))
        background.append(asyncio.create_task(daemon.view.availability.keep(), name="availability"))
        if settings.config_place is not None:
            background.append(
                asyncio.create_task(watch_config(settings.config_place, daemon.reload), name="configuration")
            )
        stack.push_async_callback(daemon.sources.close)
        daemon.sources.apply(settings.sources)
        background.append(asyncio.create_task(daemon.go_on_detached(), name="detached calls"))
        for task in background:
            task.add_done_callback(log_task_failure)
        try:
            yield daemon
        finally:
            await _drain(daemon)
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
            state.remove_address()


def _open_store(settings: Settings, state: StateDirectory) -> Store:
    content, retention = content_reducer(settings.audit_content), settings_mapping.retention(settings)
    expects_chain = state.has_audit_key
    key = state.load_or_create_audit_key()
    try:
        return Store(
            state.database,
            content=content,
            retention=retention,
            key=key,
            expects_chain=expects_chain,
            copy_conversations=settings_mapping.copies_conversations(settings),
        )
    except StoreError:
        if not expects_chain:
            state.remove_audit_key()  # it signed nothing: the next start is a first one again
        raise


async def _warm_up(vendors: ConfiguredProviders, mcp: McpServer) -> None:
    await asyncio.gather(mcp.warm_up(), *(provider.warm_up() for provider in vendors.providers.values()))
    # What the SDKs' modules made stays for good: without it each search for cyclic garbage is short. A call makes some
    # dozens of objects that go by themselves, so by the default (700) there would be a search every few calls.
    gc.freeze()
    gc.set_threshold(*_GARBAGE_THRESHOLDS)


def time_for_calls(grace_period_s: float) -> float:
    """How long running calls have, in seconds, so that the process has ended when the grace period is over."""
    return max(grace_period_s - REST_S, grace_period_s / 2)


async def _drain(daemon: Daemon) -> None:
    left_s = time_for_calls(daemon.settings.grace_period_s)
    _log.info("going down", calls=daemon.router.accepted, left_s=left_s)
    closing = asyncio.create_task(daemon.router.close("The daemon is going down; send the call again later.", left_s))
    await daemon.websocket.announce_shutdown(left_s * 1000)
    daemon.mcp.close_streams()
    await closing
