"""The usage of a run's calls, and an agent's spending on a day: sums of audit rows. Only reads.

Ids of child calls begin with their parent's id. The id of a child that a resumed call made has a suffix, which its key
in the run does not have. Each database has its own SQL for these queries.
"""

import datetime as dt
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ..protocol.tool_call import Cost, ModelUsage, Usage
from .run_rows import RunUsage

Ask = Callable[[str, Mapping[str, Any]], Iterable[Sequence[Any]]]
"""Runs a statement with named values; returns its rows."""

_SUFFIX: Final = re.compile(r"~[0-9a-f]+(?=/|$)")
_DAY_S: Final = 86400.0


class RunUsageStatements(NamedTuple):
    """The SQL of one database."""

    roots: str
    """The calls of ``principal`` that belong to ``run``: id and time of start."""
    calls: str
    """The audit rows of ``call_id`` and its descendants with tokens, since ``since``: id, provider, model, whether it
    is simulated, tokens, cost and currency."""
    spending: str
    """The audit rows with a cost since ``since``: id, time of end, cost and currency."""
    is_child: str
    """A row if the child ``name`` of ``run`` is a call of ``tool``."""
    is_root: str
    """A row if ``call_id`` is a call of ``tool``."""
    run_of: str
    """The run of ``call_id``."""


def run_usage(ask: Ask, sql: RunUsageStatements, run: str, principal: str) -> list[RunUsage]:
    """Returns the spending of the ended calls of a principal's run, including the calls that resumed it."""
    root, _, inner = run.partition("/")
    roots = list(ask(sql.roots, {"run": root, "principal": principal}))
    usage: list[RunUsage] = []
    for call_id, started_at in roots:
        own = f"{call_id}/{inner}" if inner else call_id
        # One second earlier, because the two times are read from the clock one after the other.
        for row in ask(sql.calls, {"since": started_at - 1, "principal": principal, "call_id": call_id}):
            path = _SUFFIX.sub("", row[0])
            if path == own or path.startswith(f"{own}/"):
                usage.append(_run_usage(*row[1:]))
    return usage


def _run_usage(
    provider: str | None,
    model: str | None,
    simulated: int,
    input_tokens: int,
    output_tokens: int,
    amount: float | None,
    currency: str | None,
) -> RunUsage:
    cost = None if amount is None or currency is None else Cost(amount, currency)
    used = ModelUsage(provider or "", model or "", 1, Usage(input_tokens, output_tokens), cost)
    return RunUsage(usage=used, simulated=bool(simulated))


def spending_of_tool(ask: Ask, sql: RunUsageStatements, tool: str, day: str) -> dict[str, float]:
    """Returns the cost, by currency, of the calls of a tool and of their descendants that ended on a day in UTC
    (``YYYY-MM-DD``).
    """
    begins = dt.datetime.fromisoformat(day).replace(tzinfo=dt.UTC).timestamp()
    belongs: dict[str, bool] = {}
    spent: defaultdict[str, float] = defaultdict(float)
    # A detached call takes at most a day.
    for call_id, ended_at, amount, currency in ask(sql.spending, {"since": begins - _DAY_S}):
        if begins <= ended_at < begins + _DAY_S and any(
            _belongs(ask, sql, path, tool, belongs) for path in _ancestors(_SUFFIX.sub("", call_id))
        ):
            spent[currency] += amount
    return dict(spent)


def _ancestors(path: str) -> Iterator[str]:
    """The paths of a call and its parents, the outermost first."""
    parts = path.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts) + 1))


def _belongs(ask: Ask, sql: RunUsageStatements, path: str, tool: str, known: dict[str, bool]) -> bool:
    if path not in known:
        run, _, name = path.rpartition("/")
        if run:
            found = ask(sql.is_child, {"run": _run_of(ask, sql, run), "name": name, "tool": tool})
        else:
            found = ask(sql.is_root, {"call_id": name, "tool": tool})
        known[path] = next(iter(found), None) is not None
    return known[path]


def _run_of(ask: Ask, sql: RunUsageStatements, path: str) -> str:
    root, slash, inner = path.partition("/")
    row = next(iter(ask(sql.run_of, {"call_id": root})), None)
    return f"{root if row is None else row[0]}{slash}{inner}"
