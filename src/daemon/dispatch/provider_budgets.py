"""Daily budgets of single providers: ``daily_budget`` in ``[providers.NAME]``."""

from collections.abc import Iterable, Mapping
from typing import Any

from .budget import Budget


class ProviderBudgets:
    """The budgets by provider. Only for the event loop's thread."""

    def __init__(self) -> None:
        self._budgets: dict[str, Budget] = {}

    def apply(self, amounts: Mapping[str, Mapping[str, float]]) -> None:
        """Replaces the amounts by provider. Spent amounts still count."""
        for name in self._budgets.keys() | amounts.keys():
            self._budget(name).amounts = amounts.get(name, {})

    def restore(self, provider: str, day: str, spent: Mapping[str, float]) -> None:
        """Counts the amount that an earlier process spent at a provider on this day."""
        self._budget(provider).restore(day, spent)

    def of(self, provider: str) -> tuple[Budget, ...]:
        """Returns the budget of a provider that has one, or had one earlier."""
        budget = self._budgets.get(provider)
        return () if budget is None else (budget,)

    def states(self) -> dict[str, dict[str, Any]]:
        """For ``status``: the budgets that have an amount, by provider, as ``Budget.state``."""
        return {name: budget.state() for name, budget in self._budgets.items() if budget.amounts}

    @property
    def all(self) -> Iterable[Budget]:
        """All budgets."""
        return self._budgets.values()

    def _budget(self, provider: str) -> Budget:
        budget = self._budgets.get(provider)
        if budget is None:
            owner, scope = f" of the provider {provider}", f"provider:{provider}"
            budget = self._budgets[provider] = Budget({}, owner=owner, strict=True, scope=scope)
        return budget
