"""The limits of single principals: concurrent calls and a daily budget, from named tokens; and quotas of calls."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ...fairness import Permits
from ...protocol.tool_call import Principal
from ...store import SharedLimitsPort
from .budget import Budget
from .call_quotas import CallQuota, CallQuotas
from .provider_budgets import ProviderBudgets


class PrincipalLimit(NamedTuple):
    """The limits of one principal, in addition to the daemon's. None or an empty budget: no additional limit."""

    principal: str
    max_running: int | None
    daily_budget: Mapping[str, float]


class RunningShares(Protocol):
    """This node's shares of the ``max_running`` of principals, which applies to all nodes together."""

    def divide(self, principal: str, permits: Permits, max_running: int | None) -> None:
        """From now on, resize ``permits`` so that the permits of all nodes together are at most ``max_running``; None
        ends this.
        """
        ...


class PrincipalLimits:
    """The limits of all principals that have limits. Only for the event loop's thread. ``shared`` and ``shares`` are
    limits of all nodes of a cluster together.
    """

    def __init__(
        self,
        budget: Budget,
        providers: ProviderBudgets | None = None,
        quotas: Sequence[CallQuota] = (),
        *,
        shared: SharedLimitsPort | None = None,
        shares: RunningShares | None = None,
    ) -> None:
        self.quotas = CallQuotas(quotas, shared=shared)
        self._shares = shares
        self._shared = budget
        self._providers = providers or ProviderBudgets()
        self._permits: dict[str, Permits] = {}
        self._budgets: dict[str, Budget] = {}

    def __repr__(self) -> str:
        return f"<PrincipalLimits of {', '.join(sorted({*self._permits, *self._budgets})) or 'no principal'}>"

    def apply(self, limits: Iterable[PrincipalLimit]) -> None:
        """Replace all limits. Spent amounts and running calls still count."""
        limits = tuple(limits)
        for name in self._permits.keys() - {limit.principal for limit in limits if limit.max_running is not None}:
            permits = self._permits.pop(name)  # open sessions keep their permits
            if self._shares is not None:
                self._shares.divide(name, permits, None)
        for budget in self._budgets.values():
            budget.amounts = {}
        for limit in limits:
            if limit.max_running is not None:
                self._limit_running(limit.principal, limit.max_running)
            if limit.daily_budget:
                self._budget(limit.principal).amounts = limit.daily_budget

    def _limit_running(self, principal: str, max_running: int) -> None:
        permits = self._permits.get(principal)
        if permits is None:
            first = max_running if self._shares is None else 0
            permits = self._permits[principal] = Permits(principal, first, one_principal=True)
        if self._shares is None:
            permits.resize(max_running)
        else:
            self._shares.divide(principal, permits, max_running)

    def restore(self, principal: str, day: str, spent: Mapping[str, float]) -> None:
        """Count the amount that a principal spent on this day in an earlier process."""
        self._budget(principal).restore(day, spent)

    def permits_of(self, principal: Principal) -> Permits | None:
        """The permits that all sessions of this principal share; None: each session has its own."""
        return self._permits.get(principal.name)

    def budgets_of(self, principal: Principal, provider: str) -> Sequence[Budget]:
        """The budgets into which a completion of this provider for this principal must fit."""
        own = self._budgets.get(principal.name)
        shared = (self._shared, *self._providers.of(provider))
        return shared if own is None else (*shared, own)

    def budget_states(self) -> dict[str, dict[str, Any]]:
        """The budgets that have an amount, by principal, as ``Budget.state``."""
        return {name: budget.state() for name, budget in self._budgets.items() if budget.amounts}

    @property
    def budgets(self) -> Iterable[Budget]:
        """All daily budgets: of all calls, of providers and of principals."""
        return (self._shared, *self._providers.all, *self._budgets.values())

    def _budget(self, principal: str) -> Budget:
        budget = self._budgets.get(principal)
        if budget is None:
            budget = self._budgets[principal] = Budget({}, owner=f" of {principal}", scope=f"principal:{principal}")
        return budget
