"""The limits of several nodes in memory, with the rules of the database: for tests of nodes, and to compare with."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Sequence

from toold.protocol.tool_call import Cost
from toold.store import (
    AdmitAnswer,
    AdmitRequest,
    BudgetUse,
    QuotaUse,
    RateSlot,
    RunningShare,
    StoreError,
    TakenCall,
)

_EXACT = 1e-9


class MemoryLimits:
    """What all nodes share."""

    def __init__(self) -> None:
        self.running: dict[int, tuple[str, AdmitRequest]] = {}
        """The admitted requests, with their nodes."""
        self.line: dict[str, list[str]] = defaultdict(list)
        """By provider, the nodes that wait."""
        self.spent: dict[tuple[str, str], float] = {}
        """By scope and currency."""
        self.nodes: dict[str, NodeLimits] = {}
        self.calls: dict[tuple[str, str], int] = defaultdict(int)
        """The calls of today, by quota and principal."""
        self.due: dict[tuple[str, str], float] = {}
        """The next slots, by source and principal."""
        self.shares: dict[str, dict[str, int]] = defaultdict(dict)
        """The running calls that nodes have, by principal and node."""

    def in_use(self, provider: str) -> int:
        return sum(request.provider == provider for _, request in self.running.values())

    def reserved(self, scope: str, currency: str) -> float:
        return sum(
            request.estimate.amount
            for _, request in self.running.values()
            if request.estimate is not None and request.estimate.currency == currency and scope in request.scopes
        )

    def admit(self, node: str, request: AdmitRequest, *, may_take: bool) -> AdmitAnswer:
        if request.id in self.running:
            return AdmitAnswer("admitted", ())
        uses, refused = [], False
        for limit in request.limits:
            spent = self.spent.setdefault((limit.scope, limit.currency), limit.known)
            reserved = self.reserved(limit.scope, limit.currency)
            uses.append(BudgetUse(limit.scope, limit.currency, spent, reserved))
            estimate = request.estimate
            wanted = estimate.amount if estimate is not None and estimate.currency == limit.currency else 0.0
            full = spent >= limit.amount - _EXACT
            refused |= full or (wanted > 0 and wanted + reserved > limit.amount - spent + _EXACT)
        if refused:
            return AdmitAnswer("refused", uses)
        line = self.line[request.provider]
        ahead = line.index(node) if node in line else len(line)
        if may_take and self.in_use(request.provider) + ahead < request.permits:
            self.running[request.id] = node, request
            if node in line:
                line.remove(node)
            return AdmitAnswer("admitted", uses)
        if may_take and node not in line:
            line.append(node)
        return AdmitAnswer("busy", uses)

    def settle(self, request_id: int, cost: Cost | None) -> None:
        _, request = self.running.pop(request_id, ("", None))
        if request is None:
            return
        for scope in request.scopes if cost is not None else ():
            assert cost is not None
            self.spent[scope, cost.currency] = self.spent.get((scope, cost.currency), 0.0) + cost.amount
        self.wake(request.provider)

    def free(self, node: str) -> None:
        """The node is dead."""
        for line in self.line.values():
            if node in line:
                line.remove(node)
        for request_id in [each for each, (owner, _) in self.running.items() if owner == node]:
            self.settle(request_id, self.running[request_id][1].estimate)

    def wake(self, provider: str) -> None:
        if self.line[provider] and self.line[provider][0] in self.nodes:
            self.nodes[self.line[provider][0]].on_wake(f"provider:{provider}")


class NodeLimits:
    """Implements ``SharedLimitsPort`` for one node."""

    def __init__(self, shared: MemoryLimits, epoch: str) -> None:
        self.shared = shared
        self.epoch = epoch
        self.on_wake: Callable[[str], None] = lambda _: None
        self.away = False
        """The database does not answer."""
        shared.nodes[epoch] = self

    def start(self) -> None:
        pass

    async def admit(self, request: AdmitRequest, *, may_take: bool) -> AdmitAnswer:
        await self._answer()
        return self.shared.admit(self.epoch, request, may_take=may_take)

    async def settle(self, request_id: int, cost: Cost | None) -> None:
        await self._answer()
        self.shared.settle(request_id, cost)

    async def withdraw(self, provider: str) -> None:
        await self._answer()
        if self.epoch in self.shared.line[provider]:
            self.shared.line[provider].remove(self.epoch)
            self.shared.wake(provider)

    async def held(self) -> frozenset[int]:
        await self._answer()
        return frozenset(each for each, (node, _) in self.shared.running.items() if node == self.epoch)

    async def budget_uses(self) -> Sequence[BudgetUse]:
        await self._answer()
        return [
            BudgetUse(scope, currency, spent, self.shared.reserved(scope, currency))
            for (scope, currency), spent in self.shared.spent.items()
        ]

    async def reserve_slot(
        self, source: str, principal: str, *, interval_s: float, burst: int, max_wait_s: float
    ) -> RateSlot:
        await self._answer()
        now = time.monotonic()
        due = max(now, self.shared.due.get((source, principal), now))
        wait_s = max(0.0, due - now - (burst - 1) * interval_s)
        if wait_s <= max_wait_s:
            self.shared.due[source, principal] = due + interval_s
        return RateSlot(wait_s <= max_wait_s, wait_s, due - now)

    async def take_call(self, principal: str, quotas: Sequence[QuotaUse]) -> TakenCall:
        """Quotas of the day only."""
        await self._answer()
        for quota in quotas:
            if quota.per_day is not None and self.shared.calls[quota.name, principal] >= quota.per_day:
                return TakenCall(quota.name, True, 60.0)
        for quota in quotas:
            self.shared.calls[quota.name, principal] += 1
        return TakenCall(None, None, 0.0)

    async def share_running(self, principal: str, *, max_running: int, wants: int, uses: int) -> RunningShare:
        """The first node that asks gets what it wants."""
        await self._answer()
        shares = self.shared.shares[principal]
        others = sum(held for epoch, held in shares.items() if epoch != self.epoch)
        shares[self.epoch] = max(uses, min(wants, max_running - others))
        for node in self.shared.nodes.values():
            if node is not self and shares[self.epoch] < wants:
                node.on_wake(f"running:{principal}")
        return RunningShare(shares[self.epoch], wants)

    async def _answer(self) -> None:
        await asyncio.sleep(0)
        if self.away:
            raise StoreError("the database is away", "the database is away")
