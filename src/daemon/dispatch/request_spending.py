"""Reserves and counts the cost of one request to a vendor, in daily budgets, the budget of a run, and the limits that
all nodes share.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from ...protocol.tool_call import Cost, ModelUsage, Usage
from ...providers import Model
from .budget import Budget
from .context_services import ContextServices
from .provider_limiter import ProviderLimiter
from .running_call import RunningCall
from .vendor_admission import VendorAdmission


class RequestSpending:
    """The spending of one request to the provider of ``limiter``."""

    __slots__ = ("_budgets", "_call", "_limited", "_limiter", "_services")

    def __init__(self, call: RunningCall, services: ContextServices, limiter: ProviderLimiter) -> None:
        self._call = call
        self._services = services
        self._limiter = limiter
        self._budgets = self._daily_budgets(limiter.provider.name)
        # Whether the daily budgets limit it.
        self._limited = any(budget.amounts for budget in self._budgets) and not limiter.provider.simulated

    @property
    def needs_estimate(self) -> bool:
        """Whether ``reserved`` needs the expected usage."""
        run = self._call.run_budget
        return self._limited or (run is not None and run.limited)

    @contextmanager
    def reserved(self, model: Model | None = None, expected: Usage | None = None) -> Iterator[VendorAdmission | None]:
        """Reserve a request's estimated cost while the block runs, or yield the admission that reserves it on all
        nodes.

        ``model`` is None if the request asks no model.

        Raises:
            CallError: it does not fit into a budget, or a budget cannot count the model.
        """
        run = self._call.run_budget
        cost = None if model is None or expected is None else model.cost(expected)
        with ExitStack() as reserved:
            if model is not None and self._limited:
                for budget in self._budgets:
                    budget.require_price(model)
            admission = self._enter_budgets(reserved, cost if self._limited else None)
            if run is not None:
                if model is not None:
                    run.check_price(model)
                reserved.enter_context(run.reserve(expected, cost))
            yield admission

    def add(self, usage: ModelUsage, model: Model, admission: VendorAdmission | None) -> None:
        """Count the usage of the request."""
        self._call.meter.add_usage(usage)
        if usage.cost is not None:
            if admission is not None:
                admission.spend(usage.cost)
            for budget in self._daily_budgets(usage.provider):  # a reload may have replaced them
                budget.spend(usage.cost)
        if self._call.run_budget is not None:
            simulated = self._call.meter.simulated
            self._call.run_budget.spend(usage, model.cost(usage.usage) if simulated else usage.cost)

    def _enter_budgets(self, stack: ExitStack, estimate: Cost | None) -> VendorAdmission | None:
        """Reserve an estimate in all daily budgets until the stack ends; or return the admission that does so."""
        if self._services.admissions is None:
            for budget in self._budgets:
                stack.enter_context(budget.reserve(estimate))
            return None
        provider, permits = self._limiter.provider.name, self._limiter.permits.limit
        admission = self._services.admissions.admission(provider, permits, self._budgets, estimate)
        stack.callback(admission.close)
        return admission

    def _daily_budgets(self, provider: str) -> Sequence[Budget]:
        """The daily budgets into which a request must fit."""
        budgets, run = self._services.budgets_of(self._call.session.principal, provider), self._call.run_budget
        return budgets if run is None else (*budgets, *run.daily)
