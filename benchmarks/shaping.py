"""The speed of shaping: filter and project 100,000 rows, compared with comprehensions and jmespath."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

import jmespath  # type: ignore[import-untyped] # it has no types
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from toold.shaping import plan

ROWS: Final = 100_000
ROUNDS: Final = 9
RATIO_TARGET: Final = 10.0
"""The target, as a multiple of a comprehension without checks."""
_FIELDS: Final = ("id", "name", "amount")
_OPTIONS: Final = {"filter": "status = open AND amount > 50", "select_fields": list(_FIELDS)}

Shape = Callable[[list[dict[str, Any]]], Any]


@dataclass(frozen=True, slots=True)
class Timed:
    """``ms`` is the median of the rounds."""

    what: str
    ms: float


def trusting(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A comprehension without checks: every field exists and has the right type and case."""
    return [
        {"id": row["id"], "name": row["name"], "amount": row["amount"]}
        for row in rows
        if row["status"] == "open" and row["amount"] > 50
    ]


def careful(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A comprehension with the checks that the filter makes."""
    return [
        {name: row[name] for name in _FIELDS if name in row}
        for row in rows
        if isinstance(status := row.get("status"), str)
        and status.casefold() == "open"
        and isinstance(amount := row.get("amount"), int | float)
        and amount > 50
    ]


_JMESPATH: Final = jmespath.compile("[?status == 'open' && amount > `50`].{id: id, name: name, amount: amount}")


def by_jmespath(rows: list[dict[str, Any]]) -> Any:
    """The same as a precompiled JMESPath expression, which is case-sensitive."""
    return _JMESPATH.search(rows)


def shaping(rows: list[dict[str, Any]]) -> Any:
    """Shaping, from the options of a call."""
    return plan(_OPTIONS).apply(rows).value


def measure() -> list[Timed]:
    """Runs all ways in turn, round by round, after checking that they agree."""
    chance = random.Random(1)
    rows = [
        {
            "id": number,
            "name": f"row {number}",
            "amount": chance.random() * 100,
            "status": chance.choice(["open", "done"]),
        }
        for number in range(ROWS)
    ]
    ways: dict[str, Shape] = {
        "comprehension": trusting,
        "careful comprehension": careful,
        "jmespath": by_jmespath,
        "shaping": shaping,
    }
    answers = [way(rows) for way in ways.values()]
    if any(answer != answers[0] for answer in answers):
        raise RuntimeError("the ways to shape do not agree")
    del answers
    seen: dict[str, list[float]] = {what: [] for what in ways}
    for _ in range(ROUNDS):
        for what, way in ways.items():
            began = time.perf_counter()
            way(rows)
            seen[what].append((time.perf_counter() - began) * 1000)
    return [Timed(what, median(times)) for what, times in seen.items()]


def show(timed: list[Timed], console: Console) -> None:
    """Print the table."""
    table = Table(title=f"filter and project {ROWS:,} rows", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("", no_wrap=True)
    for heading in ("ms", "ratio", "target"):
        table.add_column(heading, justify="right")
    least = timed[0].ms
    for one in timed:
        target = f"≤ {RATIO_TARGET:.0f}" if one is timed[-1] else ""
        table.add_row(one.what, f"{one.ms:.1f}", f"{one.ms / least:.1f}", target)
    console.print(table)
