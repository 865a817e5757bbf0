"""What may be spent at the vendors in a day: a bound in each currency, kept before a vendor is asked."""

import datetime as dt
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from ...protocol.error_codes import RateLimitedError
from ...protocol.tool_call import Cost
from ...store import day_of

WAIT_FOR_OTHERS_MS: Final = 5_000
"""When to come again where calls under way have the rest to themselves: about as long as an answer takes."""

_EXACT: Final = 1e-9
"""Sums of decimal fractions are off by less."""


def reset_at(now: float) -> float:
    """The Unix time at which the next day begins, in UTC."""
    today = dt.datetime.fromtimestamp(now, dt.UTC).date()
    return dt.datetime.combine(today + dt.timedelta(days=1), dt.time(), dt.UTC).timestamp()


def refusal(
    amounts: Mapping[str, float],
    spent: Mapping[str, float],
    under_way: Mapping[str, float],
    asked: Cost | None,
    now: float,
    of: str = "",
) -> RateLimitedError | None:
    """Why a vendor is not asked now, or None where it may be. Pure; amounts by currency, ``now`` in Unix seconds,
    ``of`` whose budget it is.

    Where the amount of any currency is spent, nothing is asked. A completion is not asked either whose reckoned cost
    does not fit beside what was spent and what is reckoned for those under way.
    """
    until_reset_ms = max(1, round((reset_at(now) - now) * 1000))
    resets = f"{dt.datetime.fromtimestamp(reset_at(now), dt.UTC):%Y-%m-%d %H:%M} UTC"
    for currency, amount in amounts.items():
        if spent.get(currency, 0.0) >= amount - _EXACT:
            return RateLimitedError(
                f"The budget{of} of {_money(amount, currency)} a day is spent; it resets at {resets}. Tools that ask "
                "no vendor go on.",
                retry_after_ms=until_reset_ms,
                details=_details(amounts, spent, under_way, now),
            )
    if asked is None or asked.currency not in amounts:
        return None
    currency, amount = asked.currency, amounts[asked.currency]
    left = amount - spent.get(currency, 0.0)
    if asked.amount + under_way.get(currency, 0.0) <= left + _EXACT:
        return None
    reckoned = f"This completion is reckoned at {_money(asked.amount, currency)}"
    details = {**_details(amounts, spent, under_way, now), "reckoned": asked.amount}
    if asked.amount > amount + _EXACT:
        said = f"{reckoned}, more than the whole budget{of} of {_money(amount, currency)} a day"
        advice = "send less, or bound the answer by max_tokens"
        return RateLimitedError(f"{said}; {advice}.", transient=False, details=details)
    if asked.amount > left + _EXACT:
        said = f"{reckoned}, and {_money(left, currency)} of the day's {_money(amount, currency)} are left"
        return RateLimitedError(
            f"{said}; send less, or come again when the budget resets, at {resets}.",
            retry_after_ms=until_reset_ms,
            details=details,
        )
    said = f"{reckoned}, and calls under way may take what is left of the day's {_money(amount, currency)}"
    return RateLimitedError(
        f"{said}; send it again when they have ended.", retry_after_ms=WAIT_FOR_OTHERS_MS, details=details
    )


class Budget:
    """The day's bound, and what counts against it. On the event loop's thread only.

    ``amounts`` by currency; a currency without one is not bounded. The day is UTC's. ``of`` is said of one that is a
    principal's own, to be read after its name: `` of token:ci``.
    """

    def __init__(self, amounts: Mapping[str, float], *, of: str = "", clock: Callable[[], float] = time.time) -> None:
        self.amounts = amounts
        self._of = of
        self._clock = clock
        self._day = day_of(clock())
        self._spent: defaultdict[str, float] = defaultdict(float)
        # What completions that are not answered yet are reckoned at.
        self._under_way: defaultdict[str, float] = defaultdict(float)

    def restore(self, day: str, spent: Mapping[str, float]) -> None:
        """What was spent on a day before the process began; ignored where that is over."""
        if day == self._today():
            for currency, amount in spent.items():
                self._spent[currency] += amount

    @contextmanager
    def reserve(self, asked: Cost | None) -> Iterator[None]:
        """Count a request's reckoned cost as under way for the time of the block; None for one that is not reckoned.

        Raises:
            RateLimitedError: the vendor must not be asked.
        """
        self._today()
        refused = refusal(self.amounts, self._spent, self._under_way, asked, self._clock(), self._of)
        if refused is not None:
            raise refused
        if asked is None:
            yield
            return
        self._under_way[asked.currency] += asked.amount
        try:
            yield
        finally:
            self._under_way[asked.currency] -= asked.amount

    def spend(self, cost: Cost) -> None:
        """A completion was paid for."""
        self._today()
        self._spent[cost.currency] += cost.amount

    def state(self) -> dict[str, Any]:
        """For ``status``: by currency what may be spent today, what was, and what is reckoned for calls under way."""
        self._today()
        return _details(self.amounts, self._spent, self._under_way, self._clock())

    def _today(self) -> str:
        """The day; a new one begins with nothing spent."""
        today = day_of(self._clock())
        if today != self._day:
            self._day = today
            self._spent.clear()
        return today


def _details(
    amounts: Mapping[str, float], spent: Mapping[str, float], under_way: Mapping[str, float], now: float
) -> dict[str, Any]:
    return {
        "day": day_of(now),
        "resets_at": reset_at(now),
        "budget": dict(amounts),
        "spent": {currency: round(amount, 9) for currency, amount in spent.items()},
        "under_way": {currency: round(amount, 9) for currency, amount in under_way.items() if amount > _EXACT},
    }


def _money(amount: float, currency: str) -> str:
    return f"{amount:.4g} {currency}"
