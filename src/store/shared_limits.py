"""The limits that apply to all nodes together: provider permits, daily budgets, rates, quotas, running calls."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec

from ..protocol.tool_call import Cost

AdmitDecision = Literal["admitted", "refused", "busy"]
"""``refused``: a budget is spent. ``busy``: all permits are in use, or other nodes have waited longer for one."""


class BudgetLimit(NamedTuple):
    """The amount of a daily budget in one currency."""

    scope: str
    """The budget's name in the database."""
    currency: str
    amount: float
    known: float
    """The amount that this node knows to be spent today, for a database that has no amount of the budget yet."""


class BudgetUse(NamedTuple):
    """The amounts of a budget spent and reserved today on all nodes, in one currency."""

    scope: str
    currency: str
    spent: float
    reserved: float


class AdmitRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Asks for the admission of one request to a vendor."""

    id: int
    """Chosen at random from 63 bits."""
    provider: str
    permits: int
    """How many requests to the provider may run at once, on all nodes."""
    scopes: tuple[str, ...]
    """The budgets to which the request's cost is charged."""
    limits: tuple[BudgetLimit, ...]
    """The limits of these budgets."""
    estimate: Cost | None
    """The cost to reserve. None reserves nothing: the request is refused only if a budget is already spent."""


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
    """The seconds until the rate has its whole burst again if no further call comes, counted before this call."""


class QuotaUse(NamedTuple):
    """A quota that counts a call. None: no limit."""

    name: str
    per_minute: int | None
    per_day: int | None
    known: int
    """This node's count of today's calls, for a database that has no count of today yet."""


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
    """The maximum number of permits that it should use; fewer than ``held`` if other nodes want some of them."""


class SharedLimitsPort(Protocol):
    """Each method runs one statement, and raises StoreError if the database does not answer."""

    on_wake: Callable[[str], None]
    """Called on the event loop with ``provider:NAME`` or ``running:PRINCIPAL`` when this node should ask again."""

    def start(self) -> None:
        """Begins to listen for permits that other nodes release."""
        ...

    async def admit(self, request: AdmitRequest, *, may_take: bool) -> AdmitAnswer:
        """Takes a permit and reserves the estimate, or returns why not. If the provider is busy, this node gets a place
        in the queue. Without ``may_take``, only checks whether a budget refuses the request.
        """
        ...

    async def settle(self, request_id: int, cost: Cost | None) -> None:
        """Releases the permit and the reservation, and records the cost of the request. A second call does nothing."""
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
        """Reserves the next slot of a source's rate for a call that can wait for it. A negative wait reserves no
        slot."""
        ...

    async def take_call(self, principal: str, quotas: Sequence[QuotaUse]) -> TakenCall:
        """Counts a call in all these quotas, or in none of them."""
        ...

    async def share_running(self, principal: str, *, max_running: int, wants: int, uses: int) -> RunningShare:
        """Asks for a share of a principal's ``max_running``. This node ``wants`` that many permits, and ``uses`` that
        many now. Until the answer arrives, it must start no further call.
        """
        ...
