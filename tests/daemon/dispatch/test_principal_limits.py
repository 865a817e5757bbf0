"""Limits of single principals."""

import pytest
from toold.daemon.dispatch import PrincipalLimit, PrincipalLimits
from toold.daemon.dispatch.budget import Budget
from toold.protocol.error_codes import RateLimitedError
from toold.protocol.tool_call import LOCAL, Cost, Principal

CI = Principal("token:ci")


def test_a_principal_without_limits_has_the_daemons() -> None:
    """No shared permits, and the daemon's budget only."""
    everybodys = Budget({})
    allowances = PrincipalLimits(everybodys)
    assert allowances.permits_of(LOCAL) is None
    assert list(allowances.budgets_of(LOCAL)) == [everybodys]


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
    for budget in allowances.budgets_of(CI):
        budget.spend(Cost(1.0, "USD"))
    own = allowances.budgets_of(CI)[-1]
    with pytest.raises(RateLimitedError, match="The daily budget of token:ci of 1 USD is spent"), own.reserve(None):
        pass
    for budget in allowances.budgets_of(LOCAL):
        with budget.reserve(None):
            pass


def test_spent_amounts_survive_changes_and_restarts() -> None:
    """A new token with the same name has the rest of the day's budget."""
    allowances = PrincipalLimits(Budget({}))
    allowances.apply([PrincipalLimit(CI.name, None, {"USD": 1.0})])
    own = allowances.budgets_of(CI)[-1]
    allowances.restore(CI.name, own.state()["day"], {"USD": 0.7})
    allowances.apply([])
    allowances.apply([PrincipalLimit(CI.name, None, {"USD": 2.0})])
    assert allowances.budgets_of(CI)[-1].state()["spent"] == {"USD": 0.7}
    assert allowances.budgets_of(CI)[-1].state()["budget"] == {"USD": 2.0}
