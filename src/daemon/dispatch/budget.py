"""Daily budgets for vendor calls: a limit per currency, checked before a vendor is asked."""

import datetime as dt
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from ...protocol.error_codes import BudgetSpentError
from ...protocol.tool_call import Cost
from ...providers import Model
from ...store import day_of

RESERVED_RETRY_MS: Final = 5_000
"""The delay before a retry if running calls have reserved the rest of the budget: about the time of an answer."""

_EXACT: Final = 1e-9
"""More than the rounding error of a sum of amounts."""


def reset_at(now: float) -> float:
    """The Unix time at which the next UTC day begins."""
    today = dt.datetime.fromtimestamp(now, dt.UTC).date()
    return dt.datetime.combine(today + dt.timedelta(days=1), dt.time(), dt.UTC).timestamp()


def refusal(
    amounts: Mapping[str, float],
    spent: Mapping[str, float],
    reserved: Mapping[str, float],
    estimate: Cost | None,
    now: float,
    owner: str = "",
) -> BudgetSpentError | None:
    """The refusal of a request to a vendor; None if it may be sent now. Pure. Amounts are by currency, ``now`` is in
    Unix seconds, ``owner`` is as in ``Budget``.

    Once the amount of any currency is spent, every request is refused. Until then, a completion is refused if its
    estimated cost exceeds the amount that is neither spent nor reserved.
    """
    until_reset_ms = max(1, round((reset_at(now) - now) * 1000))
    resets = f"{dt.datetime.fromtimestamp(reset_at(now), dt.UTC):%Y-%m-%d %H:%M} UTC"
    for currency, amount in amounts.items():
        if spent.get(currency, 0.0) >= amount - _EXACT:
            return BudgetSpentError.content_free(
                f"The daily budget{owner} of {_money(amount, currency)} is spent; it resets at {resets}. Tools that do "
                "not call a vendor still work.",
                retry_after_ms=until_reset_ms,
                details=_details(amounts, spent, reserved, now),
            )
    if estimate is None or estimate.currency not in amounts:
        return None
    currency, amount = estimate.currency, amounts[estimate.currency]
    left = amount - spent.get(currency, 0.0)
    if estimate.amount + reserved.get(currency, 0.0) <= left + _EXACT:
        return None
    cost = f"The estimated cost of this completion is {_money(estimate.amount, currency)}"
    details = {**_details(amounts, spent, reserved, now), "estimated": estimate.amount}
    if estimate.amount > amount + _EXACT:
        message = f"{cost}, more than the whole daily budget{owner} of {_money(amount, currency)}"
        advice = "send less, or limit the answer with max_tokens"
        return BudgetSpentError.content_free(f"{message}; {advice}.", transient=False, details=details)
    if estimate.amount > left + _EXACT:
        message = f"{cost}, and {_money(left, currency)} of today's {_money(amount, currency)} are left"
        return BudgetSpentError.content_free(
            f"{message}; send less, or retry after the budget resets at {resets}.",
            retry_after_ms=until_reset_ms,
            details=details,
        )
    message = f"{cost}, and running calls have reserved the rest of today's {_money(amount, currency)}"
    return BudgetSpentError.content_free(
        f"{message}; retry when they have ended.", retry_after_ms=RESERVED_RETRY_MS, details=details
    )


class Budget:
    """One daily budget, with its spent and reserved amounts. Only for the event loop's thread.

    ``amounts`` are by currency; other currencies are not limited. Days are UTC days. ``owner`` appears in errors of a
    principal's budget: `` of token:ci``. A ``strict`` budget refuses models without a price in its currencies.
    ``scope`` identifies the budget in a database that several nodes share, which then decides (``VendorAdmissions``).
    """

    def __init__(
        self,
        amounts: Mapping[str, float],
        *,
        owner: str = "",
        strict: bool = False,
        scope: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.amounts = amounts
        self.scope = scope
        self._owner = owner
        self._strict = strict
        self._clock = clock
        self._day = day_of(clock())
        self._spent: defaultdict[str, float] = defaultdict(float)
        # The estimated cost of completions that have no answer yet.
        self._reserved: defaultdict[str, float] = defaultdict(float)

    def restore(self, day: str, spent: Mapping[str, float]) -> None:
        """Count the amount that an earlier process spent on this day; ignored if the day is over."""
        if day == self._today():
            for currency, amount in spent.items():
                self._spent[currency] += amount

    def require_price(self, model: Model) -> None:
        """Check that the budget can count completions of the model.

        Raises:
            BudgetSpentError: the budget is strict and cannot count them; the message names the setting for the price.
        """
        currency = None if model.price is None else model.price.currency
        if not self._strict or not self.amounts or currency in self.amounts:
            return
        unknown = f"its price is unknown; the operator sets price in {model.setting}"
        unlimited = f"its price is in {currency}; the operator adds an amount in {currency} to the budget"
        problem = unknown if currency is None else unlimited
        raise BudgetSpentError(f"The daily budget{self._owner} cannot count {model.id}: {problem}.", transient=False)

    @contextmanager
    def reserve(self, estimate: Cost | None) -> Iterator[None]:
        """Reserve a request's estimated cost while the block runs; an estimate of None reserves nothing.

        Raises:
            BudgetSpentError: the request must not be sent.
        """
        self._today()
        refused = refusal(self.amounts, self._spent, self._reserved, estimate, self._clock(), self._owner)
        if refused is not None:
            raise refused
        if estimate is None:
            yield
            return
        self._reserved[estimate.currency] += estimate.amount
        try:
            yield
        finally:
            self._reserved[estimate.currency] -= estimate.amount

    def spend(self, cost: Cost) -> None:
        """Count the cost of a completion."""
        self._today()
        self._spent[cost.currency] += cost.amount

    def spent(self, currency: str) -> float:
        """The amounts that this daemon knows to be spent today."""
        self._today()
        return self._spent.get(currency, 0.0)

    def see(self, currency: str, spent: float, reserved: float) -> None:
        """Replaces today's spent and reserved amounts with those in the nodes' database."""
        self._today()
        self._spent[currency], self._reserved[currency] = spent, reserved

    def refusal(
        self, spent: Mapping[str, float], reserved: Mapping[str, float], estimate: Cost | None
    ) -> BudgetSpentError | None:
        """The refusal of a request, given the spent and reserved amounts in the nodes' database; None if it may be
        sent."""
        return refusal(self.amounts, spent, reserved, estimate, self._clock(), self._owner)

    def state(self) -> dict[str, Any]:
        """For ``status``: today's budget, and the amounts spent and reserved, by currency."""
        self._today()
        return _details(self.amounts, self._spent, self._reserved, self._clock())

    def _today(self) -> str:
        """The current day; resets the amounts when a new day begins."""
        today = day_of(self._clock())
        if today != self._day:
            self._day = today
            self._spent.clear()
        return today


def _details(
    amounts: Mapping[str, float], spent: Mapping[str, float], reserved: Mapping[str, float], now: float
) -> dict[str, Any]:
    return {
        "day": day_of(now),
        "resets_at": reset_at(now),
        "budget": dict(amounts),
        "spent": {currency: round(amount, 9) for currency, amount in spent.items()},
        "reserved": {currency: round(amount, 9) for currency, amount in reserved.items() if amount > _EXACT},
    }


def _money(amount: float, currency: str) -> str:
    return f"{amount:.4g} {currency}"
