"""Measures the delay of the event loop: how long one iteration keeps all other tasks waiting."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

import structlog

_TICK_S: Final = 0.02
"""The interval of the measurements; a shorter delay may go unnoticed."""
_LOGGED_S: Final = 0.1

_log = structlog.get_logger(__name__)


async def watch_loop_lag(observe: Callable[[float], None]) -> None:
    """Reports the delay of each tick, in seconds, as long as the daemon runs. Logs long delays that the daemon caused:
    it used the processor during that time.
    """
    while True:
        due, cpu_before = time.perf_counter() + _TICK_S, time.process_time()
        await asyncio.sleep(_TICK_S)
        lag = max(0.0, time.perf_counter() - due)
        observe(lag)
        if lag >= _LOGGED_S:
            cpu_s = time.process_time() - cpu_before
            if cpu_s >= _LOGGED_S:
                _log.warning("event loop delayed", seconds=round(lag, 3), cpu_seconds=round(cpu_s, 3))
