"""Heartbeats: the progress that clients of long calls get while the tools are silent."""

import asyncio
import time
from collections.abc import Callable, Sequence

import structlog

from .call_execution import CallExecution
from .dispatch_limits import DispatchLimits
from .running_call import CallPort, RunningCall

_log = structlog.get_logger(__name__)


class Heartbeats:
    """Sends heartbeats for the calls that run."""

    def __init__(self, execution: CallExecution, limits: Callable[[], DispatchLimits]) -> None:
        self._execution = execution
        self._limits = limits

    async def run(self) -> None:
        """Send heartbeats for long calls, and answer calls whose tools hang, as long as the daemon runs."""
        while True:
            interval = self._limits().progress_interval_s
            tick = min(1.0, interval / 4)
            await asyncio.sleep(tick)
            now = time.monotonic()
            for port, calls in self._execution.unanswered.by_port().items():
                if any(now - call.last_sent_at >= interval - tick for call in calls):
                    self.send(port, calls, now)
            self._execution.answer_stuck_calls()

    def send(self, port: CallPort, calls: Sequence[RunningCall], now: float) -> None:
        """Send a heartbeat for calls, all of which run on this port. ``now`` is a monotonic time."""
        try:
            port.heartbeat(calls, now)
        except Exception:  # noqa: BLE001 - a broken port must not stop the heartbeats of the others
            _log.exception("heartbeat failed")
        for call in calls:
            call.last_sent_at = now
