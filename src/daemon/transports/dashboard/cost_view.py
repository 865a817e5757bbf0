"""The values for the page Cost, from daily totals. Pure."""

import datetime as dt
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from ....store import DailyUsage

PERIODS: Final = ((7, "7 days"), (30, "30 days"), (90, "90 days"), (365, "365 days"))
"""The periods in days, including today, and their labels in the form."""
WIDTH, HEIGHT = 1000, 160
"""The units of the chart."""
SHOWN_ROWS: Final = 100
_TURNS: Final = frozenset({"agent_turn", "agent_summary"})
"""The hidden tools with which a run of an agent asks models."""


def days_of(text: str) -> int:
    """The period in a query string; 30 days if it is unknown."""
    return int(text) if text in {str(days) for days, _ in PERIODS} else 30


def cost_view(usage: Sequence[DailyUsage], today: str, days: int) -> dict[str, Any]:
    """The values of the template ``cost``: ``cards``, ``charts`` and ``tables``. ``usage`` is the usage in the
    period."""
    listed = _days(today, days)
    yesterday = (dt.date.fromisoformat(today) - dt.timedelta(days=1)).isoformat()
    cards = [
        ("Today", [part for part in usage if part.day == today]),
        ("Yesterday", [part for part in usage if part.day == yesterday]),
        (f"Last {dict(PERIODS)[days]}", list(usage)),
    ]
    keys: dict[str, Callable[[DailyUsage], str]] = {
        "model": lambda part: f"{part.provider} {part.model}{' (simulated)' if part.simulated else ''}",
        "tool": _tool,
        "principal": lambda part: part.principal,
    }
    of_agents = [part for part in usage if part.agent]
    return {
        "cards": [{"title": title, **_sums(parts)} for title, parts in cards],
        "charts": _charts(usage, listed),
        "tables": {
            **{name: _table(usage, key) for name, key in keys.items()},
            "agent": _table(of_agents, lambda part: part.agent),
        },
    }


def _tool(part: DailyUsage) -> str:
    """The tool that asked the model, or the agent if it asked in a model turn of its run."""
    return part.agent or part.tool if part.tool in _TURNS else part.tool


def budget_rows(budgets: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row for each currency of each budget. ``budgets`` has each owner's ``Budget.state``, by the owner's name."""
    rows = []
    for owner, state in budgets.items():
        for currency, amount in state["budget"].items():
            spent, reserved = state["spent"].get(currency, 0.0), state["reserved"].get(currency, 0.0)
            left = max(0.0, amount - spent - reserved)
            rows.append(
                {
                    "owner": owner,
                    "currency": currency,
                    "amount": amount,
                    "spent": spent,
                    "reserved": reserved,
                    "left": left,
                    "used": min(amount, spent + reserved),
                    "resets_at": state["resets_at"],
                }
            )
    return rows


def _days(today: str, days: int) -> list[str]:
    last = dt.date.fromisoformat(today)
    return [(last - dt.timedelta(days=back)).isoformat() for back in range(days - 1, -1, -1)]


def _sums(parts: Iterable[DailyUsage]) -> dict[str, Any]:
    sums: dict[str, Any] = {"completions": 0, "input": 0, "output": 0, "cost": {}, "estimated": False}
    for part in parts:
        sums["completions"] += part.completions
        sums["input"] += part.input_tokens
        sums["output"] += part.output_tokens
        sums["estimated"] |= part.estimated > 0
        if part.currency and not part.simulated:
            sums["cost"][part.currency] = sums["cost"].get(part.currency, 0.0) + part.cost
    return sums


def _table(usage: Iterable[DailyUsage], key: Callable[[DailyUsage], str]) -> list[dict[str, Any]]:
    groups: defaultdict[str, list[DailyUsage]] = defaultdict(list)
    for part in usage:
        groups[key(part)].append(part)
    return _with_shares([{"name": name, **_sums(parts)} for name, parts in groups.items()])


def _with_shares(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, the most expensive first, each with its ``share``: its cost as a fraction
    of the largest row's cost, or its tokens if there are no prices.
    """
    costs: defaultdict[str, float] = defaultdict(float)
    for row in rows:
        for currency, amount in row["cost"].items():
            costs[currency] += amount
    # Amounts of several currencies are not added: the most frequent currency orders the table.
    main = max(costs, key=lambda currency: sum(currency in row["cost"] for row in rows), default="")

    def weight(row: Mapping[str, Any]) -> float:
        return float(row["cost"].get(main, 0.0)) if main and costs[main] else float(row["input"] + row["output"])

    rows.sort(key=lambda row: (-weight(row), -(row["input"] + row["output"]), row["name"]))
    largest = max((weight(row) for row in rows), default=0.0) or 1.0
    return [{**row, "share": weight(row) / largest} for row in rows[:SHOWN_ROWS]]


def _charts(usage: Iterable[DailyUsage], days: Sequence[str]) -> list[dict[str, Any]]:
    """A chart for each currency, or a chart of the tokens if there are no prices."""
    costs: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    tokens: defaultdict[str, float] = defaultdict(float)
    for part in usage:
        if part.currency and not part.simulated and part.cost:
            costs[part.currency][part.day] += part.cost
        tokens[part.day] += part.input_tokens + part.output_tokens
    if not costs:
        return [_chart("tokens", tokens, days)] if any(tokens.values()) else []
    return [_chart(currency, amounts, days) for currency, amounts in sorted(costs.items())]


def _chart(unit: str, amounts: Mapping[str, float], days: Sequence[str]) -> dict[str, Any]:
    largest = max(amounts.values(), default=0.0) or 1.0
    step = WIDTH / len(days)
    bars = []
    for place, day in enumerate(days):
        amount = amounts.get(day, 0.0)
        height = round(amount / largest * HEIGHT, 1) if amount else 0.0
        height = max(2.0, height) if amount else 0.0
        bars.append(
            {
                "day": day,
                "amount": amount,
                "x": round(place * step + step * 0.12, 2),
                "width": round(step * 0.76, 2),
                "y": round(HEIGHT - height, 1),
                "height": height,
            }
        )
    total = sum(amounts.get(day, 0.0) for day in days)
    return {"unit": unit, "largest": largest, "total": total, "bars": bars, "first": days[0], "last": days[-1]}
