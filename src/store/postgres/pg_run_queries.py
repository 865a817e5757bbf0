"""The queries for runs, detached calls and sessions (``store_port.py``) on a connection to PostgreSQL."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import psycopg

from ...protocol.agent_record import AgentRecord, AgentRunState, AgentRunSummary
from ..agent_runs import find_agent_run, list_agent_runs
from ..run_rows import RunUsage, StoredJob
from ..run_spending import run_usage, spending_of_tool
from ..store_rows import StoredCall, StoredCallState, StoredDetachedCall, StoredSession
from ..stored_jobs import job_step_ends, list_jobs
from . import pg_detached_sql, pg_pause_sql, pg_run_sql, pg_session_sql
from .pg_agent_run_sql import AGENT_RUN_STATEMENTS
from .pg_job_sql import JOB_STATEMENTS
from .pg_run_usage_sql import RUN_USAGE_STATEMENTS
from .pg_values import asked


class PostgresRunQueries:
    """``RunQueries``, ``DetachedQueries`` and ``SessionQueries`` of one connection, on one thread."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._connection = connection

    def _ask(self, statement: str, values: Mapping[str, Any]) -> Iterable[Sequence[Any]]:
        return asked(self._connection, statement, values)

    # --- runs ---------------------------------------------------------------------------------------------------------

    def find_run(self, call_id: str, principal: str, tool: str) -> str | None:
        return pg_run_sql.find_run(self._connection, call_id, principal, tool)

    def usage_of_run(self, run: str, principal: str) -> list[RunUsage]:
        return run_usage(self._ask, RUN_USAGE_STATEMENTS, run, principal)

    def spent_by_tool(self, tool: str, day: str) -> dict[str, float]:
        return spending_of_tool(self._ask, RUN_USAGE_STATEMENTS, tool, day)

    def agent_runs(
        self, principal: str | None, *, agent: str | None, states: Collection[AgentRunState], limit: int
    ) -> list[AgentRunSummary]:
        return list_agent_runs(self._ask, AGENT_RUN_STATEMENTS, principal, agent=agent, states=states, limit=limit)

    def agent_record(
        self, call_id: str, principal: str | None, *, results_since: float, all_results: bool
    ) -> AgentRecord | None:
        return find_agent_run(
            self._ask,
            AGENT_RUN_STATEMENTS,
            call_id,
            principal,
            results_since=results_since,
            all_results=all_results,
        )

    def jobs(
        self,
        principal: str,
        tools: Collection[str],
        *,
        job_id: str | None,
        subject: str | None,
        outcomes: Collection[str] | None,
        limit: int,
    ) -> list[StoredJob]:
        return list_jobs(
            self._ask,
            JOB_STATEMENTS,
            principal,
            tools,
            job_id=job_id,
            subject=subject,
            outcomes=outcomes,
            limit=limit,
        )

    def step_ends(self, job: StoredJob) -> dict[str, float]:
        return job_step_ends(self._ask, JOB_STATEMENTS, job)

    def child_call(self, run: str, name: str, principal: str, *, results_since: float) -> StoredCall | None:
        return pg_session_sql.child_call(self._connection, run, name, principal, results_since=results_since)

    def children_of_run(self, run: str, principal: str) -> dict[str, tuple[str, bytes]]:
        return pg_session_sql.children_of_run(self._connection, run, principal)

    # --- detached calls -----------------------------------------------------------------------------------------------

    def unfinished_detached(self) -> list[StoredDetachedCall]:
        return pg_detached_sql.unfinished(self._connection)

    def find_detached(self, call_id: str) -> StoredDetachedCall | None:
        return pg_detached_sql.find(self._connection, call_id)

    def paused_count(self, principal: str) -> int:
        return pg_pause_sql.paused_count(self._connection, principal)

    def paused_calls(self, principal: str | None) -> list[StoredDetachedCall]:
        return pg_detached_sql.find_all(self._connection, pg_pause_sql.paused_ids(self._connection, principal))

    def waiting_for_credentials(self, after: int) -> tuple[int, list[StoredDetachedCall]]:
        rows = pg_pause_sql.waiting_for_credentials(self._connection, after)
        following = rows[-1][0] if len(rows) == pg_pause_sql.LISTED else 0
        return following, pg_detached_sql.find_all(self._connection, [call_id for _, call_id in rows])

    def paused_on(self, run: str) -> str | None:
        return pg_pause_sql.paused_on(self._connection, run)

    def due_calls(self, now: float) -> list[StoredDetachedCall]:
        return pg_detached_sql.find_all(self._connection, pg_pause_sql.due_ids(self._connection, now))

    def next_expiry(self) -> float | None:
        return pg_pause_sql.next_expiry(self._connection)

    def decision_hashes(self, call_id: str, principal: str) -> dict[str, bytes]:
        return pg_pause_sql.decision_hashes(self._connection, call_id, principal)

    # --- sessions -----------------------------------------------------------------------------------------------------

    def load_session(self, key_hash: bytes, *, results_since: float) -> StoredSession | None:
        return pg_session_sql.load_session(self._connection, key_hash, results_since=results_since)

    def ended_call(self, session_id: str, request_key: str, *, results_since: float) -> StoredCall | None:
        return pg_session_sql.ended_call(self._connection, session_id, request_key, results_since=results_since)

    def call_states(
        self, session_id: str, request_keys: Sequence[str], *, results_since: float
    ) -> dict[str, StoredCallState]:
        return pg_session_sql.call_states(self._connection, session_id, request_keys, results_since=results_since)
