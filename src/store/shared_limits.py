"""Limits that all nodes of a shared database share: permits of providers, and daily budgets."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec

from ..protocol.tool_call import Cost

AdmitDecision = Literal["admitted", "refused", "busy"]
"""``refused``: by a budget. ``busy``: all permits are in use, or other nodes have waited longer for the next one."""


class BudgetLimit(NamedTuple):
    """The amount of a daily budget in one currency."""

    scope: str
    """The budget's name in the database."""
    currency: str
    amount: float
    known: float
    """What this node knows to be spent today. It counts if the database has nothing of the budget yet."""


class BudgetUse(NamedTuple):
    """What is spent and reserved of a budget today, on all nodes, in one currency."""

    scope: str
    currency: str
    spent: float
    reserved: float


class AdmitRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to a vendor that wants to be sent."""

    id: int
    """Chosen at random from 63 bits."""
    provider: str
    permits: int
    """How many requests to the provider may run at once, on all nodes."""
    scopes: tuple[str, ...]
    """The budgets for which it counts."""
    limits: tuple[BudgetLimit, ...]
    """What limits these budgets."""
    estimate: Cost | None
    """The cost to reserve; None: nothing is reserved, and the request is refused only if a budget is spent."""


class AdmitAnswer(NamedTuple):
    """Whether a request may be sent, and the state of its ``limits``."""

    decision: AdmitDecision
    uses: Sequence[BudgetUse]


class SharedLimitsPort(Protocol):
    """Each method is one statement, and raises StoreError if the database does not answer."""

    on_wake: Callable[[str], None]
    """Called on the event loop with a provider: this node should ask again for a permit of it."""

    def start(self) -> None:
        """Begins to listen for permits that other nodes return."""
        ...

    async def admit(self, request: AdmitRequest, *, may_take: bool) -> AdmitAnswer:
        """Takes a permit and reserves the estimate, or says why not. Without ``may_take``, only says whether a budget
        refuses the request; with it, a node that finds the provider busy gets a place in the line.
        """
        ...

    async def settle(self, request_id: int, cost: Cost | None) -> None:
        """Returns the permit and the reservation, and books what the request cost. Again, it does nothing."""
        ...

    async def withdraw(self, provider: str) -> None:
        """Leaves the line for a permit."""
        ...

    async def held(self) -> frozenset[int]:
        """Returns the ids of this node's admitted requests that are not settled."""
        ...

    async def budget_uses(self) -> Sequence[BudgetUse]:
        """Returns what is spent and reserved today, of all budgets."""
        ...
