"""Takes over the state of the previous daemon: today's usage, and the detached calls to resume."""

import asyncio
import time
from contextlib import suppress
from typing import Final

from ..protocol.error_codes import CallError
from ..store import StoreError, day_of
from .app import Daemon
from .observability.status_report import cost_of

_SOURCES_TIMEOUT_S: Final = 30.0
"""The maximum time that detached calls wait for sources to load before they resume."""


async def restore_usage(daemon: Daemon) -> None:
    """Restore today's spending in the metrics and budgets.

    Raises:
        StoreError: the database cannot be read.
    """
    today = day_of(time.time())
    sums = await daemon.store.audit.usage_since(today)
    daemon.metrics.restore(sums)
    daemon.view.budget.restore(today, cost_of(sums))
    for provider in {total.provider for total in sums}:
        spent = cost_of([total for total in sums if total.provider == provider])
        daemon.provider_budgets.restore(provider, today, spent)
    for principal in {total.principal for total in sums}:
        spent = cost_of([total for total in sums if total.principal == principal])
        daemon.principal_limits.restore(principal, today, spent)
    if daemon.principal_limits.quotas.active:
        daemon.principal_limits.quotas.restore(today, await daemon.store.audit.calls_of_day(today))


async def load_detached(daemon: Daemon) -> None:
    """Load the detached calls to resume.

    Raises:
        StoreError: the database cannot be read.
    """
    try:
        await daemon.router.load_detached()
        await daemon.http_host.a2a.tasks.load()
    except CallError as error:
        raise StoreError(error.message, error.message) from error


async def resume_detached(daemon: Daemon) -> None:
    """Resume the detached calls when the sources and the registry's agents have loaded, or after a timeout."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_SOURCES_TIMEOUT_S):
            await daemon.sources.loaded()
            await daemon.agent_registry.loaded()
            await daemon.publisher.published()
    await daemon.router.resume_detached()
