"""Permits of providers and daily budgets of all nodes: asks the database before a request is sent to a vendor.

A request first takes a local permit, which limits the number of requests that ask the database. If a provider is busy,
only the first request in this node's queue waits in the database for the next permit. It gets a notification, and also
asks again every 250 ms.
"""

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Coroutine, Iterable, Sequence
from types import TracebackType
from typing import Any, Final

import structlog

from ...protocol.error_codes import BudgetSpentError, CallError, ServiceUnavailableError
from ...protocol.tool_call import Cost
from ...store import (
    AdmitAnswer,
    AdmitRequest,
    BudgetLimit,
    BudgetUse,
    NodeFencedError,
    NodeLease,
    SharedLimitsPort,
    StoreError,
    boot_time,
)
from ..dispatch import Budget

ASK_AGAIN_S: Final = 0.25
"""Shorter than the two seconds after which a silent node loses its place in the queue (pg_schema_2.sql)."""
_SETTLE_AGAIN_S: Final = 1.0
"""The time between two attempts to settle while the database cannot be reached."""
_CHECKED_LATER_S: Final = 5.0
"""The time after a statement without a response until its permit is checked."""

_log = structlog.get_logger("toold.cluster")


class _Line:
    """The requests of this node that wait for a permit of one provider."""

    def __init__(self) -> None:
        self.head = asyncio.Lock()
        """Held by the request whose turn it is."""
        self.waiting = 0
        self.busy = False
        """Whether the database has last answered that the provider is busy, so that this node has a place in the queue.
        """
        self.wake = asyncio.Event()


class ClusterAdmission:
    """Implements ``VendorAdmission``."""

    def __init__(self, admissions: "ClusterAdmissions", request: AdmitRequest, budgets: Sequence[Budget]) -> None:
        self.request: Final = request
        self.budgets: Final = budgets
        self.asking = False
        self.tried = asyncio.Event()
        self._admissions = admissions
        self._cost: Cost | None = None
        self._ended = self._closed = False

    async def __aenter__(self) -> None:
        self.asking = True
        try:
            await self._admissions.acquire(self)
        finally:
            self.tried.set()

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended = True
        self._settle()

    def spend(self, cost: Cost) -> None:
        self._cost = cost

    def close(self) -> None:
        self._closed = True
        self._settle()

    def _settle(self) -> None:
        if self._ended and self._closed:
            self._admissions.settle(self.request.id, self._cost)


class ClusterAdmissions:
    """Implements ``VendorAdmissions``. ``budgets`` returns the budgets that show the spending of all nodes."""

    def __init__(self, port: SharedLimitsPort, lease: NodeLease, budgets: Callable[[], Iterable[Budget]]) -> None:
        self._port = port
        self._lease = lease
        self._budgets = budgets
        self._lines: dict[str, _Line] = {}
        # The requests that the database may contain: from before their first statement until after their last one.
        self._known: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def __repr__(self) -> str:
        waiting = {provider: line.waiting for provider, line in self._lines.items() if line.waiting}
        return f"<ClusterAdmissions known={len(self._known)} waiting={waiting}>"

    def admission(
        self, provider: str, permits: int, budgets: Sequence[Budget], estimate: Cost | None
    ) -> ClusterAdmission:
        request = AdmitRequest(
            id=secrets.randbits(63),
            provider=provider,
            permits=permits,
            scopes=tuple(budget.scope for budget in budgets),
            limits=tuple(
                BudgetLimit(budget.scope, currency, amount, budget.spent(currency))
                for budget in budgets
                for currency, amount in budget.amounts.items()
            ),
            estimate=estimate,
        )
        return ClusterAdmission(self, request, budgets)

    async def run(self) -> None:
        """Until cancelled: listens for permits, updates the spending of all nodes, and releases lost permits."""
        self._port.start()
        unknown: frozenset[int] = frozenset()
        while True:
            try:
                self._see(await self._port.budget_uses(), self._budgets())
                # Two checks, because a statement whose connection was lost may be executed a little later.
                lost = await self._port.held() - self._known
                for request_id in lost & unknown:
                    self.settle(request_id, None)
                unknown = lost
            except StoreError:
                pass  # the store reports it
            except Exception:  # noqa: BLE001 - without this loop a lost permit would stay lost
                _log.exception("the limits of all nodes cannot be read")
            await asyncio.sleep(_CHECKED_LATER_S)

    async def close(self, timeout_s: float) -> None:
        """Waits until the requests that have ended are settled, for at most this time. The last commit of the node
        settles the others.
        """
        self._closed = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_s)
        for task in self._tasks:
            task.cancel()

    async def acquire(self, admission: ClusterAdmission) -> None:
        """Waits for a permit of a provider and reserves the estimated cost.

        Raises:
            BudgetSpentError: a budget refuses the request.
            ServiceUnavailableError: the database does not answer, or this node has no valid lease.
        """
        request = admission.request
        line = self._lines.setdefault(request.provider, _Line())
        if line.busy:  # first, so that a refusal does not have to wait in the queue
            await self._ask(admission, may_take=False)
            admission.tried.set()
        line.waiting += 1
        try:
            async with line.head:
                while not await self._is_admitted(admission, line):
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(ASK_AGAIN_S):
                            await line.wake.wait()
        finally:
            line.waiting -= 1
            if line.busy and not line.waiting:
                line.busy = False
                self._start(self._withdraw(request.provider))

    async def _is_admitted(self, admission: ClusterAdmission, line: _Line) -> bool:
        line.wake.clear()
        answer = await self._ask(admission, may_take=True)
        line.busy = answer.decision == "busy"
        admission.tried.set()
        return not line.busy

    async def _ask(self, admission: ClusterAdmission, *, may_take: bool) -> AdmitAnswer:
        """The database's answer. A request that is cancelled while it waits releases a permit that it got.

        Raises:
            CallError: it is refused.
        """
        request = admission.request
        self._known.add(request.id)
        asking = asyncio.ensure_future(self._port.admit(request, may_take=may_take))
        try:
            answer = await asyncio.shield(asking)
        except asyncio.CancelledError:
            asking.add_done_callback(lambda _: self.settle(request.id, None))
            raise
        except StoreError as error:
            self._known.discard(request.id)
            raise _unavailable(error.reason) from None
        self._see(answer.uses, admission.budgets)
        if answer.decision != "admitted":
            self._known.discard(request.id)
        if answer.decision == "refused":
            raise _refused(admission, answer.uses)
        if answer.decision == "admitted" and not self._lease.good(boot_time()):
            self.settle(request.id, None)
            raise _unavailable("this node has lost contact with it")
        return answer

    def settle(self, request_id: int, cost: Cost | None) -> None:
        """Releases a permit in the background, and retries until that succeeds."""
        if self._closed:
            return
        self._known.add(request_id)
        self._start(self._settle(request_id, cost))

    async def _settle(self, request_id: int, cost: Cost | None) -> None:
        while True:
            try:
                await self._port.settle(request_id, cost)
            except NodeFencedError:
                return
            except StoreError:
                await asyncio.sleep(_SETTLE_AGAIN_S)
            else:
                self._known.discard(request_id)
                return

    async def _withdraw(self, provider: str) -> None:
        with contextlib.suppress(StoreError):  # if this fails, the node loses its place after two seconds
            await self._port.withdraw(provider)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def wake(self, provider: str) -> None:
        """Called when a permit of a provider may be free."""
        line = self._lines.get(provider)
        if line is not None:
            line.wake.set()

    def _see(self, uses: Iterable[BudgetUse], budgets: Iterable[Budget]) -> None:
        of_scope = {budget.scope: budget for budget in budgets}
        for use in uses:
            if use.scope in of_scope:
                of_scope[use.scope].see(use.currency, use.spent, use.reserved)


def _refused(admission: ClusterAdmission, uses: Sequence[BudgetUse]) -> CallError:
    """The error of the first budget that refuses the request."""
    for budget in admission.budgets:
        own = [use for use in uses if use.scope == budget.scope]
        spent = {use.currency: use.spent for use in own}
        reserved = {use.currency: use.reserved for use in own}
        error = budget.refusal(spent, reserved, admission.request.estimate)
        if error is not None:
            return error
    return BudgetSpentError.content_free("A daily budget is spent.", executed="no")


def _unavailable(reason: str) -> ServiceUnavailableError:
    return ServiceUnavailableError.content_free(
        f"The vendor was not asked, because the database of the nodes cannot permit it at present ({reason}); try "
        "again later.",
        executed="no",
    )
