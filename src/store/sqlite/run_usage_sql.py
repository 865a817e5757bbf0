"""What the calls of a run spent, and what an agent spent on a day: sums of audit rows. Only reads.

Ids of child calls begin with their parent's id. A child that a resumed call made has a suffix after its name; the
key of its run has no such suffix.
"""

import datetime as dt
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from ...protocol.tool_call import Cost, ModelUsage, Usage
from ..run_rows import RunUsage

_SUFFIX: Final = re.compile(r"~[0-9a-f]+(?=/|$)")
_DAY_S: Final = 86400.0


_CALLS: Final = """
SELECT id, provider, model, simulated, input_tokens, output_tokens, cost_amount, cost_currency FROM call
WHERE started_at >= ?1 AND principal = ?2 AND (id = ?3 OR (id > ?3 || '/' AND id < ?3 || '0'))
  AND input_tokens + output_tokens > 0
"""
_SPENDING: Final = """
SELECT id, started_at + latency_ms / 1000, cost_amount, cost_currency FROM call
WHERE started_at >= ? AND cost_amount > 0
"""


def usage_of_run(connection: sqlite3.Connection, run: str, principal: str) -> list[RunUsage]:
    """Returns what the ended calls of a principal's run spent, which includes the calls that resumed it."""
    root, _, inner = run.partition("/")
    roots = connection.execute(
        "SELECT call_id, started_at FROM run WHERE (run = ?1 OR call_id = ?1) AND principal = ?2", (root, principal)
    ).fetchall()
    usage: list[RunUsage] = []
    for call_id, started_at in roots:
        own = f"{call_id}/{inner}" if inner else call_id
        # A second earlier: the two times are read from the clock one after the other.
        for row in connection.execute(_CALLS, (started_at - 1, principal, call_id)):
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


def spent_by_tool(connection: sqlite3.Connection, tool: str, day: str) -> dict[str, float]:
    """Returns the cost, by currency, of the calls of a tool and of their descendants that ended on a day in UTC
    (``YYYY-MM-DD``).
    """
    begins = dt.datetime.fromisoformat(day).replace(tzinfo=dt.UTC).timestamp()
    belongs: dict[str, bool] = {}
    spent: defaultdict[str, float] = defaultdict(float)
    # A detached call takes a day at most.
    for call_id, ended_at, amount, currency in connection.execute(_SPENDING, (begins - _DAY_S,)):
        if begins <= ended_at < begins + _DAY_S and any(
            _belongs(connection, path, tool, belongs) for path in _ancestors(_SUFFIX.sub("", call_id))
        ):
            spent[currency] += amount
    return dict(spent)


def _ancestors(path: str) -> Iterator[str]:
    """The path of a call and of those around it, the outermost first."""
    parts = path.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts) + 1))


def _belongs(connection: sqlite3.Connection, path: str, tool: str, known: dict[str, bool]) -> bool:
    if path not in known:
        run, _, name = path.rpartition("/")
        if run:
            sql = "SELECT 1 FROM journal WHERE session_id = ? AND request_key = ? AND child AND tool = ?"
            found = connection.execute(sql, (_run_of(connection, run), name, tool))
        else:
            found = connection.execute("SELECT 1 FROM run WHERE call_id = ? AND tool = ?", (name, tool))
        known[path] = found.fetchone() is not None
    return known[path]


def _run_of(connection: sqlite3.Connection, path: str) -> str:
    root, slash, inner = path.partition("/")
    row = connection.execute("SELECT run FROM run WHERE call_id = ?", (root,)).fetchone()
    return f"{root if row is None else row[0]}{slash}{inner}"
