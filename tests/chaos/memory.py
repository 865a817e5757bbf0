"""The daemon's memory during a fault run: sampled, compared with the limits, and returned after the run."""

import asyncio
from contextlib import suppress
from typing import Final

import psutil

from .daemon import Daemon

MIB: Final = 1024**2
_UNREAD: Final = 64 * MIB
_REQUESTS: Final = 64 * MIB
_CACHED: Final = 64 * MIB
_SPILLING: Final = 128 * MIB
"""Results that wait to be written to files (docs/limits.md); not a setting."""
SETTINGS: Final = {
    "TOOLD_MAX_UNREAD_BYTES": str(_UNREAD),
    "TOOLD_MAX_UNREAD_BYTES_PER_PRINCIPAL": str(_UNREAD * 3 // 4),
    "TOOLD_MAX_UNREAD_BYTES_PER_SESSION": str(_UNREAD // 2),
    "TOOLD_MAX_REQUEST_BYTES": str(_REQUESTS),
    "TOOLD_MAX_REQUEST_BYTES_PER_PRINCIPAL": str(_REQUESTS * 3 // 4),
    "TOOLD_MAX_REQUEST_BYTES_PER_SESSION": str(_REQUESTS // 2),
    "TOOLD_MAX_CACHED_RESULT_BYTES": str(_CACHED // 2),
    "TOOLD_MAX_CACHED_RESULT_BYTES_TOTAL": str(_CACHED),
}
"""Limits that hostile peers reach; with the defaults they would need ten times as much."""
GROWTH: Final = _UNREAD + 2 * _REQUESTS + _CACHED + _SPILLING
"""How far the limits let memory grow. Requests count twice: those in flight, and those being received."""
RETURNED: Final = 48 * MIB
"""How much more memory than before the run may stay: buffers of the database, and pages that are partly in use."""
_INTERVAL_S: Final = 0.2
_REST_S: Final = 1.0
"""A daemon that used at most ``_REST_CPU_S`` in this time is at rest."""
_REST_CPU_S: Final = 0.1
_GIVE_UP_S: Final = 60.0


class MemoryWatch:
    """Samples the resident memory of the process that runs at the moment."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self.before = 0
        """At rest, before the first call."""
        self.peak = 0
        self.after = 0
        """At rest, after the last call."""

    @property
    def breaches(self) -> list[str]:
        """What was more than allowed."""
        grown, stayed = self.peak - self.before, self.after - self.before
        return [
            *([f"grew by {grown // MIB} MiB, the limits allow {GROWTH // MIB}"] if grown > GROWTH else []),
            *([f"{stayed // MIB} MiB were not returned, {RETURNED // MIB} may stay"] if stayed > RETURNED else []),
        ]

    async def begin(self) -> None:
        """Measure the memory at rest before the run."""
        await self._rest()
        self.before = self._now()

    async def watch(self) -> None:
        """Sample until cancelled."""
        while True:
            with suppress(psutil.Error):
                self.peak = max(self.peak, self._now())
            await asyncio.sleep(_INTERVAL_S)

    async def end(self) -> None:
        """Measure the memory at rest after the run; some is returned only after a while."""
        await self._rest()
        with suppress(TimeoutError):
            async with asyncio.timeout(_GIVE_UP_S):
                while self._now() - self.before > RETURNED:
                    await asyncio.sleep(_INTERVAL_S)
        self.after = self._now()

    def _now(self) -> int:
        return int(psutil.Process(self._daemon.pid).memory_info().rss)

    async def _rest(self) -> None:
        process = psutil.Process(self._daemon.pid)
        with suppress(TimeoutError):
            async with asyncio.timeout(_GIVE_UP_S):
                used = -1.0
                while sum(process.cpu_times()[:2]) - used > _REST_CPU_S:
                    used = sum(process.cpu_times()[:2])
                    await asyncio.sleep(_REST_S)
