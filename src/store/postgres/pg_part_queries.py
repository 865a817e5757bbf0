"""The queries for audit rows, conversations, A2A and the registry (``store_port.py``) on PostgreSQL."""

from typing import Any

import psycopg

from ..a2a_push_rows import A2APushRow
from ..a2a_task_rows import A2AEarlier, A2AEvent, A2ATaskPage, A2ATaskQuery, A2ATaskRow
from ..audit_chain import Checkpoint
from ..call_filter import CallFilter, CallPage
from ..conversation_rows import ConversationCopy, ConversationOutboxState, StoredConversation
from ..daily_usage import DailyUsage
from ..registry_entry_rows import RegistryEntryRow
from ..store_rows import AuditOutboxState, CallRow, CallTotals, ChainedRow
from ..user_credential_rows import UserCredentialRow
from . import (
    pg_a2a_push_sql,
    pg_a2a_task_sql,
    pg_audit_sql,
    pg_call_search_sql,
    pg_chain_sql,
    pg_conversation_sql,
    pg_copy_sql,
    pg_outbox_sql,
    pg_registry_entry_sql,
    pg_spending_sql,
    pg_user_credential_sql,
    pg_vendor_file_sql,
)

Connection = psycopg.Connection[tuple[Any, ...]]


class PostgresAuditQueries:
    """``AuditQueries`` of one connection. The outbox is that of this node's chain."""

    _connection: Connection
    _chain: int

    def recent_calls(self, limit: int) -> list[CallRow]:
        return pg_audit_sql.recent(self._connection, limit)

    def ended_calls(self, principal: str, limit: int, tool: str | None, outcome: str | None) -> list[CallRow]:
        return pg_audit_sql.ended_calls(self._connection, principal, limit, tool, outcome)

    def find_call(self, call_id: str, principal: str) -> CallRow | None:
        return pg_audit_sql.find_call(self._connection, call_id, principal)

    def search_calls(self, wanted: CallFilter, before: int | None, limit: int, rows: int) -> CallPage:
        return pg_call_search_sql.search(self._connection, wanted, before, limit, rows=rows)

    def call_tree(self, call_id: str, principal: str | None) -> list[CallRow]:
        return pg_call_search_sql.call_tree(self._connection, call_id, principal)

    def totals(self, principal: str | None) -> CallTotals:
        return pg_audit_sql.totals(self._connection, principal)

    def usage_since(self, day: str, principal: str | None) -> list[DailyUsage]:
        return pg_spending_sql.since(self._connection, day, principal)

    def calls_of_day(self, day: str) -> dict[tuple[str, str], int]:
        return pg_audit_sql.calls_of_day(self._connection, day)

    def outbox_state(self) -> AuditOutboxState:
        return pg_outbox_sql.state(self._connection, self._chain)

    def unsent_calls(self, after: int, limit: int) -> list[ChainedRow]:
        return pg_outbox_sql.unsent(self._connection, self._chain, after, limit)

    def unsent_checkpoints(self, limit: int) -> list[Checkpoint]:
        return pg_chain_sql.unsent(self._connection, self._chain, limit)


class PostgresConversationQueries:
    """``ConversationQueries`` of one connection."""

    _connection: Connection

    def load_conversation(self, conversation_id: str, principal: str) -> StoredConversation | None:
        return pg_conversation_sql.load(self._connection, conversation_id, principal)

    def newest_conversations(self, principal: str, limit: int) -> list[tuple[str, float, int]]:
        return pg_conversation_sql.newest(self._connection, principal, limit)

    def copies_state(self) -> ConversationOutboxState:
        return pg_copy_sql.state(self._connection)

    def unsent_copies(self, after: int, limit: int, max_bytes: int) -> list[ConversationCopy]:
        return pg_copy_sql.unsent(self._connection, after, limit, max_bytes)


class PostgresA2AQueries:
    """``A2AQueries`` of one connection, for one node, which follows its own tasks and those of dead nodes."""

    _connection: Connection
    _node: str

    def earlier_message(self, message_key: bytes, conversation_id: str, principal: str) -> A2AEarlier:
        return pg_a2a_task_sql.earlier(self._connection, message_key, conversation_id, principal)

    def find_task(self, task_id: str, principal: str) -> A2ATaskRow | None:
        return pg_a2a_task_sql.find(self._connection, task_id, principal)

    def task_events(self, task_id: str, after: int) -> list[A2AEvent]:
        return pg_a2a_task_sql.events(self._connection, task_id, after)

    def task_page(self, query: A2ATaskQuery) -> A2ATaskPage:
        return pg_a2a_task_sql.page(self._connection, query)

    def unfinished_tasks(self) -> list[A2ATaskRow]:
        return pg_a2a_task_sql.unfinished(self._connection, self._node)

    def pushes_of_task(self, task_id: str) -> list[A2APushRow]:
        return pg_a2a_push_sql.of_task(self._connection, task_id)

    def pending_pushes(self, of_each: int) -> list[tuple[A2APushRow, str, str]]:
        return pg_a2a_push_sql.pending(self._connection, of_each, self._node)

    def push_count(self, principal: str) -> int:
        return pg_a2a_push_sql.count(self._connection, principal)


class PostgresRegistryQueries:
    """``RegistryQueries`` of one connection."""

    _connection: Connection

    def registry_entries(self) -> list[RegistryEntryRow]:
        return pg_registry_entry_sql.all_entries(self._connection)

    def find_credential(self, principal: str, service: str) -> UserCredentialRow | None:
        return pg_user_credential_sql.find(self._connection, principal, service)

    def credentials_of(self, principal: str) -> list[UserCredentialRow]:
        return pg_user_credential_sql.of_principal(self._connection, principal)

    def credential_count(self) -> int:
        return pg_user_credential_sql.count(self._connection)

    def credentials_after(self, principal: str, service: str) -> list[UserCredentialRow]:
        return pg_user_credential_sql.after(self._connection, principal, service)

    def owned_files(self, provider: str, principal: str | None) -> frozenset[str]:
        return pg_vendor_file_sql.owned(self._connection, provider, principal)
