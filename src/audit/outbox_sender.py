"""Sends one kind of row from the outbox to Supabase: in batches, in order, at a limited rate."""

import asyncio
import contextlib
import random
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, Literal

import structlog

from ..store import Store, StoreError
from ..version import install_extra
from .delivery_failure import pause_s
from .outbox_batches import OutboxBatches, Row
from .supabase_writer import AuditRemote, SupabaseWriteError

BATCH: Final = 200
"""The maximum number of rows per batch. After a failure the batch size is halved, for slow servers."""
PACE_S: Final = 0.25
"""The pause between two batches. It permits 800 rows per second, which has no measurable effect on a fully loaded
daemon (`make bench-audit`); with 0.1 s, there was an effect."""
SEARCH_PACE_S: Final = 0.1
"""The pause before a refused batch is halved to find the refused rows. If all rows are refused, this takes two requests
per row."""
POLL_INTERVAL_S: Final = 1.0
"""How often an idle sender checks for new rows. A check is one comparison."""

State = Literal["starting", "idle", "sending", "retrying", "stopped"]

_log = structlog.get_logger(__name__)


class OutboxSender(Generic[Row]):
    """Sends unsent rows from ``start`` to ``close``, in a separate task on the running loop."""

    def __init__(self, store: Store, batches: OutboxBatches[Row], connect: Callable[[], AuditRemote]) -> None:
        """``connect`` is called once, in a thread; it may block, and may raise ImportError."""
        self._store = store
        self._batches = batches
        self._connect = connect
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

        self._batch = BATCH  # the current batch size
        self._failures = 0  # consecutive
        self._state: State = "starting"
        self._problem: str | None = None

    async def status(self) -> dict[str, Any]:
        """Returns the state, the backlog, the counts of rows ever sent, refused and dropped, and the last failure.

        Raises:
            StoreError: the outbox cannot be read.
        """
        return {
            "state": self._state if self._batches.enabled else "off",
            **await self._batches.counts(),
            "failures_in_a_row": self._failures,
            "last_error": self._problem,
        }

    def start(self) -> None:
        """Starts sending, which continues until ``close`` despite failures of Supabase or the store."""
        self._task = asyncio.create_task(self._run(), name=f"audit: {self._batches.name}")

    async def close(self, within_s: float) -> None:
        """Sends the backlog for at most ``within_s`` seconds, or until a write fails, and stops."""
        self._closing.set()
        if self._task is None:
            return
        await asyncio.wait([self._task], timeout=within_s)
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        remote = await self._connected()
        if remote is None:
            self._state = "stopped"
            return
        try:
            await self._until_closed(remote)
        finally:
            self._state = "stopped"
            await remote.close()

    async def _connected(self) -> AuditRemote | None:
        """Returns the connection to Supabase; None if it cannot be set up, and ``_problem`` says why."""
        try:
            return await asyncio.to_thread(self._connect)
        except ImportError as error:
            self._problem = f"{error}; {install_extra('audit')}"
            _log.error("audit cannot be sent", rows=self._batches.name, reason=self._problem)
        except Exception as error:  # noqa: BLE001 - the task would end unnoticed, and its state would stay "starting"
            self._problem = type(error).__name__
            _log.exception("audit cannot be sent", rows=self._batches.name, reason=self._problem)
        return None

    async def _until_closed(self, remote: AuditRemote) -> None:
        while True:
            last_round = self._closing.is_set()
            try:
                if last_round:
                    await self._store.flush()
                enabled, changes = self._batches.enabled, self._batches.changes
                sent = await self._send(remote)
            except Exception as error:  # noqa: BLE001 - without this task the backlog would grow unnoticed
                self._failed(error)
                if last_round:
                    return
                await self._wait(pause_s(self._failures, random.random()))  # noqa: S311 - a pause, not a secret
                continue
            self._succeeded()
            if sent:
                await self._wait(PACE_S)
            elif last_round:
                return
            else:
                self._state = "idle"
                while (self._batches.enabled, self._batches.changes) == (
                    enabled,
                    changes,
                ) and not self._closing.is_set():
                    await self._wait(POLL_INTERVAL_S)

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)

    async def _send(self, remote: AuditRemote) -> bool:
        """Sends one batch, if there is one, and calls ``finish``; returns whether there was a batch."""
        rows = await self._batches.unsent(self._batch)
        if rows:
            self._state = "sending"
            await self._deliver(remote, rows)
        await self._batches.finish(remote)
        return bool(rows)

    async def _deliver(self, remote: AuditRemote, rows: Sequence[Row]) -> None:
        """Sends these rows, or marks them as refused, oldest first. If some are refused, bisects to find them."""
        try:
            await self._batches.write(remote, rows)
        except SupabaseWriteError as error:
            if error.failure.kind != "refused":
                raise
            if len(rows) > 1:
                await self._wait(SEARCH_PACE_S)
                middle = len(rows) // 2
                await self._deliver(remote, rows[:middle])
                await self._deliver(remote, rows[middle:])
                return
            self._batches.settle(rows, refused=error.failure.reason)
        else:
            self._batches.settle(rows)

    def _failed(self, error: Exception) -> None:
        expected = isinstance(error, SupabaseWriteError | StoreError)
        reason = str(error) if expected else type(error).__name__  # other messages may have content of callers
        if reason != self._problem:
            _log.warning("audit sending fails; retrying", rows=self._batches.name, reason=reason, exc_info=not expected)
        self._failures += 1
        self._batch = max(1, self._batch // 2)
        self._state, self._problem = "retrying", reason

    def _succeeded(self) -> None:
        if self._problem:
            _log.info("audit sending works again", rows=self._batches.name, after_failures=self._failures)
        self._failures, self._problem = 0, None
        self._batch = min(BATCH, self._batch * 2)
