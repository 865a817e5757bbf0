"""Limits the spending of one run at vendors: money and tokens of a call and all its descendants, checked before each
request.

The decisions are pure functions; ``RunBudget`` counts.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple

from ...protocol.error_codes import RateLimitedError, ServiceUnavailableError
from ...protocol.tool_call import Cost, Json, ModelUsage, Usage
from ...providers import Model
from .budget import RESERVED_RETRY_MS, Budget
from .usage_meter import UsageMeter

_EXACT: Final = 1e-9
"""More than the rounding error of a sum of amounts."""


class RunLimits(NamedTuple):
    """The spending limits of a run."""

    owner: str
    """The owner of the run, for errors: an agent's name."""
    amounts: Mapping[str, float]
    """Money by currency. If it is not empty, models without a price in these currencies are refused."""
    max_tokens: int | None
    """Tokens of prompts and answers together."""


class Spent(NamedTuple):
    """The amounts that a run has spent, or that its running requests have reserved."""

    amounts: Mapping[str, float]
    tokens: int


def price_refusal(limits: RunLimits, model: Model) -> ServiceUnavailableError | None:
    """The refusal of a model whose requests the run's amounts cannot count."""
    currency = None if model.price is None else model.price.currency
    if not limits.amounts or currency in limits.amounts:
        return None
    limit = " and ".join(_money(amount, unit) for unit, amount in limits.amounts.items())
    if currency is not None:
        problem = f"its price is in {currency}; add an amount in {currency}"
    elif model.setting is not None:
        problem = f"its price is unknown; set price in {model.setting}"
    else:
        problem = "its price is unknown; choose a model with a price"
    message = f"The run of {limits.owner} may cost {limit}, which cannot be checked for {model.id}: {problem}"
    return ServiceUnavailableError.content_free(
        f"{message}, or limit its tokens instead.", executed="no", transient=False
    )


def run_refusal(
    limits: RunLimits, spent: Spent, reserved: Spent, expected: Usage | None, cost: Cost | None
) -> RateLimitedError | None:
    """The refusal of a vendor request; None if it may be sent. ``expected`` and ``cost`` are its estimates. None stands
    for a request without tokens, which is refused only if the budget is exhausted.
    """
    for currency, amount in limits.amounts.items():
        used, held = spent.amounts.get(currency, 0.0), reserved.amounts.get(currency, 0.0)
        wanted = cost.amount if cost is not None and cost.currency == currency else 0.0
        if used + _EXACT >= amount or used + held + wanted > amount + _EXACT:
            short = used + _EXACT >= amount or used + wanted > amount + _EXACT
            parts = _money(amount, currency), _money(used, currency), _money(wanted, currency)
            return _refused(limits, spent, f"cost {parts[0]}", f"{parts[1]} are spent", parts[2], final=short)
    if limits.max_tokens is None:
        return None
    wanted_tokens = 0 if expected is None else expected.input_tokens + expected.output_tokens
    if spent.tokens >= limits.max_tokens or spent.tokens + reserved.tokens + wanted_tokens > limits.max_tokens:
        short = spent.tokens >= limits.max_tokens or spent.tokens + wanted_tokens > limits.max_tokens
        use = f"use {limits.max_tokens:,} tokens"
        return _refused(limits, spent, use, f"{spent.tokens:,} are used", f"{wanted_tokens:,} tokens", final=short)
    return None


def _refused(limits: RunLimits, spent: Spent, limit: str, used: str, wanted: str, *, final: bool) -> RateLimitedError:
    details: dict[str, Json] = {
        "run_of": limits.owner,
        "run_budget": dict(limits.amounts),
        "max_tokens": limits.max_tokens,
        "spent": {currency: round(amount, 9) for currency, amount in spent.amounts.items()},
        "tokens": spent.tokens,
    }
    message = f"The run of {limits.owner} may {limit}: {used}, and the next request is estimated at {wanted}"
    if final:
        advice = "raise the limit, or give it less to do"
        return RateLimitedError.content_free(f"{message}; {advice}.", executed="no", transient=False, details=details)
    advice = "its other requests have reserved the rest; retry when they have ended"
    return RateLimitedError.content_free(
        f"{message}; {advice}.", executed="no", retry_after_ms=RESERVED_RETRY_MS, details=details
    )


class RunBudget:
    """The spending of one call and its descendants. Implements ``tools.RunSpending``. Only for the event loop's thread.

    A request must fit into the budget of its run and of all outer runs, so an inner run cannot spend more than an outer
    run has left. Simulated requests count at their list price, so that a limit can be tested.
    """

    def __init__(self, limits: RunLimits, outer: "RunBudget | None", daily: Budget | None = None) -> None:
        self._limits = limits
        self._chain: tuple[RunBudget, ...] = (self, *(outer._chain if outer is not None else ()))
        self.daily: tuple[Budget, ...] = (
            *(() if daily is None else (daily,)),
            *(outer.daily if outer is not None else ()),
        )
        """The daily budgets of the runs' owners."""
        self._amounts: defaultdict[str, float] = defaultdict(float)
        self._reserved: defaultdict[str, float] = defaultdict(float)
        self._reserved_tokens = 0
        self._tokens = 0
        self._meter = UsageMeter()

    @property
    def limited(self) -> bool:
        """Whether any of the runs has a limit."""
        return any(run._limits.amounts or run._limits.max_tokens is not None for run in self._chain)

    @property
    def usage_by_model(self) -> tuple[ModelUsage, ...]:
        return self._meter.usage_by_model

    @property
    def tokens(self) -> int:
        return self._tokens

    @property
    def spent(self) -> Mapping[str, float]:
        return {currency: round(amount, 9) for currency, amount in self._amounts.items()}

    @property
    def left_tokens(self) -> int | None:
        left = [
            run._limits.max_tokens - run._tokens - run._reserved_tokens
            for run in self._chain
            if run._limits.max_tokens is not None
        ]
        return max(0, min(left)) if left else None

    @property
    def left(self) -> Mapping[str, float]:
        left: dict[str, float] = {}
        for run in self._chain:
            for currency, amount in run._limits.amounts.items():
                rest = max(0.0, amount - run._amounts[currency] - run._reserved[currency])
                left[currency] = round(min(rest, left.get(currency, rest)), 9)
        return left

    def check_price(self, model: Model) -> None:
        """Check that all runs can count requests to the model.

        Raises:
            ServiceUnavailableError: a run cannot; the message names the setting.
        """
        for run in self._chain:
            refused = price_refusal(run._limits, model)
            if refused is not None:
                raise refused

    @contextmanager
    def reserve(self, expected: Usage | None, cost: Cost | None) -> Iterator[None]:
        """Reserve a request's estimated tokens and cost while the block runs.

        Raises:
            RateLimitedError: it does not fit; the vendor must not be asked.
        """
        for run in self._chain:
            spent, reserved = Spent(run._amounts, run._tokens), Spent(run._reserved, run._reserved_tokens)
            refused = run_refusal(run._limits, spent, reserved, expected, cost)
            if refused is not None:
                raise refused
        tokens = 0 if expected is None else expected.input_tokens + expected.output_tokens
        self._hold(tokens, cost, 1)
        try:
            yield
        finally:
            self._hold(tokens, cost, -1)

    def _hold(self, tokens: int, cost: Cost | None, sign: int) -> None:
        for run in self._chain:
            run._reserved_tokens += sign * tokens
            if cost is not None:
                run._reserved[cost.currency] += sign * cost.amount

    def spend(self, usage: ModelUsage, list_cost: Cost | None) -> None:
        """Count a request's usage in all runs. ``list_cost`` is its price, whether or not it was billed."""
        for run in self._chain:
            run._count(usage, list_cost)

    def restore(self, earlier: Iterable[tuple[ModelUsage, Cost | None]]) -> None:
        """Count the spending of this run before it was resumed; outer runs count their own spending."""
        for usage, list_cost in earlier:
            self._count(usage, list_cost)

    def _count(self, usage: ModelUsage, list_cost: Cost | None) -> None:
        self._meter.add_usage(usage)
        self._tokens += usage.usage.input_tokens + usage.usage.output_tokens
        if list_cost is not None:
            self._amounts[list_cost.currency] += list_cost.amount


def _money(amount: float, currency: str) -> str:
    return f"{amount:.4g} {currency}"
