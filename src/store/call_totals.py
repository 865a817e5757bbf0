"""The sums over all calls, from the sums that a database has calculated."""

from collections.abc import Iterable
from typing import Any

from .store_rows import CallTotals, ModelSums, Sums


def summed(rows: Iterable[tuple[Any, ...]]) -> CallTotals:
    """Returns the sums of rows ``(tool, outcome, provider, model, simulated, currency, calls, input tokens, output
    tokens, cost, earliest start)``. Tool and model are empty if unknown, the currency if there is no price.
    """
    everything, by_tool, by_outcome = Sums(), dict[str, Sums](), dict[str, int]()
    by_model: dict[tuple[str, str, bool], ModelSums] = {}
    since: float | None = None
    for tool, outcome, provider, model, simulated, currency, *sums, first in rows:
        parts = [everything, by_tool.setdefault(tool or "unknown", Sums())]
        if model:
            key = (provider, model, bool(simulated))
            empty = ModelSums(provider=provider, model=model, simulated=bool(simulated))
            parts.append(by_model.setdefault(key, empty))
        for part in parts:
            _add(part, *sums, failed=outcome != "ok", currency="" if simulated else currency)
        by_outcome[outcome] = by_outcome.get(outcome, 0) + sums[0]
        since = first if since is None else min(since, first)
    return CallTotals(
        since=since, all=everything, by_tool=by_tool, by_outcome=by_outcome, by_model=list(by_model.values())
    )


def _add(
    part: Sums, calls: int, input_tokens: int, output_tokens: int, cost: float, *, failed: bool, currency: str
) -> None:
    part.calls += calls
    part.errors += calls if failed else 0
    part.input_tokens += input_tokens
    part.output_tokens += output_tokens
    if currency:
        part.cost[currency] = part.cost.get(currency, 0.0) + cost
