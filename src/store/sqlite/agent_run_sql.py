"""The SQL of recorded runs of agents: their list, and the child calls of one run. Only reads, except ``set_outcome``.

A run of an agent is a run whose first child is its snapshot. Its calls are found by their path: the children of a child
call have its path as their session.
"""

import json
import math
import re
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from ...protocol.agent_record import AgentRecord, AgentRunState, AgentRunSummary, ChildEntry

_SUFFIX: Final = re.compile(r"~[0-9a-f]+(?=/|$)")
"""Part of the ids of children that a resumed call made. The key of their run does not contain it."""

# CROSS JOIN keeps the order of the index on started_at.
_RUNS: Final = """
SELECT call_id, run, run.tool, run.principal, run.started_at, outcome, stopped_by, unfinished
FROM run CROSS JOIN journal ON session_id = run.run AND request_key = 'snapshot' AND journal.tool = 'agent_snapshot'
WHERE run.principal = coalesce(?, run.principal) AND run.tool = coalesce(?, run.tool)
ORDER BY run.started_at DESC
"""
# The run of a call that created a detached call is that of the detached call, which may continue an earlier run.
_RUN_OF: Final = """
SELECT coalesce(detached.run, run.run), run.principal FROM run LEFT JOIN run AS detached ON detached.call_id = run.run
WHERE run.call_id = ?
"""
# The second condition for calls is that of an agent's code, whose steps have names such as s3 and left.s1.
_COUNTS: Final = """
SELECT count(*) FILTER (WHERE tool = 'agent_turn' AND request_key NOT LIKE '%#%'),
       count(*) FILTER (WHERE request_key GLOB 't[0-9]*.[0-9]*' OR session_id = ?1 AND request_key GLOB '*s[0-9]*'
                        AND tool NOT IN ('agent_turn', 'agent_role', 'agent_step', 'agent_read_step'))
FROM journal WHERE child AND (session_id = ?1 OR (session_id > ?1 || '/' AND session_id < ?1 || '0'))
"""
# The index on started_at finds the first of these rows; the ids of other runs are compared only.
_SPENT: Final = """
SELECT root, cost_currency, sum(input_tokens), sum(output_tokens), total(cost_amount) FROM (
    SELECT substr(id, 1, instr(id || '/', '/') - 1) AS root, id, cost_currency, input_tokens, output_tokens, cost_amount
    FROM call WHERE started_at BETWEEN ?1 AND ?4 AND input_tokens + output_tokens > 0
) WHERE root IN (SELECT value FROM json_each(?2))
  AND (?3 = '' OR id = root || '/' || ?3 OR (id > root || '/' || ?3 || '/' AND id < root || '/' || ?3 || '0'))
GROUP BY root, cost_currency
"""
_ENTRIES: Final = """
SELECT session_id, request_key, tool, CASE WHEN state = 'done' AND NOT unfinished AND ended_at < ?2 THEN 'expired'
       ELSE state END AS shown, started_at, result_bytes,
       CASE WHEN json_valid(CAST(result AS TEXT)) THEN json_extract(CAST(result AS TEXT), '$.error.code') END,
       CASE WHEN ?3 OR tool IN ('agent_snapshot', 'agent_turn', 'agent_summary', 'agent_role') THEN result END
FROM journal LEFT JOIN result USING (number)
WHERE child AND (session_id = ?1 OR (session_id > ?1 || '/' AND session_id < ?1 || '0')) ORDER BY number
"""


class _Call(NamedTuple):
    """A row of the table ``run``."""

    call_id: str
    run: str
    tool: str
    principal: str
    started_at: float
    outcome: str | None
    stopped_by: str | None
    unfinished: int
    """Whether its run has not ended."""

    @property
    def possible_states(self) -> set[AgentRunState]:
        """The states that its run may have."""
        if self.outcome is not None:
            return {"finished"} if self.outcome == "ok" else {"failed"}
        return {"running", "paused", "finished", "failed"} if self.unfinished else {"finished", "failed"}


def set_outcome(connection: sqlite3.Connection, call_id: str, outcome: str, stopped_by: str) -> None:
    """Stores how the run that this call continues has ended."""
    connection.execute("UPDATE run SET outcome = ?, stopped_by = ? WHERE call_id = ?", (outcome, stopped_by, call_id))


def list_runs(
    connection: sqlite3.Connection,
    principal: str | None,
    *,
    agent: str | None = None,
    states: Collection[AgentRunState] = (),
    limit: int,
) -> list[AgentRunSummary]:
    """Returns the newest runs of agents, of a principal or of all, without those that another call made."""
    runs: list[AgentRunSummary] = []
    for call in _newest_calls(connection, principal, agent):
        if states and call.possible_states.isdisjoint(states):
            continue  # without the queries for its summary
        summary = _summary(connection, call)
        if not states or summary.state in states:
            runs.append(summary)
        if len(runs) == limit:
            break
    return _with_spending(connection, runs)


def find_run(
    connection: sqlite3.Connection, call_id: str, principal: str | None, *, results_since: float, all_results: bool
) -> AgentRecord | None:
    """Returns the run of an agent by the id of one of its calls, or by that of a child call that is an agent; None if
    there is none. Results from before ``results_since``, a time of the store's clock, are omitted; so are results of
    tools unless ``all_results`` is true.
    """
    root, _, inner = _SUFFIX.sub("", call_id).partition("/")
    row = connection.execute(_RUN_OF, (root,)).fetchone()
    if row is None or principal not in {None, row[1]}:
        return None
    run = str(row[0])
    summary = _nested(connection, run, inner) if inner else _of_run(connection, run)
    if summary is None:
        return None
    key = f"{run}/{inner}" if inner else run
    entries = tuple(_entries(connection, key, results_since=results_since, all_results=all_results))
    (summary,) = _with_spending(connection, [summary], inner)
    return AgentRecord(summary=summary, entries=entries)


def _newest_calls(connection: sqlite3.Connection, principal: str | None, agent: str | None) -> Iterator[_Call]:
    """The newest call of each run of an agent."""
    seen: set[str] = set()
    for columns in connection.execute(_RUNS, (principal, agent)):
        call = _Call(*columns)
        if call.run not in seen:
            seen.add(call.run)
            yield call


def _of_run(connection: sqlite3.Connection, run: str) -> AgentRunSummary | None:
    rows = connection.execute(
        "SELECT call_id, run, run.tool, run.principal, run.started_at, outcome, stopped_by, unfinished FROM run "
        "JOIN journal ON session_id = run.run AND request_key = 'snapshot' AND journal.tool = 'agent_snapshot' "
        "WHERE run = ? ORDER BY run.started_at DESC LIMIT 1",
        (run,),
    )
    row = rows.fetchone()
    return None if row is None else _summary(connection, _Call(*row))


def _summary(connection: sqlite3.Connection, call: _Call) -> AgentRunSummary:
    turns, calls = connection.execute(_COUNTS, (call.run,)).fetchone()
    began = connection.execute("SELECT started_at FROM run WHERE call_id = ?", (call.run,)).fetchone()
    ended = connection.execute(
        "SELECT outcome, message, latency_ms FROM call WHERE started_at = ? AND id = ?", (call.started_at, call.call_id)
    ).fetchone()
    outcome = call.outcome or (ended and ended[0])
    state: AgentRunState = "running"
    if outcome is not None or not call.unfinished:
        outcome = outcome or "OUTCOME_UNKNOWN"  # the daemon ended while it ran
        state = "finished" if outcome == "ok" else "failed"
    requests = 0
    if state == "running":
        requests, paused = connection.execute(
            "SELECT (SELECT count(*) FROM input_request WHERE number = detached.number AND decision_hash IS NULL), "
            "expires_at IS NOT NULL FROM detached WHERE call_id = ?",
            (call.call_id,),
        ).fetchone() or (0, 0)
        state = "paused" if paused else "running"
    return AgentRunSummary(
        run_id=call.run,
        call_id=call.call_id,
        agent=call.tool,
        principal=call.principal,
        state=state,
        started_at=call.started_at if began is None else began[0],
        ended_at=None if ended is None else call.started_at + ended[2] / 1000,
        error=outcome if state == "failed" else None,
        message=ended[1] if ended and state == "failed" else None,
        stopped_by=call.stopped_by or None,
        turns=turns,
        calls=calls,
        requests=requests,
    )


def _nested(connection: sqlite3.Connection, run: str, inner: str) -> AgentRunSummary | None:
    """The run of an agent that a call of another run made."""
    path, _, name = f"{run}/{inner}".rpartition("/")
    row = connection.execute(
        "SELECT tool, principal, state, started_at, json_extract(CAST(result AS TEXT), '$.error.code') "
        "FROM journal LEFT JOIN result USING (number) WHERE session_id = ? AND request_key = ? AND child "
        "AND EXISTS (SELECT 1 FROM journal WHERE session_id = ? AND request_key = 'snapshot')",
        (path, name, f"{run}/{inner}"),
    ).fetchone()
    if row is None:
        return None
    agent, principal, stored, started_at, error = row
    states: dict[str, AgentRunState] = {"started": "running", "interrupted": "failed"}
    turns, calls = connection.execute(_COUNTS, (f"{run}/{inner}",)).fetchone()
    return AgentRunSummary(
        run_id=f"{run}/{inner}",
        call_id=f"{run}/{inner}",
        agent=agent,
        principal=principal,
        state="failed" if error else states.get(stored, "finished"),
        started_at=started_at,
        error=error or ("OUTCOME_UNKNOWN" if stored == "interrupted" else None),
        turns=turns,
        calls=calls,
    )


def _with_spending(
    connection: sqlite3.Connection, runs: Iterable[AgentRunSummary], inner: str = ""
) -> list[AgentRunSummary]:
    """The runs with the sums of the audit rows of their calls. ``inner``: only those below this path of the run."""
    runs = list(runs)
    if not runs:
        return runs
    roots = {run.run_id: {_root(run.run_id), _root(run.call_id)} for run in runs}
    # A second earlier: the two times are read from the clock one after the other.
    since = min(run.started_at for run in runs) - 1
    until = max(math.inf if run.ended_at is None else run.ended_at + 1 for run in runs)
    every = json.dumps(sorted(set().union(*roots.values())))
    spent: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for root, *sums in connection.execute(_SPENT, (since, every, inner, until)):
        spent[root].append(tuple(sums))
    return [_spending(run, [sums for root in roots[run.run_id] for sums in spent[root]]) for run in runs]


def _root(call_id: str) -> str:
    return call_id.partition("/")[0]


def _spending(run: AgentRunSummary, sums: Iterable[tuple[Any, ...]]) -> AgentRunSummary:
    cost: defaultdict[str, float] = defaultdict(float)
    tokens = [0, 0]
    for currency, input_tokens, output_tokens, amount in sums:
        tokens = [tokens[0] + input_tokens, tokens[1] + output_tokens]
        if currency is not None:
            cost[currency] += amount
    return replace(run, input_tokens=tokens[0], output_tokens=tokens[1], cost=dict(cost))


def _entries(
    connection: sqlite3.Connection, run: str, *, results_since: float, all_results: bool
) -> Iterator[ChildEntry]:
    for session, name, tool, state, started_at, size, error, result in connection.execute(
        _ENTRIES, (run, results_since, all_results)
    ):
        path = f"{session}/{name}"[len(run) + 1 :]
        kept = result if state == "done" else None
        yield ChildEntry(
            path=path, tool=tool, state=state, started_at=started_at, result_bytes=size, error=error, result=kept
        )
