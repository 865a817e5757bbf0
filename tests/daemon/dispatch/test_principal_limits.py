"""Limits of single principals."""

from dataclasses import replace

import pytest
from toold.daemon.dispatch import PrincipalLimit, PrincipalLimits, ProviderBudgets
from toold.daemon.dispatch.budget import Budget
from toold.protocol.error_codes import RateLimitedError
from toold.protocol.tool_call import LOCAL, Cost, Principal
from toold.providers import ModelPrice, OpenProvider

CI = Principal("token:ci")


def test_a_principal_without_limits_has_the_daemons() -> None:
    """No shared permits, and the daemon's budget only."""
    everybodys = Budget({})
    allowances = PrincipalLimits(everybodys)
    assert allowances.permits_of(LOCAL) is None
    assert list(allowances.budgets_of(LOCAL, "kimi")) == [everybodys]


def test_a_principals_sessions_share_its_permits() -> None:
    """One count for all of them, whose limit follows the configuration."""
    allowances = PrincipalLimits(Budget({}))
    allowances.apply([PrincipalLimit(CI.name, 2, {})])
    permits = allowances.permits_of(CI)
    assert permits is not None
    assert (permits.limit, allowances.permits_of(CI) is permits, allowances.permits_of(LOCAL)) == (2, True, None)
    allowances.apply([PrincipalLimit(CI.name, 5, {})])
    assert (allowances.permits_of(CI), permits.limit) == (permits, 5)
    allowances.apply([])
    assert allowances.permits_of(CI) is None


def test_a_principals_budget_is_separate() -> None:
    """Once it is spent only that principal is refused, by name."""
    allowances = PrincipalLimits(Budget({}))
    allowances.apply([PrincipalLimit(CI.name, None, {"USD": 1.0})])
    for budget in allowances.budgets_of(CI, "kimi"):
        budget.spend(Cost(1.0, "USD"))
    own = allowances.budgets_of(CI, "kimi")[-1]
    with pytest.raises(RateLimitedError, match="The daily budget of token:ci of 1 USD is spent"), own.reserve(None):
        pass
    for budget in allowances.budgets_of(LOCAL, "kimi"):
        with budget.reserve(None):
            pass


def test_spent_amounts_survive_changes_and_restarts() -> None:
    """A new token with the same name has the rest of the day's budget."""
    allowances = PrincipalLimits(Budget({}))
    allowances.apply([PrincipalLimit(CI.name, None, {"USD": 1.0})])
    own = allowances.budgets_of(CI, "kimi")[-1]
    allowances.restore(CI.name, own.state()["day"], {"USD": 0.7})
    allowances.apply([])
    allowances.apply([PrincipalLimit(CI.name, None, {"USD": 2.0})])
    assert allowances.budgets_of(CI, "kimi")[-1].state()["spent"] == {"USD": 0.7}
    assert allowances.budgets_of(CI, "kimi")[-1].state()["budget"] == {"USD": 2.0}


def test_a_provider_can_have_a_budget_of_its_own() -> None:
    """It counts for that provider alone; a model without a price in its currencies is refused."""
    budgets = ProviderBudgets()
    budgets.apply({"acme": {"USD": 1.0}})
    limits = PrincipalLimits(Budget({}), budgets)
    shared, own = limits.budgets_of(LOCAL, "acme")
    own.spend(Cost(1.0, "USD"))
    with pytest.raises(RateLimitedError, match="budget of the provider acme of 1 USD is spent"), own.reserve(None):
        pass
    assert list(limits.budgets_of(LOCAL, "kimi")) == [shared]
    model = OpenProvider("acme").model("large")
    with pytest.raises(RateLimitedError, match=r'sets price in \[models."acme/large"\]'):
        own.require_price(model)
    with pytest.raises(RateLimitedError, match="its price is in CNY"):
        own.require_price(replace(model, price=ModelPrice("CNY", 1, 1)))
    own.require_price(replace(model, price=ModelPrice("USD", 1, 1)))
    shared.require_price(model)
    budgets.apply({})
    own.require_price(model)
