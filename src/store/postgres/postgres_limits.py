"""The limits that all nodes share, on PostgreSQL (``SharedLimitsPort``)."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import psycopg

from ...protocol.tool_call import Cost
from ..shared_limits import AdmitAnswer, AdmitRequest, BudgetUse, QuotaUse, RateSlot, RunningShare, TakenCall
from ..store_errors import NodeFencedError
from . import pg_limits_sql, pg_rates_sql
from .pg_commit_errors import DEAD
from .pg_limits_sql import LIMITS_CHANNEL
from .pg_notifications import PgNotifications
from .pg_values import text_of
from .postgres_threads import PostgresThreads

Connection = psycopg.Connection[tuple[Any, ...]]

T = TypeVar("T")


class PostgresLimits:
    """Runs the statements of limits. ``check_lease`` makes the writer commit, to find out whether this node was
    declared dead.
    """

    def __init__(
        self,
        threads: PostgresThreads,
        notifications: PgNotifications,
        epoch: str,
        *,
        check_lease: Callable[[], object],
    ) -> None:
        self._epoch = epoch
        self._check_lease = check_lease
        self._threads = threads
        self._notifications = notifications
        self.on_wake: Callable[[str], None] = lambda _: None
        notifications.listen(LIMITS_CHANNEL, self._notified)

    def start(self) -> None:
        """Begins to listen to the other nodes."""
        self._notifications.start()

    async def admit(self, request: AdmitRequest, *, may_take: bool) -> AdmitAnswer:
        return await self._run(
            lambda connection: pg_limits_sql.admit(connection, self._epoch, request, may_take=may_take)
        )

    async def settle(self, request_id: int, cost: Cost | None) -> None:
        await self._run(lambda connection: pg_limits_sql.settle(connection, request_id, cost))

    async def withdraw(self, provider: str) -> None:
        await self._run(lambda connection: pg_limits_sql.withdraw(connection, self._epoch, provider))

    async def held(self) -> frozenset[int]:
        return await self._run(lambda connection: pg_limits_sql.held(connection, self._epoch))

    async def budget_uses(self) -> Sequence[BudgetUse]:
        return await self._run(pg_limits_sql.budget_uses)

    async def reserve_slot(
        self, source: str, principal: str, *, interval_s: float, burst: int, max_wait_s: float
    ) -> RateSlot:
        return await self._run(
            lambda connection: pg_rates_sql.reserve_slot(
                connection, source, principal, interval_s=interval_s, burst=burst, max_wait_s=max_wait_s
            )
        )

    async def take_call(self, principal: str, quotas: Sequence[QuotaUse]) -> TakenCall:
        return await self._run(lambda connection: pg_rates_sql.take_call(connection, principal, quotas))

    async def share_running(self, principal: str, *, max_running: int, wants: int, uses: int) -> RunningShare:
        return await self._run(
            lambda connection: pg_rates_sql.share_running(
                connection, self._epoch, principal, max_running=max_running, wants=wants, uses=uses
            )
        )

    async def _run(self, work: Callable[[Connection], T]) -> T:
        def checked(connection: Connection) -> T:
            try:
                return work(connection)
            except psycopg.Error as error:
                if error.sqlstate != DEAD:
                    raise
                self._check_lease()
                raise NodeFencedError("another node has declared this one dead") from None

        return await self._threads.run(checked)

    def _notified(self, payload: str) -> None:
        epoch, _, limit = payload.partition(" ")
        if epoch == self._epoch:
            self.on_wake(text_of(limit))
