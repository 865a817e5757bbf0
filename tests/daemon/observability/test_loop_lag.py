"""The delay of the event loop is measured and logged."""

import asyncio
import time
from typing import Any

from structlog.testing import capture_logs
from toold.daemon.observability import loop_lag
from toold.daemon.observability.loop_lag import watch_loop_lag


def work(cpu_s: float) -> None:
    end = time.process_time() + cpu_s
    while time.process_time() < end:
        pass


async def test_a_long_turn_is_measured_and_logged(monkeypatch: Any) -> None:
    """A turn without processor time, which may be another process's fault, is only measured."""
    monkeypatch.setattr(loop_lag, "_LOGGED_S", 0.3)
    measured: asyncio.Queue[float] = asyncio.Queue()

    async def longest_after(turn: Any, seconds: float) -> float:
        while not measured.empty():
            measured.get_nowait()
        turn(seconds)
        return max(await measured.get(), await measured.get())

    with capture_logs() as logs:
        watching = asyncio.create_task(watch_loop_lag(measured.put_nowait))
        await measured.get()
        assert await longest_after(work, 0.6) >= 0.5
        (event,) = [log for log in logs if log["event"] == "event loop delayed"]
        assert min(event["seconds"], event["cpu_seconds"]) >= 0.5
        assert await longest_after(time.sleep, 0.6) >= 0.5
        assert len([log for log in logs if log["event"] == "event loop delayed"]) == 1
        watching.cancel()
