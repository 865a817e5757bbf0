"""The journal as dispatch asks for it, on the store: what is on the disk before it happens or before it is told."""

import asyncio
import time
from collections.abc import Iterable, Sequence

import msgspec
import structlog
from msgspec import structs

from ...protocol.error_codes import OutcomeUnknownError, ServiceUnavailableError
from ...protocol.session_calls import REMEMBERED_IDS, PendingResult, arguments_digest
from ...protocol.tool_call import Principal, ToolResult, encode_result
from ...store import (
    CallEnd,
    CallOrder,
    CallRow,
    CallStart,
    SessionRow,
    Store,
    StoredCall,
    StoredCallState,
    StoredDetachedCall,
    StoredSession,
    StoreError,
)
from ..dispatch import RunningCall, Session, failed
from ..observability.call_recorder import CallRecorder
from .journal_timeout import PATIENCE_S, not_on_disk

_log = structlog.get_logger(__name__)


class StoreJournal:
    """Satisfies ``dispatch.Journal``."""

    def __init__(self, store: Store, recorder: CallRecorder) -> None:
        self._store = store
        self._recorder = recorder

    @property
    def writable(self) -> bool:
        return self._store.problem is None

    async def start_call(self, call: RunningCall, *, replace: bool) -> bool:
        unknown = failed(
            call,
            OutcomeUnknownError("The daemon stopped unexpectedly while the call ran; check whether it took effect."),
            time.monotonic(),
        )
        started = CallStart(
            session_id=call.scope,
            request_key=call.key,
            echo_id=call.request.echo_id,
            arguments_hash=arguments_digest(call.request.arguments),
            row=structs.replace(self._recorder.row(call, unknown, 0), arguments=None),
            child=call.parent is not None,
            orchestration=call.tool.orchestration,
            again=replace,
            detached=_order(call) if call.detached else None,
        )
        try:
            return await self._store.start(started)
        except StoreError as error:
            message = f"The call was not started, since it could not be journalled ({error.reason})."
            raise ServiceUnavailableError(message, executed="no") from error

    async def end_call(self, call: RunningCall, result: ToolResult, answer: bytes) -> None:
        self._recorder.count(call, result)
        ended = CallEnd(
            session_id=call.scope,
            request_key=call.key,
            result=_stored_result(call, result, answer),
            at=time.time(),
            row=self._recorder.row(call, result, len(answer)),
            spent=call.meter.usage_by_model,
        )
        reason = await not_on_disk(self._store.end(ended))
        if reason is not None:
            _log.error("a result is told before it is on the disk", tool=call.tool.name, reason=reason)

    async def earlier_call(self, call: RunningCall) -> StoredCall | None:
        try:
            return await self._store.answered(call.session.id, call.key)
        except StoreError as error:
            # As for whether it was executed: it was started, once.
            message = f"The call was made before, and how it ended cannot be looked up at present ({error.reason})."
            raise ServiceUnavailableError(message, executed="maybe") from error

    async def call_states(self, session: Session, keys: Sequence[str]) -> dict[str, StoredCallState]:
        found: dict[str, StoredCallState] = {}
        try:
            async with asyncio.timeout(PATIENCE_S):
                for first in range(0, len(keys), REMEMBERED_IDS):  # between two, others read too
                    found |= await self._store.states(session.id, keys[first : first + REMEMBERED_IDS])
        except StoreError as error:
            raise _unreadable(error) from error
        except TimeoutError as error:
            message = f"Earlier calls could not be looked up within {PATIENCE_S:g} s; try again later."
            raise ServiceUnavailableError(message) from error
        return found

    async def earlier_child(self, call: RunningCall) -> StoredCall | None:
        try:
            return await self._store.child(call.scope, call.key, call.session.principal.name)
        except StoreError as error:
            raise _unreadable(error) from error

    async def find_run(self, call_id: str, principal: Principal, tool: str) -> str | None:
        try:
            return await self._store.run(call_id, principal.name, tool)
        except StoreError as error:
            raise _unreadable(error) from error

    async def resume_run(self, call: RunningCall, run: str) -> None:
        try:
            await self._store.take_up(call.id, run)
        except StoreError as error:
            message = f"It could not be journalled that the call goes on with an earlier one ({error.reason})."
            raise ServiceUnavailableError(message, executed="no") from error

    async def detached_calls(self) -> list[StoredDetachedCall]:
        try:
            return await self._store.detached()
        except StoreError as error:
            raise _unreadable(error) from error

    async def find_ended_call(
        self, call_id: str, child: tuple[str, str], principal: Principal
    ) -> StoredCall | CallRow | None:
        try:
            known = await self._store.child(*child, principal.name)
            return known or await self._store.call(call_id, principal.name)
        except StoreError as error:
            raise _unreadable(error) from error

    def session_opened(self, session: Session) -> None:
        if session.key_hash is not None:
            self._store.open_session(
                SessionRow(
                    id=session.id,
                    key_hash=session.key_hash,
                    principal=session.principal.name,
                    label=session.label,
                    toolset=session.toolset,
                    opened_at=time.time(),
                )
            )

    def acknowledged(self, session: Session, keys: Sequence[str]) -> None:
        self._store.forget(session.id, keys)

    def session_closed(self, session: Session) -> None:
        self._store.close_session(session.id)

    def sessions_seen(self, sessions: Iterable[Session]) -> None:
        self._store.seen([session.id for session in sessions])

    async def flush(self) -> None:
        await not_on_disk(self._store.flush())

    async def persist_local_results(self, answers: Sequence[tuple[Session, PendingResult]]) -> bool:
        # The book's clock is monotonic, the disk's is not.
        since_epoch = time.time() - time.monotonic()
        calls = [
            StoredCall(
                session_id=session.id,
                request_key=kept.key,
                echo_id=kept.echo_id,
                tool=kept.name,
                arguments_hash=session.calls.arguments_hash(kept.key),
                local=True,
                state="done",
                result=encode_result(kept.result),
                at=kept.since + since_epoch,
            )
            for session, kept in answers
        ]
        try:
            await self._store.keep(calls)
        except StoreError as error:
            _log.error("answers that were in memory alone could not be stored", answers=len(calls), reason=error.reason)
            return False
        return True

    async def find_session(self, key_hash: bytes) -> StoredSession | None:
        try:
            return await self._store.session(key_hash)
        except StoreError as error:
            message = f"Sessions cannot be looked up at present ({error.reason}); try again later."
            raise ServiceUnavailableError(message, executed="no") from error


def _stored_result(call: RunningCall, result: ToolResult, answer: bytes) -> bytes | None:
    """A child's answer is stored as its port rendered it; a client's is rendered for its transport only."""
    if call.parent is not None:
        return answer
    return encode_result(result) if call.session.resumable else None


def _order(call: RunningCall) -> CallOrder:
    return CallOrder(
        arguments=msgspec.json.encode(call.request.arguments),
        client=msgspec.json.encode(call.session.client),
        deadline_at=time.time() + call.deadline - time.monotonic(),
    )


def _unreadable(error: StoreError) -> ServiceUnavailableError:
    return ServiceUnavailableError(f"Earlier calls cannot be looked up at present ({error.reason}); try again later.")
