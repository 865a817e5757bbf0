"""Starts the components of a daemon in order, drains calls at shutdown, and closes the components in reverse order."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Final

import structlog
from msgspec.structs import replace

from ..providers.simulator import Simulator
from ..serving import ConnectionLimits, raise_limit
from ..tools import EFFECT_LOG, Tool, clink_tools, load_registry, simulated_tools
from .app import Daemon
from .component_list import ComponentList
from .config import settings_mapping
from .config.provider_terms import known_models
from .config.settings import Settings
from .observability.logging_setup import log_task_failure
from .persistence.state_directory import FullDiskError, StateDirectory, StateError
from .provider_setup import open_vendors
from .store_opening import open_store
from .workers.worker_slot import WorkerSlot

AFTER_DRAIN_S: Final = 2.5
"""The part of the grace period after the drain: answering calls of tools that do not end (one second), closing
connections, and abandoning work that does not end (one or two seconds).
"""

_log = structlog.get_logger("toold.daemon")


def _log_fenced(reason: str) -> None:
    _log.critical("this node was declared dead", reason=reason)


@asynccontextmanager
async def running(
    settings: Settings,
    tools: Iterable[Tool] = (),
    *,
    on_fenced: Callable[[str], None] = _log_fenced,
    worker: WorkerSlot | None = None,
) -> AsyncIterator[Daemon]:
    """A daemon that listens and accepts calls, with ``tools`` in addition to the installed ones. ``on_fenced`` is
    called on the store's thread if other nodes of the cluster have declared this one dead: from then on, it must not
    answer. ``worker``: the slot that a supervisor has assigned to this process, which shares the ports with others.

    On exit it drains and closes within the grace period and a margin.

    Raises:
        SettingsError: a bound argument is invalid, or traces cannot be sent.
        StateError: the state directory is unusable, or another daemon runs in it.
        StoreError: the database cannot be opened.
        OSError: a port cannot be listened on; the message names it.
    """
    async with AsyncExitStack() as stack:
        state = stack.enter_context(StateDirectory(settings.state_dir if worker is None else worker.state_dir))
        epoch = secrets.token_hex(6)
        name = settings.machine_name if worker is None else worker.name
        store = open_store(settings, state, epoch, name, on_fenced)
        stack.push_async_callback(store.close)
        catalog = known_models(settings.providers, settings.models, settings.prefer)
        simulator = (
            await stack.enter_async_context(
                Simulator(catalog=catalog, providers=settings.providers, presets=_presets(settings))
            )
            if settings.simulated
            else None
        )
        vendors = open_vendors(settings, simulator)
        simulated = simulated_tools(state.path / EFFECT_LOG) if settings.simulated else ()
        conditional = (*simulated, *clink_tools(settings.clink))
        loaded = load_registry(conditional, workflow_dir=settings.workflow_dir, pipeline_dir=settings.pipeline_dir)
        daemon = Daemon(
            settings,
            state=state,
            store=store,
            catalog=catalog,
            vendors=vendors,
            registry=loaded.with_more(tools),
            connections=_connection_limits(settings),
            epoch=epoch,
            node_name=name,
            worker=worker,
        )
        daemon.components = ComponentList(daemon).components()
        for component in daemon.components:
            await component.start()
            stack.push_async_callback(component.close)
        background = [
            asyncio.create_task(component.run(), name=component.name)
            for component in daemon.components
            if component.run
        ]
        for task in background:
            task.add_done_callback(log_task_failure)
        try:
            yield daemon
        finally:
            await _drain(daemon)
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)


def _connection_limits(settings: Settings) -> ConnectionLimits:
    """Raises the limit of open files as needed. Returns the number of connections of each port."""
    shares = settings_mapping.descriptor_shares(settings, raise_limit(settings_mapping.open_files_needed(settings)))
    if shares.scarce:
        _log.warning(
            "the hard limit of open files is too low: fewer connections are accepted",
            open_files=shares.available,
            needed=shares.needed,
            connections=shares.connections,
            unauthenticated=shares.unauthenticated,
        )
    return settings_mapping.connection_limits(settings, shares)


def _presets(settings: Settings) -> dict[str, str]:
    return {name: table.type for name, table in settings.providers.items()}


def time_for_calls(grace_period_s: float) -> float:
    """The seconds that running calls get, so that the process exits within the grace period."""
    return max(grace_period_s - AFTER_DRAIN_S, grace_period_s / 2)


async def _drain(daemon: Daemon) -> None:
    left_s = time_for_calls(daemon.settings.grace_period_s)
    draining = asyncio.create_task(daemon.cluster.begin_drain()) if daemon.cluster is not None else None
    _log.info("stopping", calls=daemon.router.accepted, left_s=left_s)
    with suppress(StateError, FullDiskError):  # then a second `toold stop` ends the grace period
        daemon.state.write_address(replace(daemon.address(), stopping=True))
    closing = asyncio.create_task(daemon.router.close("The daemon is going down; send the call again later.", left_s))
    await daemon.websocket.announce_shutdown(left_s * 1000)
    daemon.http_host.close_streams()
    await closing
    if daemon.cluster is not None and draining is not None:
        await draining
        await daemon.cluster.leave()
        daemon.websocket.close_lapsed()
