"""Recorded runs of agents: their list, and the child calls of one run. Each database has its own SQL for these queries.

The first child of an agent's run is its snapshot. The queries find the calls of a run by their path: the children of a
child call have its path as their session.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from ..protocol.agent_record import AgentRecord, AgentRunState, AgentRunSummary, ChildEntry

Ask = Callable[[str, Mapping[str, Any]], Iterable[Sequence[Any]]]
"""Runs a statement with named values; returns its rows."""

PAGE_ROWS: Final = 100
"""The number of calls of runs that one statement returns."""
_SUFFIX: Final = re.compile(r"~[0-9a-f]+(?=/|$)")
"""A part of the ids of children that a resumed call made. The keys in their run do not contain this part."""


class AgentRunStatements(NamedTuple):
    """The SQL of one database. The columns of a call are the fields of ``_Call``."""

    newest: str
    """The next ``rows`` calls of runs of agents before ``before`` and ``before_id``, newest first; ``principal`` and
    ``agent`` may be None."""
    of_run: str
    """The newest call of the run ``run``, if an agent ran it."""
    run_of: str
    """Run and principal of ``call_id``. The run of a call that created a detached call is that of the detached call,
    which may continue an earlier run."""
    counts: str
    """The numbers of turns and of calls of the run ``run``. The second condition matches calls of an agent's code,
    whose steps have names such as s3 and left.s1."""
    began: str
    """When the call ``call_id`` started."""
    ended: str
    """Outcome, message and latency of the audit row of ``call_id``, which started at ``started_at``."""
    requests: str
    """The number of open requests of the detached call ``call_id``, and whether it is paused."""
    nested: str
    """Tool, principal, state, time of start and error code of the child ``name`` of ``path``, if ``run``, its own run,
    has a snapshot."""
    spent: str
    """Root, currency, tokens and cost of the calls of ``roots`` (``roots_of``) between ``since`` and ``until``, of all
    or of those below ``inner``."""
    entries: str
    """The child calls of ``run``: session, key, tool, state (expired if it ended before ``results_since``), time of
    start, bytes, error code and result, of tools if ``all_results``."""
    roots_of: Callable[[Sequence[str]], Any]
    """The value of ``roots``."""


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


def list_agent_runs(
    ask: Ask,
    sql: AgentRunStatements,
    principal: str | None,
    *,
    agent: str | None = None,
    states: Collection[AgentRunState] = (),
    limit: int,
) -> list[AgentRunSummary]:
    """Returns the newest runs of agents, of a principal or of all, without those that another call made."""
    runs: list[AgentRunSummary] = []
    for call in _newest_calls(ask, sql, principal, agent):
        if states and call.possible_states.isdisjoint(states):
            continue  # saves the queries for its summary
        summary = _summary(ask, sql, call)
        if not states or summary.state in states:
            runs.append(summary)
        if len(runs) == limit:
            break
    return _with_spending(ask, sql, runs)


def find_agent_run(
    ask: Ask,
    sql: AgentRunStatements,
    call_id: str,
    principal: str | None,
    *,
    results_since: float,
    all_results: bool,
) -> AgentRecord | None:
    """Returns the run of an agent by the id of one of its calls, or by that of a child call that is an agent; None if
    there is none. Results from before ``results_since``, a time of the store's clock, are omitted; so are results of
    tools unless ``all_results`` is true.
    """
    root, _, inner = _SUFFIX.sub("", call_id).partition("/")
    row = _first(ask(sql.run_of, {"call_id": root}))
    if row is None or principal not in {None, row[1]}:
        return None
    run = str(row[0])
    summary = _nested(ask, sql, run, inner) if inner else _of_run(ask, sql, run)
    if summary is None:
        return None
    key = f"{run}/{inner}" if inner else run
    entries = tuple(_entries(ask, sql, key, results_since=results_since, all_results=all_results))
    (summary,) = _with_spending(ask, sql, [summary], inner)
    return AgentRecord(summary=summary, entries=entries)


def _newest_calls(ask: Ask, sql: AgentRunStatements, principal: str | None, agent: str | None) -> Iterator[_Call]:
    """The newest call of each run of an agent."""
    seen: set[str] = set()
    values = {"principal": principal, "agent": agent, "before": math.inf, "before_id": "", "rows": PAGE_ROWS}
    while True:
        page = [_Call(*columns) for columns in ask(sql.newest, values)]
        for call in page:
            if call.run not in seen:
                seen.add(call.run)
                yield call
        if len(page) < PAGE_ROWS:
            return
        values |= {"before": page[-1].started_at, "before_id": page[-1].call_id}


def _of_run(ask: Ask, sql: AgentRunStatements, run: str) -> AgentRunSummary | None:
    row = _first(ask(sql.of_run, {"run": run}))
    return None if row is None else _summary(ask, sql, _Call(*row))


def _summary(ask: Ask, sql: AgentRunStatements, call: _Call) -> AgentRunSummary:
    ((turns, calls),) = ask(sql.counts, {"run": call.run})
    began = _first(ask(sql.began, {"call_id": call.run}))
    ended = _first(ask(sql.ended, {"started_at": call.started_at, "call_id": call.call_id}))
    outcome = call.outcome or (ended and ended[0])
    state: AgentRunState = "running"
    if outcome is not None or not call.unfinished:
        outcome = outcome or "OUTCOME_UNKNOWN"  # the daemon ended while it ran
        state = "finished" if outcome == "ok" else "failed"
    requests = 0
    if state == "running":
        requests, paused = _first(ask(sql.requests, {"call_id": call.call_id})) or (0, 0)
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


def _nested(ask: Ask, sql: AgentRunStatements, run: str, inner: str) -> AgentRunSummary | None:
    """The run of an agent that a call of another run made."""
    path, _, name = f"{run}/{inner}".rpartition("/")
    row = _first(ask(sql.nested, {"path": path, "name": name, "run": f"{run}/{inner}"}))
    if row is None:
        return None
    agent, principal, stored, started_at, error = row
    states: dict[str, AgentRunState] = {"started": "running", "interrupted": "failed"}
    ((turns, calls),) = ask(sql.counts, {"run": f"{run}/{inner}"})
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
    ask: Ask, sql: AgentRunStatements, runs: Iterable[AgentRunSummary], inner: str = ""
) -> list[AgentRunSummary]:
    """The runs with the sums of the audit rows of their calls. ``inner``: only calls below this path of the run."""
    runs = list(runs)
    if not runs:
        return runs
    roots = {run.run_id: {_root(run.run_id), _root(run.call_id)} for run in runs}
    # One second earlier, because the two times are read from the clock one after the other.
    since = min(run.started_at for run in runs) - 1
    until = max(math.inf if run.ended_at is None else run.ended_at + 1 for run in runs)
    every = sql.roots_of(sorted(set().union(*roots.values())))
    spent: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for root, *sums in ask(sql.spent, {"since": since, "roots": every, "inner": inner, "until": until}):
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
    ask: Ask, sql: AgentRunStatements, run: str, *, results_since: float, all_results: bool
) -> Iterator[ChildEntry]:
    for session, name, tool, state, started_at, size, error, result in ask(
        sql.entries, {"run": run, "results_since": results_since, "all_results": all_results}
    ):
        path = f"{session}/{name}"[len(run) + 1 :]
        kept = result if state == "done" else None
        yield ChildEntry(
            path=path, tool=tool, state=state, started_at=started_at, result_bytes=size, error=error, result=kept
        )


def _first(rows: Iterable[Sequence[Any]]) -> Sequence[Any] | None:
    return next(iter(rows), None)
