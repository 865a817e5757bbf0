"""Stops the runs of calls that were cancelled, in separate tasks: a cancelled call has no time for requests."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import structlog

from ..protocol.error_codes import CallError
from .zenml_client import ZenmlClient

STOP_S: Final = 60.0
"""How long to search the run of a cancelled call and to try to stop it."""
CLOSING_S: Final = 3.0
"""How long a shutdown waits for stops in progress."""
FINISHED: Final = frozenset({"completed", "cached", "skipped", "failed", "stopped", "retried"})
"""Final values of ExecutionStatus in ZenML's enums.py; a run with any other status is in progress."""

_log = structlog.get_logger(__name__)


def status_of(run: Mapping[str, object]) -> str:
    """The status of a run; ``unknown`` if the answer has none."""
    body = run.get("body")
    return str(body.get("status", "unknown")) if isinstance(body, dict) else "unknown"


class RunStops:
    """The stops in progress at one server."""

    def __init__(self, client: ZenmlClient, poll_s: float) -> None:
        self._client = client
        self._poll_s = poll_s
        self._stopping: set[asyncio.Task[None]] = set()

    @contextmanager
    def after_cancel(self, run_name: str, is_wanted: Callable[[], bool]) -> Iterator[None]:
        """Stops the run with this name, if it was started, when the block is cancelled and the stop is wanted."""
        try:
            yield
        except asyncio.CancelledError:
            if is_wanted():
                task = asyncio.create_task(self._stop(run_name), name=f"stop the run {run_name}")
                self._stopping.add(task)
                task.add_done_callback(self._stopping.discard)
            raise

    async def close(self) -> None:
        """Waits a short time for the stops in progress, then cancels them."""
        if self._stopping:
            _, left = await asyncio.wait(self._stopping, timeout=CLOSING_S)
            for task in left:
                task.cancel()
            if left:
                await asyncio.wait(left)

    async def _stop(self, run_name: str) -> None:
        try:
            async with asyncio.timeout(STOP_S):
                while True:
                    if await self._stopped(run_name):
                        return
                    await asyncio.sleep(self._poll_s)
        except (CallError, TimeoutError) as error:
            reason = error.summary if isinstance(error, CallError) else "ZenML has no such run, or does not answer"
            _log.warning("the run of a cancelled call was not stopped", run=run_name, reason=reason)

    async def _stopped(self, run_name: str) -> bool:
        """Returns whether the stop is complete. The run of an interrupted start may appear later."""
        try:
            run = await self._client.find("runs", run_name)
            if run is None:
                return False
            if status_of(run) not in FINISHED:
                await self._client.stop(str(run.get("id")), graceful=False)
                _log.info("the run of a cancelled call is being stopped", run=run_name)
        except CallError as error:
            if not error.transient:
                raise
            return False
        return True
