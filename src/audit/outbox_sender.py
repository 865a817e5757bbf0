"""The way of one kind of rows to Supabase: from the outbox, in batches, in order, at its own pace."""

import asyncio
import contextlib
import random
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, Literal

import structlog

from ..store import Store, StoreError
from .delivery_failure import pause_s
from .outbox_batches import OutboxBatches, Row
from .supabase_writer import AuditRemote, SupabaseWriteError

BATCH: Final = 200
"""Rows sent at once, at most. After a failure half as many are tried, so that a server that cannot take so many in
its time takes some."""
PACE_S: Final = 0.25
"""Between two batches: a backlog is caught up with 800 rows a second at most, which a daemon that is wholly busy does
not feel above the machine's noise (`make bench-audit`; at 0.1 s it did)."""
SEARCH_PACE_S: Final = 0.1
"""Before a refused batch is halved to find which rows are refused: where all are, that is two requests a row."""
LOOK_EVERY_S: Final = 1.0
"""How often a lane that has nothing to do looks whether there is something; costs one comparison."""

State = Literal["starting", "idle", "sending", "retrying", "stopped"]

_log = structlog.get_logger(__name__)


class OutboxSender(Generic[Row]):
    """Sends what is unsent, from ``start`` to ``close``, as a task of its own on the running loop."""

    def __init__(self, store: Store, outgoing: OutboxBatches[Row], connect: Callable[[], AuditRemote]) -> None:
        """``connect`` is called in a thread, once; it may take its time, and raise ImportError."""
        self._store = store
        self._outgoing = outgoing
        self._connect = connect
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

        # Where it stands.
        self._batch = BATCH
        self._failures = 0  # in a row
        self._state: State = "starting"
        self._problem: str | None = None

    async def status(self) -> dict[str, Any]:
        """For people: state, backlog, what was sent, refused and dropped since ever, the last failure.

        Raises:
            StoreError: the outbox cannot be read.
        """
        return {
            "state": self._state if self._outgoing.on else "off",
            **await self._outgoing.counts(),
            "failures_in_a_row": self._failures,
            "last_error": self._problem,
        }

    def start(self) -> None:
        """Begin. Whatever Supabase and the store do, it goes on until it is closed."""
        self._task = asyncio.create_task(self._run(), name=f"audit: {self._outgoing.name}")

    async def close(self, within_s: float) -> None:
        """Send what is left as long as that works, for at most so many seconds, and end. Does nothing before start."""
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
        """The way to Supabase; None where there can be none, and ``_problem`` says why."""
        try:
            return await asyncio.to_thread(self._connect)
        except ImportError as error:
            self._problem = f"{error}; install it with: pip install 'toold[audit]'"
            _log.error("the audit is not sent", what=self._outgoing.name, reason=self._problem)
        except Exception as error:  # noqa: BLE001 - else the task would end unseen, and seem to be starting for ever
            self._problem = type(error).__name__
            _log.exception("the audit is not sent", what=self._outgoing.name, reason=self._problem)
        return None

    async def _until_closed(self, remote: AuditRemote) -> None:
        while True:
            last_round = self._closing.is_set()
            try:
                if last_round:
                    await self._store.flush()
                on, seen = self._outgoing.on, self._outgoing.added
                sent = await self._send(remote)
            except Exception as error:  # noqa: BLE001 - without this task the backlog would grow, and nobody would know why
                self._failed(error)
                if last_round:
                    return
                await self._wait(pause_s(self._failures, random.random()))  # noqa: S311 - a pause, no secret
                continue
            self._worked()
            if sent:
                await self._wait(PACE_S)
            elif last_round:
                return
            else:
                self._state = "idle"
                while (self._outgoing.on, self._outgoing.added) == (on, seen) and not self._closing.is_set():
                    await self._wait(LOOK_EVERY_S)

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)

    async def _send(self, remote: AuditRemote) -> bool:
        """Send one batch, and what goes with it; whether there was one."""
        rows = await self._outgoing.take(self._batch)
        if rows:
            self._state = "sending"
            await self._deliver(remote, rows)
        await self._outgoing.finish(remote)
        return bool(rows)

    async def _deliver(self, remote: AuditRemote, rows: Sequence[Row]) -> None:
        """Have these rows there or set aside, the oldest first. Where some are refused, halves find which."""
        try:
            await self._outgoing.write(remote, rows)
        except SupabaseWriteError as error:
            if error.failure.verdict != "refused":
                raise
            if len(rows) > 1:
                await self._wait(SEARCH_PACE_S)
                middle = len(rows) // 2
                await self._deliver(remote, rows[:middle])
                await self._deliver(remote, rows[middle:])
                return
            self._outgoing.settle(rows, refused=error.failure.reason)
        else:
            self._outgoing.settle(rows)

    def _failed(self, error: Exception) -> None:
        foreseen = isinstance(error, SupabaseWriteError | StoreError)
        reason = str(error) if foreseen else type(error).__name__  # whose words callers may not be meant to see
        if reason != self._problem:
            told = "the audit cannot be sent at present"
            _log.warning(told, what=self._outgoing.name, reason=reason, exc_info=not foreseen)
        self._failures += 1
        self._batch = max(1, self._batch // 2)
        self._state, self._problem = "retrying", reason

    def _worked(self) -> None:
        if self._problem:
            _log.info("the audit is sent again", what=self._outgoing.name, after_failures=self._failures)
        self._failures, self._problem = 0, None
        self._batch = min(BATCH, self._batch * 2)
