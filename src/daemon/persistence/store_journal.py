"""Implements the journal of dispatch with the store: converts calls and errors, and limits waits."""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import structlog
from msgspec import structs

from ...protocol.arguments_digest import arguments_digest
from ...protocol.error_codes import ErrorCode, OutcomeUnknownError, ServiceUnavailableError
from ...protocol.session_calls import REMEMBERED_IDS, PendingResult
from ...protocol.tool_call import Principal, ToolResult, encode_result
from ...store import (
    A2ATaskRow,
    CallEnd,
    CallPause,
    CallRow,
    CallStart,
    DetachedRequest,
    RunUsage,
    SessionRow,
    Store,
    StoredCall,
    StoredCallState,
    StoredDetachedCall,
    StoredSession,
    StoreError,
    UnstartedCall,
)
from ..dispatch import RunningCall, Session, failed
from ..observability.call_recorder import CallRecorder
from ..off_loop import off_loop
from .journal_timeout import WRITE_TIMEOUT_S, write_failure

_log = structlog.get_logger(__name__)


class StoreJournal:
    """Implements ``dispatch.JournalPort``."""

    def __init__(self, store: Store, recorder: CallRecorder, *, shared: bool = False) -> None:
        """With ``shared``, several nodes use the database, so no answer is sent before it is persisted."""
        self._shared = shared
        self._write_timeout_s = None if shared else WRITE_TIMEOUT_S
        self._store = store
        self._recorder = recorder

    @property
    def writable(self) -> bool:
        return self._store.problem is None

    async def start_call(
        self, call: RunningCall, *, replace: bool, pause: CallPause | None = None, task: A2ATaskRow | None = None
    ) -> bool:
        unknown = failed(
            call,
            OutcomeUnknownError.content_free(
                "The daemon stopped unexpectedly while the call ran; check whether it took effect."
            ),
            time.monotonic(),
        )
        started = CallStart(
            session_id=call.scope,
            request_key=call.key,
            echo_id=call.request.echo_id,
            arguments_hash=call.request.arguments_hash or arguments_digest(call.request.arguments),
            row=structs.replace(self._recorder.row(call, unknown, 0), arguments=None),
            child=call.parent is not None,
            orchestration=call.tool.orchestration,
            replace=replace,
            detached=_detached_request(call) if call.detached else None,
            pause=pause,
            task=task,
        )
        try:
            return await self._store.journal.start(started)
        except StoreError as error:
            message = f"The call was not started, because its start could not be persisted ({error.reason})."
            raise ServiceUnavailableError.content_free(message, executed="no") from error

    async def end_call(self, call: RunningCall, result: ToolResult, answer: bytes) -> None:
        ended = self._ended(call, result, await _stored_result(call, result, answer), len(answer))
        reason = await write_failure(self._store.journal.end(ended), self._write_timeout_s)
        if reason is not None:
            await self._unpersisted(call, reason)

    async def _unpersisted(self, call: RunningCall, reason: str) -> None:
        """Handles a result that was not persisted in time. If other nodes share the database, this means that the
        database is closed or that this node was declared dead. Then the answer is never sent, because other nodes would
        answer a repeat differently.
        """
        if not self._shared:
            _log.error("result sent before it was persisted", tool=call.tool.name, reason=reason)
            return
        _log.error("result withheld, because it cannot be persisted", tool=call.tool.name, reason=reason)
        await asyncio.Event().wait()

    async def end_unstarted_call(self, call: RunningCall, result: ToolResult, answer: bytes) -> bool:
        request = call.request
        arguments_hash = request.arguments_hash or arguments_digest(request.arguments)
        ended = structs.replace(
            self._ended(call, result, await _stored_result(call, result, answer), len(answer)),
            unstarted=UnstartedCall(echo_id=request.echo_id, arguments_hash=arguments_hash),
        )
        writing = asyncio.ensure_future(self._store.journal.end_unstarted(ended))
        at_once = self._shared and not self.writable and _may_be_repeated(result)
        reason = await write_failure(writing, 0.0 if at_once else self._write_timeout_s)
        if reason is None:
            return writing.result()
        # The store has already reported once that the embedded database cannot be written.
        if not at_once and (self._shared or self.writable):
            await self._unpersisted(call, reason)
        return True

    async def earlier_call(self, call: RunningCall) -> StoredCall | None:
        try:
            return await self._store.sessions.ended_call(call.session.id, call.key)
        except StoreError as error:
            # The earlier call may have run, because it was started once.
            message = f"The call was made before, but its result cannot be read at present ({error.reason})."
            raise ServiceUnavailableError.content_free(message, executed="maybe") from error

    async def call_states(self, session: Session, keys: Sequence[str]) -> dict[str, StoredCallState]:
        states: dict[str, StoredCallState] = {}
        try:
            async with asyncio.timeout(WRITE_TIMEOUT_S):
                for first in range(0, len(keys), REMEMBERED_IDS):  # in pieces, so that other reads run in between
                    batch = keys[first : first + REMEMBERED_IDS]
                    states |= await self._store.sessions.call_states(session.id, batch)
        except StoreError as error:
            raise unreadable(error) from error
        except TimeoutError as error:
            message = f"Earlier calls could not be read within {WRITE_TIMEOUT_S:g} s; try again later."
            raise ServiceUnavailableError.content_free(message) from error
        return states

    async def earlier_child(self, call: RunningCall) -> StoredCall | None:
        try:
            return await self._store.journal.child_call(call.scope, call.key, call.session.principal.name)
        except StoreError as error:
            raise unreadable(error) from error

    async def children_of_run(self, run: str, principal: Principal) -> Mapping[str, tuple[str, bytes]]:
        try:
            return await self._store.journal.children_of_run(run, principal.name)
        except StoreError as error:
            raise unreadable(error) from error

    async def find_run(self, call_id: str, principal: Principal, tool: str) -> str | None:
        try:
            return await self._store.journal.find_run(call_id, principal.name, tool)
        except StoreError as error:
            raise unreadable(error) from error

    async def usage_of_run(self, run: str, principal: Principal) -> list[RunUsage]:
        try:
            return await self._store.journal.usage_of_run(run, principal.name)
        except StoreError as error:
            raise unreadable(error) from error

    async def spent_by_tool(self, tool: str, day: str) -> Mapping[str, float]:
        try:
            return await self._store.journal.spent_by_tool(tool, day)
        except StoreError as error:
            raise unreadable(error) from error

    async def resume_run(self, call: RunningCall, run: str) -> None:
        try:
            await self._store.journal.resume_run(call.id, run)
        except StoreError as error:
            message = f"Which run the call belongs to could not be persisted ({error.reason})."
            raise ServiceUnavailableError.content_free(message, executed="no") from error

    async def detached_calls(self) -> list[StoredDetachedCall]:
        try:
            return await self._store.journal.detached_calls()
        except StoreError as error:
            raise unreadable(error) from error

    async def find_ended_call(
        self, call_id: str, child: tuple[str, str], principal: Principal
    ) -> StoredCall | CallRow | None:
        try:
            stored = await self._store.journal.child_call(*child, principal.name)
            return stored or await self._store.audit.find_call(call_id, principal.name)
        except StoreError as error:
            raise unreadable(error) from error

    def session_opened(self, session: Session) -> None:
        if session.key_hash is not None:
            self._store.sessions.open(
                SessionRow(
                    id=session.id,
                    key_hash=session.key_hash,
                    principal=session.principal.name,
                    label=session.label,
                    toolset=session.toolset,
                    opened_at=time.time(),
                    former=session.former,
                )
            )

    def acknowledged(self, session: Session, keys: Sequence[str]) -> None:
        self._store.sessions.acknowledge(session.id, keys)

    def session_closed(self, session: Session) -> None:
        self._store.sessions.close(session.id)

    def sessions_unloaded(self, sessions: Sequence[Session]) -> None:
        if self._shared and sessions:
            self._store.sessions.release([session.id for session in sessions])

    def sessions_seen(self, sessions: Iterable[Session]) -> None:
        self._store.sessions.mark_seen([session.id for session in sessions])

    async def flush(self) -> None:
        reason = await write_failure(self._store.flush())
        if self._shared and (reason or self._store.problem):
            message = f"Sessions cannot be stored at present ({reason or self._store.problem}); try again later."
            raise ServiceUnavailableError.content_free(message, executed="no")

    async def persist_local_results(self, results: Sequence[tuple[Session, PendingResult]]) -> bool:
        since_epoch = time.time() - time.monotonic()  # results have monotonic times, stored calls Unix times
        calls = [
            StoredCall(
                session_id=session.id,
                request_key=pending.key,
                echo_id=pending.echo_id,
                tool=pending.name,
                arguments_hash=session.calls.arguments_hash(pending.key),
                local=True,
                state="done",
                result=encode_result(pending.result),
                at=pending.since + since_epoch,
            )
            for session, pending in results
        ]
        try:
            await self._store.journal.persist_local_results(calls)
        except StoreError as error:
            _log.error("results held only in memory could not be persisted", results=len(calls), reason=error.reason)
            return False
        return True

    def _ended(self, call: RunningCall, result: ToolResult, stored: bytes | None, size: int) -> CallEnd:
        self._recorder.count(call, result)
        run = _ended_run(call)
        return CallEnd(
            session_id=call.scope,
            request_key=call.key,
            result=stored,
            at=time.time(),
            row=self._recorder.row(call, result, size),
            usage_by_model=call.meter.usage_by_model,
            agent=_outermost_agent(call) if call.meter.by_model else "",
            run=run,
            stopped_by=_stopped_by(result) if run is not None and call.tool.agent else None,
        )

    async def find_session(self, key_hash: bytes) -> StoredSession | None:
        try:
            return await self._store.sessions.find_by_key_hash(key_hash)
        except StoreError as error:
            message = f"Sessions cannot be read at present ({error.reason}); try again later."
            raise ServiceUnavailableError.content_free(message, executed="no") from error


def _outermost_agent(call: RunningCall) -> str:
    found, current = "", call
    while True:
        found = current.tool.name if current.tool.agent else found
        if current.parent is None:
            return found
        current = current.parent


async def _stored_result(call: RunningCall, result: ToolResult, answer: bytes) -> bytes | None:
    """The result to store: for a child, the answer as its port rendered it; for a client's call, the encoded result,
    because the answer is in its transport's format.

    A paused child has no result, so that it runs again when its run continues.
    """
    if call.parent is not None:
        return None if call.paused is not None else answer
    if not call.session.resumable:
        return None
    return await off_loop(encode_result, result) if call.long_result else encode_result(result)


def _may_be_repeated(result: ToolResult) -> bool:
    """Whether a refusal need not be stored: the call did not run, and another node may run a repeat of it."""
    return (
        result.error is not None
        and result.error.code == ErrorCode.SERVICE_UNAVAILABLE
        and (result.error.executed == "no")
    )


def _detached_request(call: RunningCall) -> DetachedRequest:
    return DetachedRequest(
        arguments=msgspec.json.encode(call.request.arguments),
        client=msgspec.json.encode(call.session.client),
        deadline_at=time.time() + call.deadline - time.monotonic(),
        creator=call.creator,
        run=None if call.child_scope is None or call.child_scope.run == call.id else call.child_scope.run,
        traceparent=call.request.traceparent,
    )


def _ended_run(call: RunningCall) -> str | None:
    """The run that ends with this call: its own, or the earlier one that it resumed."""
    scope, outer = call.child_scope, call.parent_scope
    if scope is None or call.continued_by is not None or (outer and scope.run.startswith(f"{outer.run}/")):
        return None
    return scope.run


def _stopped_by(result: ToolResult) -> str:
    """The limit that ended the run of an agent early, from its answer; empty if none."""
    stopped_by = result.structured.get("stopped_by") if isinstance(result.structured, dict) else None
    return stopped_by if isinstance(stopped_by, str) else ""


def unreadable(error: StoreError) -> ServiceUnavailableError:
    return ServiceUnavailableError.content_free(
        f"Earlier calls cannot be read at present ({error.reason}); try again later."
    )
