"""The page Cost from the sums by day."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.daemon.transports.dashboard.cost_view import HEIGHT, WIDTH, budget_rows, cost_view, days_of
from toold.store import DailyUsage

TODAY = "2026-03-02"


def usage(day: str = TODAY, **fields: Any) -> DailyUsage:
    values: dict[str, Any] = {
        "principal": "local",
        "tool": "chat",
        "provider": "kimi",
        "model": "k2",
        "simulated": False,
        "currency": "USD",
        "completions": 1,
        "input_tokens": 100,
        "output_tokens": 10,
        "cached_tokens": 0,
        "cost": 1.0,
        "estimated": 0,
    }
    return DailyUsage(day=day, **{**values, **fields})


def test_the_cards_answer_what_yesterday_cost() -> None:
    """Today, yesterday, also over the end of a month, and the period, each by currency."""
    parts = [usage(cost=0.5), usage("2026-03-01", cost=2.0), usage("2026-03-01", currency="CNY", cost=7.0)]
    cards = cost_view(parts, TODAY, 7)["cards"]
    assert [(card["title"], card["cost"]) for card in cards] == [
        ("Today", {"USD": 0.5}),
        ("Yesterday", {"USD": 2.0, "CNY": 7.0}),
        ("Last 7 days", {"USD": 2.5, "CNY": 7.0}),
    ]
    assert cards[2]["input"] == 300


def test_currencies_have_charts_of_their_own() -> None:
    """Amounts of two currencies are never added; a day has the height of its share of the largest one."""
    parts = [usage(cost=1.0), usage("2026-03-01", cost=4.0), usage(currency="CNY", cost=3.0)]
    cny, usd = cost_view(parts, TODAY, 7)["charts"]
    assert (cny["unit"], usd["unit"]) == ("CNY", "USD")
    assert [bar["height"] for bar in usd["bars"]] == [0.0] * 5 + [HEIGHT, HEIGHT / 4]
    assert usd["total"] == 5.0


def test_without_prices_the_chart_has_tokens() -> None:
    """Simulated models cost nothing, and their tokens are shown; without any use there is no chart."""
    view = cost_view([usage(simulated=True, cost=5.0)], TODAY, 30)
    assert [chart["unit"] for chart in view["charts"]] == ["tokens"]
    assert view["cards"][0]["cost"] == {}
    assert view["tables"]["model"][0]["name"] == "kimi k2 (simulated)"
    assert cost_view([], TODAY, 30)["charts"] == []


def test_the_tables_begin_with_what_costs_most() -> None:
    """Each row has its share of the first one."""
    parts = [usage(tool="echo", cost=1.0), usage(tool="chat", cost=4.0), usage(tool="free", currency="", cost=0.0)]
    rows = cost_view(parts, TODAY, 7)["tables"]["tool"]
    assert [(row["name"], row["share"]) for row in rows] == [("chat", 1.0), ("echo", 0.25), ("free", 0.0)]


def test_what_is_left_of_budgets() -> None:
    """What is reserved by running calls is not left; an overspent budget has nothing left."""
    state = {
        "budget": {"USD": 5.0, "CNY": 1.0},
        "spent": {"USD": 2.0, "CNY": 1.5},
        "reserved": {"USD": 1.0},
        "resets_at": 0,
    }
    rows = budget_rows({"all calls": state})
    assert [(row["currency"], row["left"], row["used"]) for row in rows] == [("USD", 2.0, 3.0), ("CNY", 0.0, 1.0)]
    assert budget_rows({"all calls": {"budget": {}, "spent": {}, "reserved": {}, "resets_at": 0}}) == []


def test_what_agents_spent() -> None:
    """All that their runs spent, also by tools that they called. A model that no tool asked counts for the agent."""
    parts = [
        usage(tool="agent_turn", agent="a", cost=1.0),
        usage(tool="chat", agent="a", cost=2.0),
        usage(tool="agent_turn", agent="b", cost=4.0),
        usage(tool="chat", cost=8.0),
    ]
    tables = cost_view(parts, TODAY, 7)["tables"]
    assert {row["name"]: row["cost"]["USD"] for row in tables["agent"]} == {"a": 3.0, "b": 4.0}
    assert {row["name"]: row["cost"]["USD"] for row in tables["tool"]} == {"chat": 10.0, "b": 4.0, "a": 1.0}


@pytest.mark.parametrize(("text", "days"), [("7", 7), ("365", 365), ("", 30), ("8", 30), ("x" * 9999, 30)])
def test_the_period_is_one_of_the_form(text: str, days: int) -> None:
    """Any other is 30 days."""
    assert days_of(text) == days


@given(st.lists(st.tuples(st.integers(0, 6), st.floats(0, 1e9)), max_size=20))
def test_bars_stay_in_the_chart(amounts: list[tuple[int, float]]) -> None:
    """Whatever the amounts are."""
    parts = [usage(f"2026-02-2{2 + day}", cost=cost) for day, cost in amounts]
    for chart in cost_view(parts, "2026-02-28", 7)["charts"]:
        for bar in chart["bars"]:
            assert 0 <= bar["x"] <= bar["x"] + bar["width"] <= WIDTH
            assert bar["y"] >= 0
            assert bar["y"] + bar["height"] <= HEIGHT + 0.1
