"""The queries of the store's parts (``store_port.py``) on a connection to SQLite."""

import sqlite3
from collections.abc import Collection, Sequence

from ...protocol.agent_record import AgentRecord, AgentRunState, AgentRunSummary
from ..a2a_push_rows import A2APushRow
from ..a2a_task_rows import A2AEarlier, A2AEvent, A2ATaskPage, A2ATaskQuery, A2ATaskRow
from ..audit_chain import Checkpoint
from ..call_filter import CallFilter, CallPage
from ..conversation_rows import ConversationCopy, ConversationOutboxState, StoredConversation
from ..daily_usage import DailyUsage
from ..registry_entry_rows import RegistryEntryRow
from ..run_rows import RunUsage, StoredJob
from ..store_rows import (
    AuditOutboxState,
    CallRow,
    CallTotals,
    ChainedRow,
    StoredCall,
    StoredCallState,
    StoredDetachedCall,
    StoredSession,
)
from ..user_credential_rows import UserCredentialRow
from . import (
    a2a_push_sql,
    a2a_task_sql,
    agent_run_sql,
    audit_outbox,
    audit_sql,
    call_search_sql,
    chain_checkpoints,
    conversation_outbox,
    conversation_sql,
    detached_sql,
    job_sql,
    pause_sql,
    registry_entry_sql,
    run_sql,
    run_usage_sql,
    session_sql,
    spending_sql,
    user_credential_sql,
    vendor_file_sql,
)


class SqliteQueries:
    """``Queries`` of one connection, on one thread."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    # --- runs ---------------------------------------------------------------------------------------------------------

    def find_run(self, call_id: str, principal: str, tool: str) -> str | None:
        return run_sql.find_run(self._connection, call_id, principal, tool)

    def usage_of_run(self, run: str, principal: str) -> list[RunUsage]:
        return run_usage_sql.usage_of_run(self._connection, run, principal)

    def spent_by_tool(self, tool: str, day: str) -> dict[str, float]:
        return run_usage_sql.spent_by_tool(self._connection, tool, day)

    def agent_runs(
        self, principal: str | None, *, agent: str | None, states: Collection[AgentRunState], limit: int
    ) -> list[AgentRunSummary]:
        return agent_run_sql.list_runs(self._connection, principal, agent=agent, states=states, limit=limit)

    def agent_record(
        self, call_id: str, principal: str | None, *, results_since: float, all_results: bool
    ) -> AgentRecord | None:
        return agent_run_sql.find_run(
            self._connection, call_id, principal, results_since=results_since, all_results=all_results
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
        return job_sql.jobs(
            self._connection, principal, tools, job_id=job_id, subject=subject, outcomes=outcomes, limit=limit
        )

    def step_ends(self, job: StoredJob) -> dict[str, float]:
        return job_sql.step_ends(self._connection, job)

    def child_call(self, run: str, name: str, principal: str, *, results_since: float) -> StoredCall | None:
        return session_sql.child_call(self._connection, run, name, principal, results_since=results_since)

    def children_of_run(self, run: str, principal: str) -> dict[str, tuple[str, bytes]]:
        return session_sql.children_of_run(self._connection, run, principal)

    # --- detached calls -----------------------------------------------------------------------------------------------

    def unfinished_detached(self) -> list[StoredDetachedCall]:
        return detached_sql.unfinished(self._connection)

    def find_detached(self, call_id: str) -> StoredDetachedCall | None:
        return detached_sql.find(self._connection, call_id)

    def paused_count(self, principal: str) -> int:
        return pause_sql.paused_count(self._connection, principal)

    def paused_calls(self, principal: str | None) -> list[StoredDetachedCall]:
        return self._detached(pause_sql.paused_ids(self._connection, principal))

    def waiting_for_credentials(self, after: int) -> tuple[int, list[StoredDetachedCall]]:
        rows = pause_sql.waiting_for_credentials(self._connection, after)
        following = rows[-1][0] if len(rows) == pause_sql.LISTED else 0
        return following, self._detached([call_id for _, call_id in rows])

    def paused_on(self, run: str) -> str | None:
        return pause_sql.paused_on(self._connection, run)

    def due_calls(self, now: float) -> list[StoredDetachedCall]:
        return self._detached(pause_sql.due_ids(self._connection, now))

    def next_expiry(self) -> float | None:
        return pause_sql.next_expiry(self._connection)

    def decision_hashes(self, call_id: str, principal: str) -> dict[str, bytes]:
        return pause_sql.decision_hashes(self._connection, call_id, principal)

    def _detached(self, ids: Sequence[str]) -> list[StoredDetachedCall]:
        return [call for call_id in ids if (call := detached_sql.find(self._connection, call_id)) is not None]

    # --- sessions -----------------------------------------------------------------------------------------------------

    def load_session(self, key_hash: bytes, *, results_since: float) -> StoredSession | None:
        return session_sql.load_session(self._connection, key_hash, results_since=results_since)

    def ended_call(self, session_id: str, request_key: str, *, results_since: float) -> StoredCall | None:
        return session_sql.ended_call(self._connection, session_id, request_key, results_since=results_since)

    def call_states(
        self, session_id: str, request_keys: Sequence[str], *, results_since: float
    ) -> dict[str, StoredCallState]:
        return session_sql.call_states(self._connection, session_id, request_keys, results_since=results_since)

    # --- the audit trail ----------------------------------------------------------------------------------------------

    def recent_calls(self, limit: int) -> list[CallRow]:
        return audit_sql.recent(self._connection, limit)

    def ended_calls(self, principal: str, limit: int, tool: str | None, outcome: str | None) -> list[CallRow]:
        return audit_sql.ended_calls(self._connection, principal, limit, tool, outcome)

    def find_call(self, call_id: str, principal: str) -> CallRow | None:
        return audit_sql.find_call(self._connection, call_id, principal)

    def search_calls(self, wanted: CallFilter, before: int | None, limit: int, rows: int) -> CallPage:
        return call_search_sql.search(self._connection, wanted, before, limit, rows=rows)

    def call_tree(self, call_id: str, principal: str | None) -> list[CallRow]:
        return call_search_sql.call_tree(self._connection, call_id, principal)

    def totals(self, principal: str | None) -> CallTotals:
        return audit_sql.totals(self._connection, principal)

    def usage_since(self, day: str, principal: str | None) -> list[DailyUsage]:
        return spending_sql.since(self._connection, day, principal)

    def calls_of_day(self, day: str) -> dict[tuple[str, str], int]:
        return audit_sql.calls_of_day(self._connection, day)

    def outbox_state(self) -> AuditOutboxState:
        return audit_outbox.state(self._connection)

    def unsent_calls(self, after: int, limit: int) -> list[ChainedRow]:
        return audit_outbox.unsent(self._connection, after, limit)

    def unsent_checkpoints(self, limit: int) -> list[Checkpoint]:
        return chain_checkpoints.unsent(self._connection, limit)

    # --- conversations ------------------------------------------------------------------------------------------------

    def load_conversation(self, conversation_id: str, principal: str) -> StoredConversation | None:
        return conversation_sql.load(self._connection, conversation_id, principal)

    def newest_conversations(self, principal: str, limit: int) -> list[tuple[str, float, int]]:
        return conversation_sql.newest(self._connection, principal, limit)

    def copies_state(self) -> ConversationOutboxState:
        return conversation_outbox.state(self._connection)

    def unsent_copies(self, after: int, limit: int, max_bytes: int) -> list[ConversationCopy]:
        return conversation_outbox.unsent(self._connection, after, limit, max_bytes)

    # --- tasks of A2A -------------------------------------------------------------------------------------------------

    def earlier_message(self, message_key: bytes, conversation_id: str, principal: str) -> A2AEarlier:
        return a2a_task_sql.earlier(self._connection, message_key, conversation_id, principal)

    def find_task(self, task_id: str, principal: str) -> A2ATaskRow | None:
        return a2a_task_sql.find(self._connection, task_id, principal)

    def task_events(self, task_id: str, after: int) -> list[A2AEvent]:
        return a2a_task_sql.events(self._connection, task_id, after)

    def task_page(self, query: A2ATaskQuery) -> A2ATaskPage:
        return a2a_task_sql.page(self._connection, query)

    def unfinished_tasks(self) -> list[A2ATaskRow]:
        return a2a_task_sql.unfinished(self._connection)

    def pushes_of_task(self, task_id: str) -> list[A2APushRow]:
        return a2a_push_sql.of_task(self._connection, task_id)

    def pending_pushes(self, of_each: int) -> list[tuple[A2APushRow, str, str]]:
        return a2a_push_sql.pending(self._connection, of_each)

    def push_count(self, principal: str) -> int:
        return a2a_push_sql.count(self._connection, principal)

    # --- registry entries, credentials, vendor files ------------------------------------------------------------------

    def registry_entries(self) -> list[RegistryEntryRow]:
        return registry_entry_sql.all_entries(self._connection)

    def find_credential(self, principal: str, service: str) -> UserCredentialRow | None:
        return user_credential_sql.find(self._connection, principal, service)

    def credentials_of(self, principal: str) -> list[UserCredentialRow]:
        return user_credential_sql.of_principal(self._connection, principal)

    def credential_count(self) -> int:
        return user_credential_sql.count(self._connection)

    def credentials_after(self, principal: str, service: str) -> list[UserCredentialRow]:
        return user_credential_sql.after(self._connection, principal, service)

    def owned_files(self, provider: str, principal: str | None) -> frozenset[str]:
        return vendor_file_sql.owned(self._connection, provider, principal)
