"""The interface of a database adapter to the parts of the store: its queries, and a reader that runs them.

The parts (``call_journal.py``, ``session_store.py`` and so on) exist once. An adapter, such as ``sqlite/``, consists of
a ``GroupCommitter``, a ``StoreReader`` and the queries below, with its own SQL. No part sees a connection.

Times are Unix times in seconds, except where they are times of the store's clock (``store_clock.py``).
"""

from collections.abc import Callable, Collection, Sequence
from typing import Protocol, TypeVar

from ..protocol.agent_record import AgentRecord, AgentRunState, AgentRunSummary
from .a2a_push_rows import A2APushRow
from .a2a_task_rows import A2AEarlier, A2AEvent, A2ATaskPage, A2ATaskQuery, A2ATaskRow
from .audit_chain import Checkpoint
from .call_filter import CallFilter, CallPage
from .conversation_rows import ConversationCopy, ConversationOutboxState, StoredConversation
from .daily_usage import DailyUsage
from .registry_entry_rows import RegistryEntryRow
from .run_rows import RunUsage, StoredJob
from .store_rows import (
    AuditOutboxState,
    CallRow,
    CallTotals,
    ChainedRow,
    StoredCall,
    StoredCallState,
    StoredDetachedCall,
    StoredSession,
)
from .user_credential_rows import UserCredentialRow

T = TypeVar("T")


class RunQueries(Protocol):
    """Runs and their child calls, runs of agents, jobs."""

    def find_run(self, call_id: str, principal: str, tool: str) -> str | None:
        """Returns the run of a principal's call of this tool; None if it is unknown or has expired."""

    def usage_of_run(self, run: str, principal: str) -> list[RunUsage]:
        """Returns the spending of the ended calls of a principal's run, including the calls that resumed it."""

    def spent_by_tool(self, tool: str, day: str) -> dict[str, float]:
        """Returns the cost, by currency, of a tool's calls and their descendants that ended on a day (``YYYY-MM-DD``,
        UTC)."""

    def agent_runs(
        self, principal: str | None, *, agent: str | None, states: Collection[AgentRunState], limit: int
    ) -> list[AgentRunSummary]:
        """Returns the newest runs of agents, of a principal or of all, without those that another call made."""

    def agent_record(
        self, call_id: str, principal: str | None, *, results_since: float, all_results: bool
    ) -> AgentRecord | None:
        """Returns the run of an agent by the id of one of its calls. Results from before ``results_since``, a time of
        the store's clock, are omitted; so are results of tools unless ``all_results`` is true.
        """

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
        """Returns a principal's jobs, newest first: calls of these tools. ``subject``: the name of the deployment;
        ``outcomes``: any of ``ok``, ``CANCELLED``, ``error`` (all other codes) and ``unfinished``.
        """

    def step_ends(self, job: StoredJob) -> dict[str, float]:
        """Returns when the child calls of a job ended, by their names."""

    def child_call(self, run: str, name: str, principal: str, *, results_since: float) -> StoredCall | None:
        """Returns a child call of a principal's run. A result from before ``results_since``, a time of the store's
        clock, counts as expired, unless the run has not ended.
        """

    def children_of_run(self, run: str, principal: str) -> dict[str, tuple[str, bytes]]:
        """Returns the children of a principal's run by their names, each with its tool and its arguments' hash."""


class DetachedQueries(Protocol):
    """Detached calls that have not ended, and their pauses. Their times of expiry are times of the store's clock."""

    def unfinished_detached(self) -> list[StoredDetachedCall]:
        """Returns the detached calls that are not paused, the oldest first."""

    def find_detached(self, call_id: str) -> StoredDetachedCall | None:
        """Returns a detached call by its id."""

    def paused_count(self, principal: str) -> int:
        """Returns the number of a principal's paused calls."""

    def paused_calls(self, principal: str | None) -> list[StoredDetachedCall]:
        """Returns the oldest ``LISTED_PAUSES`` paused calls of a principal, or of all principals."""

    def waiting_for_credentials(self, after: int) -> tuple[int, list[StoredDetachedCall]]:
        """Returns some paused calls after a number that may wait for a credential, and the number from which to
        continue; 0 if there are no more.
        """

    def paused_on(self, run: str) -> str | None:
        """Returns the id of the paused call that continues this run."""

    def due_calls(self, now: float) -> list[StoredDetachedCall]:
        """Returns the paused calls whose requests have expired at a time of the store's clock, or whose run has been
        dropped.
        """

    def next_expiry(self) -> float | None:
        """Returns when the next requests expire, as a time of the store's clock; None if no call is paused."""

    def decision_hashes(self, call_id: str, principal: str) -> dict[str, bytes]:
        """Returns the decided requests of a principal's call, even if it has ended: id and ``decision_hash``."""


class SessionQueries(Protocol):
    """Sessions and their calls. Results from before ``results_since``, a time of the store's clock, are expired."""

    def load_session(self, key_hash: bytes, *, results_since: float) -> StoredSession | None:
        """Returns a session by its key, with its last ended calls."""

    def ended_call(self, session_id: str, request_key: str, *, results_since: float) -> StoredCall | None:
        """Returns a session's ended journalled call."""

    def call_states(
        self, session_id: str, request_keys: Sequence[str], *, results_since: float
    ) -> dict[str, StoredCallState]:
        """Returns the states of these journalled calls of a session, without those that are not stored."""


class AuditQueries(Protocol):
    """Audit rows, their sums and their outbox."""

    def recent_calls(self, limit: int) -> list[CallRow]:
        """Returns the calls that ended last, newest first."""

    def ended_calls(self, principal: str, limit: int, tool: str | None, outcome: str | None) -> list[CallRow]:
        """Returns a principal's calls that ended last, newest first, among the last ``SEARCHED_ROWS`` of all."""

    def find_call(self, call_id: str, principal: str) -> CallRow | None:
        """Returns a principal's ended call, if it is among the last ``SEARCHED_ROWS`` of all."""

    def search_calls(self, wanted: CallFilter, before: int | None, limit: int, rows: int) -> CallPage:
        """Returns the calls that match a filter, among the ``rows`` calls that ended before the one with seq
        ``before``."""

    def call_tree(self, call_id: str, principal: str | None) -> list[CallRow]:
        """Returns an ended call and its descendants, in the order in which they started."""

    def totals(self, principal: str | None) -> CallTotals:
        """Returns the sums over all calls ever recorded, or over those of one principal."""

    def usage_since(self, day: str, principal: str | None) -> list[DailyUsage]:
        """Returns the spending at vendors since a day, newest day first."""

    def calls_of_day(self, day: str) -> dict[tuple[str, str], int]:
        """Returns how many calls began on a day, by principal and tool. Failures without an effect are not counted."""

    def outbox_state(self) -> AuditOutboxState:
        """Returns the state of the outbox of audit rows."""

    def unsent_calls(self, after: int, limit: int) -> list[ChainedRow]:
        """Returns the oldest calls after a seq, in order."""

    def unsent_checkpoints(self, limit: int) -> list[Checkpoint]:
        """Returns the oldest checkpoints whose current version Supabase does not have."""


class ConversationQueries(Protocol):
    """Conversations, and the outbox of their copies."""

    def load_conversation(self, conversation_id: str, principal: str) -> StoredConversation | None:
        """Returns a principal's conversation."""

    def newest_conversations(self, principal: str, limit: int) -> list[tuple[str, float, int]]:
        """Returns a principal's conversations that were used last: id, time and bytes, the newest first."""

    def copies_state(self) -> ConversationOutboxState:
        """Returns the state of the outbox of copies."""

    def unsent_copies(self, after: int, limit: int, max_bytes: int) -> list[ConversationCopy]:
        """Returns the oldest copies after a number, in order: at most ``limit`` and ``max_bytes``, but at least one."""


class A2AQueries(Protocol):
    """Tasks of A2A and their push notifications."""

    def earlier_message(self, message_key: bytes, conversation_id: str, principal: str) -> A2AEarlier:
        """Returns the stored data about a message that arrives."""

    def find_task(self, task_id: str, principal: str) -> A2ATaskRow | None:
        """Returns a principal's task."""

    def task_events(self, task_id: str, after: int) -> list[A2AEvent]:
        """Returns the first events of a task after a number, in order: up to ``MAX_EVENTS`` and ``MAX_EVENT_BYTES``."""

    def task_page(self, query: A2ATaskQuery) -> A2ATaskPage:
        """Returns a page of tasks."""

    def unfinished_tasks(self) -> list[A2ATaskRow]:
        """Returns the tasks of all principals that have not ended, without their history."""

    def pushes_of_task(self, task_id: str) -> list[A2APushRow]:
        """Returns the push configurations of a task."""

    def pending_pushes(self, of_each: int) -> list[tuple[A2APushRow, str, str]]:
        """Returns push configurations with events to send, some of each principal, with their principals and agents."""

    def push_count(self, principal: str) -> int:
        """Returns how many push configurations of a principal may have notifications to send, now or later."""


class RegistryQueries(Protocol):
    """The data that operators and users store: registry entries, credentials, owners of vendor files."""

    def registry_entries(self) -> list[RegistryEntryRow]:
        """Returns all versions of all entries, in the order of each entry's versions."""

    def find_credential(self, principal: str, service: str) -> UserCredentialRow | None:
        """Returns a principal's credential for a service."""

    def credentials_of(self, principal: str) -> list[UserCredentialRow]:
        """Returns the credentials of a principal, by service."""

    def credential_count(self) -> int:
        """Returns the number of credentials of all principals."""

    def credentials_after(self, principal: str, service: str) -> list[UserCredentialRow]:
        """Returns the next ``RESEALED_AT_ONCE`` credentials after this one, of all principals, in order."""

    def owned_files(self, provider: str, principal: str | None) -> frozenset[str]:
        """Returns the ids of a principal's files at a vendor; None: of all principals' files."""


class Queries(
    RunQueries,
    DetachedQueries,
    SessionQueries,
    AuditQueries,
    ConversationQueries,
    A2AQueries,
    RegistryQueries,
    Protocol,
):
    """All queries, within one reading transaction on the reader's thread."""


class StoreReader(Protocol):
    """Runs the queries, concurrently with the writer."""

    damage: str | None
    """The first damage that a read found, and the remedy; None if none was found."""

    async def query(self, ask: Callable[[Queries], T]) -> T:
        """Runs a query. It may miss rows that are still queued.

        Raises:
            StoreError: the database cannot be read.
        """

    async def query_flushed(self, ask: Callable[[Queries], T]) -> T:
        """Runs a query after all earlier entries have been committed.

        Raises:
            StoreError: the database cannot be read.
        """

    async def claim_session(self, key_hash: bytes, *, results_since: float) -> StoredSession | None:
        """Returns a session by its key, as ``SessionQueries.load_session`` does, after all earlier entries have been
        committed. This process becomes its holder: other nodes of the same database get an error.

        Raises:
            SessionHeldError: another node holds it.
            NodeFencedError: this node has been declared dead.
            StoreError: the database cannot be read.
        """

    async def adopt_detached(self, *, call_id: str | None = None, limit: int | None) -> list[StoredDetachedCall]:
        """Assigns to this node detached calls that no node runs, after all earlier entries have been committed, and
        returns them: the oldest that are not paused, or one by its id. ``limit`` None: all.

        Raises:
            NodeFencedError: this node has been declared dead.
            StoreError: the database cannot be read.
        """

    async def claim_conversation(self, conversation_id: str, principal: str) -> StoredConversation | None:
        """Returns a principal's conversation, as ``ConversationQueries.load_conversation`` does, after all earlier
        entries have been committed. This process becomes its user: other nodes of the same database get an error.

        Raises:
            ConversationHeldError: another node uses it.
            NodeFencedError: this node has been declared dead.
            StoreError: the database cannot be read.
        """

    async def close(self) -> None:
        """Closes the connection. A read that is still running after 1 s is abandoned."""
