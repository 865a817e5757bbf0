"""What a principal may use beside what all may: calls at once and a budget of the day, as named tokens have them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...protocol.tool_call import Principal
from .budget import Budget
from .permits import Permits


class PrincipalLimit(NamedTuple):
    """The limits of one principal; None or no amount: the daemon's alone hold."""

    principal: str
    max_running: int | None
    daily_budget: Mapping[str, float]


class PrincipalLimits:
    """The limits of all principals that have some. On the event loop's thread only."""

    def __init__(self, budget: Budget) -> None:
        self._everybodys = budget
        self._permits: dict[str, Permits] = {}
        self._budgets: dict[str, Budget] = {}

    def __repr__(self) -> str:
        return f"<PrincipalLimits of {', '.join(sorted({*self._permits, *self._budgets})) or 'nobody'}>"

    def go_by(self, allowances: Iterable[PrincipalLimit]) -> None:
        """Take these limits in the place of all before. What was spent and what runs goes on to count."""
        bounded = tuple(allowances)
        for name in self._permits.keys() - {one.principal for one in bounded if one.max_running is not None}:
            del self._permits[name]  # sessions that are open keep theirs
        for budget in self._budgets.values():
            budget.amounts = {}
        for one in bounded:
            if one.max_running is not None:
                self._permits.setdefault(one.principal, Permits(one.principal, one.max_running)).resize(one.max_running)
            if one.daily_budget:
                self._budget(one.principal).amounts = one.daily_budget

    def restore(self, principal: str, day: str, spent: Mapping[str, float]) -> None:
        """What a principal spent on a day before the process began."""
        self._budget(principal).restore(day, spent)

    def permits_of(self, principal: Principal) -> Permits | None:
        """What all sessions of this principal share; None: each has its own."""
        return self._permits.get(principal.name)

    def budgets_of(self, principal: Principal) -> Sequence[Budget]:
        """What a completion for this principal has to fit into."""
        own = self._budgets.get(principal.name)
        return (self._everybodys,) if own is None else (self._everybodys, own)

    def _budget(self, principal: str) -> Budget:
        budget = self._budgets.get(principal)
        if budget is None:
            budget = self._budgets[principal] = Budget({}, of=f" of {principal}")
        return budget
