"""The ports through which dispatch records calls: the recorder (audit, metrics), the journal and the traces."""

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Protocol

from ...protocol.session_calls import PendingResult
from ...protocol.tool_call import Principal, ToolCall, ToolResult
from ...protocol.trace_context import TraceParent
from ...providers import Completion, CompletionRequest, EmbeddingRequest, Embeddings
from ...store import A2ATaskRow, CallRow, RunUsage, StoredCall, StoredCallState, StoredDetachedCall, StoredSession
from .running_call import RunningCall, Session


class RecorderPort(Protocol):
    """Records ended and refused calls in the audit trail and the metrics. Never blocks."""

    def call_ended(self, call: RunningCall, result: ToolResult, result_bytes: int) -> None: ...

    def call_refused(
        self,
        session: Session,
        request: ToolCall,
        result: ToolResult,
        *,
        call_id: str,
        summary: str | None,
        parent: RunningCall | None = None,
    ) -> None:
        """``summary`` describes the error without the call's content. ``parent`` is the call that made the request."""
        ...


class CompletionTrace(Protocol):
    """Records one request to a model: a context manager around it. Never blocks."""

    def __enter__(self) -> object: ...

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...

    def completed(self, answer: Completion | Embeddings) -> None: ...


class TracePort(Protocol):
    """The traces that calls belong to, if they are recorded."""

    def span_of(self, call: RunningCall) -> TraceParent:
        """Returns the span of a running call."""
        ...

    def completion(
        self, call: RunningCall, request: CompletionRequest | EmbeddingRequest, provider: str
    ) -> CompletionTrace:
        """Returns the record of a request that a call is about to make."""
        ...


class JournalPort(Protocol):
    """The durable record of calls and sessions: written before a call starts and before its answer is sent.

    Methods that wait for the database raise ServiceUnavailableError if it cannot be read or written, except where
    the method says otherwise. The other methods never block. Read-only methods return None if nothing is stored, or
    if it has expired.
    """

    @property
    def writable(self) -> bool:
        """Whether the last write to the database succeeded."""
        ...

    async def start_call(self, call: RunningCall, *, replace: bool, task: A2ATaskRow | None = None) -> bool:
        """Persists that a call starts. False: its key was used before within its ``scope``, so it must not run.

        ``replace`` overwrites the record of an earlier run. ``task`` is persisted with the start, or not at all.
        """
        ...

    async def end_call(self, call: RunningCall, result: ToolResult, answer: bytes) -> None:
        """Persists the result and the audit row of a started call. Never raises; takes some seconds at most.

        ``answer`` is the result as the call's port rendered it.
        """
        ...

    async def end_unstarted_call(self, call: RunningCall, result: ToolResult, answer: bytes) -> bool:
        """Persists the result and the audit row of a call whose tool did not start, as ``end_call`` does.

        False: its request id belongs to an earlier call, which keeps its result.
        """
        ...

    async def earlier_call(self, call: RunningCall) -> StoredCall | None:
        """Returns the ended call that the session made earlier with the same request id."""
        ...

    async def call_states(self, session: Session, keys: Sequence[str]) -> Mapping[str, StoredCallState]:
        """Returns the stored states of a session's calls that are not running. Takes some seconds at most."""
        ...

    async def earlier_child(self, call: RunningCall) -> StoredCall | None:
        """Returns the record of an earlier run for a child call that is about to run."""
        ...

    async def children_of_run(self, run: str, principal: Principal) -> Mapping[str, tuple[str, bytes]]:
        """Returns the children of a principal's run by their names, each with its tool and its arguments' hash."""
        ...

    async def find_run(self, call_id: str, principal: Principal, tool: str) -> str | None:
        """Returns the run of a principal's earlier call of this tool."""
        ...

    async def usage_of_run(self, run: str, principal: Principal) -> list[RunUsage]:
        """Returns the spending of the ended calls of a principal's run, including the calls that resumed it."""
        ...

    async def spent_by_tool(self, tool: str, day: str) -> Mapping[str, float]:
        """Returns the cost by currency of a tool's calls and their descendants that ended on a day."""
        ...

    async def resume_run(self, call: RunningCall, run: str) -> None:
        """Persists that a call continues an earlier run."""
        ...

    async def detached_calls(self) -> list[StoredDetachedCall]:
        """Returns the detached calls that have started, have not ended and are not paused; the oldest first."""
        ...

    async def find_ended_call(
        self, call_id: str, child: tuple[str, str], principal: Principal
    ) -> StoredCall | CallRow | None:
        """Returns a principal's call that is not running: a child call by its run and name, any other call by its id,
        as an audit row."""
        ...

    def session_opened(self, session: Session) -> None:
        """Persists a session that can be resumed."""
        ...

    def acknowledged(self, session: Session, keys: Sequence[str]) -> None:
        """Deletes results that the client has acknowledged."""
        ...

    def session_closed(self, session: Session) -> None:
        """Deletes a session that cannot be resumed."""
        ...

    def sessions_unloaded(self, sessions: Sequence[Session]) -> None:
        """Lets other nodes load these sessions, which are no longer in memory."""
        ...

    def sessions_seen(self, sessions: Iterable[Session]) -> None:
        """Updates the time at which clients last held these sessions."""
        ...

    async def flush(self) -> None:
        """Returns once earlier writes that did not wait are persisted, or have failed; takes some seconds at most.

        Raises:
            ServiceUnavailableError: they are not persisted, and other nodes share the database.
        """
        ...

    async def persist_local_results(self, results: Sequence[tuple[Session, PendingResult]]) -> bool:
        """Persists results of local calls, which are not journalled. False if the database cannot be written."""
        ...

    async def find_session(self, key_hash: bytes) -> StoredSession | None:
        """Returns the stored session of a resume key."""
        ...
