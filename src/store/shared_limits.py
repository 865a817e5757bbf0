"""Limits of all nodes together: permits of providers, daily budgets, rates, quotas, running calls of principals."""

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
    """The amount spent today as this node knows it. It is used if the database has no amount of the budget yet."""


class BudgetUse(NamedTuple):
    """The amounts of a budget spent and reserved today on all nodes, in one currency."""

    scope: str
    currency: str
    spent: float
    reserved: float


class AdmitRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to a vendor that asks for admission."""

    id: int
    """Chosen at random from 63 bits."""
    provider: str
    permits: int
    """How many requests to the provider may run at once, on all nodes."""
    scopes: tuple[str, ...]
    """The budgets that it counts towards."""
    limits: tuple[BudgetLimit, ...]
    """The limits of these budgets."""
    estimate: Cost | None
    """The cost to reserve. With None, nothing is reserved, and the request is refused only if a budget is spent."""


class AdmitAnswer(NamedTuple):
    """Whether a request may be sent, and the state of its ``limits``."""

    decision: AdmitDecision
    uses: Sequence[BudgetUse]


class RateSlot(NamedTuple):
    """The next slot of a source's rate."""

    reserved: bool
    wait_s: float
    """The seconds until the slot."""
    full_in_s: float
    """The seconds until the rate has its whole burst again if no further call comes, as before this call."""


class QuotaUse(NamedTuple):
    """A quota for which a call counts. None: no limit."""

    name: str
    per_minute: int | None
    per_day: int | None
    known: int
    """The calls of today as this node knows them, used if the database has no count of today yet."""


class TakenCall(NamedTuple):
    """Whether a call was counted."""

    refused_by: str | None
    """The exhausted quota with the longest remaining time; None if the call was counted."""
    of_day: bool | None
    """Whether the daily limit of that quota was reached."""
    wait_s: float


class RunningShare(NamedTuple):
    """A node's share of the calls of a principal that may run at once."""

    held: int
    """The permits that this node has, so that other nodes cannot use them."""
    part: int
    """The most permits that it should use: fewer than ``held`` if other nodes want some of them."""


class SharedLimitsPort(Protocol):
    """Each method is one statement, and raises StoreError if the database does not answer."""

    on_wake: Callable[[str], None]
    """Called on the event loop with ``provider:NAME`` or ``running:PRINCIPAL``: this node should ask again."""

    def start(self) -> None:
        """Begins to listen for permits that other nodes return."""
        ...

    async def admit(self, request: AdmitRequest, *, may_take: bool) -> AdmitAnswer:
        """Takes a permit and reserves the estimate, or returns why not. Without ``may_take``, it only returns whether a
        budget refuses the request. With it, a node that finds the provider busy gets a place in the queue.
        """
        ...

    async def settle(self, request_id: int, cost: Cost | None) -> None:
        """Returns the permit and the reservation, and books the cost of the request. A second call does nothing."""
        ...

    async def withdraw(self, provider: str) -> None:
        """Leaves the queue for a permit."""
        ...

    async def held(self) -> frozenset[int]:
        """Returns the ids of this node's admitted requests that are not settled."""
        ...

    async def budget_uses(self) -> Sequence[BudgetUse]:
        """Returns the amounts of all budgets that are spent and reserved today."""
        ...

    async def reserve_slot(
        self, source: str, principal: str, *, interval_s: float, burst: int, max_wait_s: float
    ) -> RateSlot:
        """Reserves the next slot of a source's rate for a call that can wait for it. A negative wait reserves none."""
        ...

    async def take_call(self, principal: str, quotas: Sequence[QuotaUse]) -> TakenCall:
        """Counts a call for all these quotas, or for none of them."""
        ...

    async def share_running(self, principal: str, *, max_running: int, wants: int, uses: int) -> RunningShare:
        """Asks for a share of the calls of a principal that may run at once: this node ``wants`` this many permits and
        currently ``uses`` that many. Until the answer, it must start no further call.
        """
        ...
