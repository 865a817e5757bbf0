"""Implements the port of paused calls with the store: converts calls and errors, and writes audit rows."""

import time
from collections.abc import Mapping, Sequence

import msgspec

from ...audit import audit_row_of
from ...protocol.error_codes import CallError, OutcomeUnknownError, ServiceUnavailableError
from ...protocol.frame_decoding import request_id_of
from ...protocol.input_request import InputDecision
from ...protocol.tool_call import (
    ClientInfo,
    Json,
    Metadata,
    Principal,
    Timings,
    ToolCall,
    ToolResult,
    encode_result,
    stored_principal,
)
from ...store import CallEnd, CallPause, CallRow, InputDecided, Store, StoredDetachedCall, StoreError
from ..dispatch import RunningCall
from .store_journal import StoreJournal, unreadable

_DECIDING_TOOL = "agent_decide"


class StorePauses:
    """Implements ``dispatch.PausePort``."""

    def __init__(self, store: Store, journal: StoreJournal) -> None:
        self._store = store
        self._journal = journal

    async def start_paused(self, call: RunningCall, pause: CallPause) -> None:
        if not await self._journal.start_call(call, replace=False, pause=pause):
            raise OutcomeUnknownError

    async def pause(self, pause: CallPause) -> None:
        try:
            await self._store.journal.pause(pause)
        except StoreError as error:
            raise _unwritable("That the call pauses", error, executed="maybe") from error

    async def find(self, call_id: str, principal: Principal | None) -> StoredDetachedCall | None:
        try:
            return await self._store.journal.find_detached(call_id, None if principal is None else principal.name)
        except StoreError as error:
            raise unreadable(error) from error

    async def paused_calls(self, principal: Principal | None) -> list[StoredDetachedCall]:
        try:
            return await self._store.journal.paused_calls(None if principal is None else principal.name)
        except StoreError as error:
            raise unreadable(error) from error

    async def count(self, principal: Principal) -> int:
        try:
            return await self._store.journal.paused_count(principal.name)
        except StoreError as error:
            raise unreadable(error) from error

    async def paused_on(self, run: str) -> str | None:
        try:
            return await self._store.journal.paused_on(run)
        except StoreError as error:
            raise unreadable(error) from error

    async def due(self) -> list[StoredDetachedCall]:
        try:
            return await self._store.journal.due_calls()
        except StoreError as error:
            raise unreadable(error) from error

    async def waiting_for_credentials(self) -> list[StoredDetachedCall]:
        try:
            return await self._store.journal.waiting_for_credentials()
        except StoreError as error:
            raise unreadable(error) from error

    async def next_expiry_s(self) -> float | None:
        try:
            return await self._store.journal.next_expiry_s()
        except StoreError as error:
            raise unreadable(error) from error

    async def decision_hashes(self, call_id: str, principal: Principal) -> Mapping[str, bytes]:
        try:
            return await self._store.journal.decision_hashes(call_id, principal.name)
        except StoreError as error:
            raise unreadable(error) from error

    async def adopt(self, call_id: str) -> bool:
        if self._store.cluster is None:
            return True
        try:
            return bool(await self._store.journal.adopt_detached(call_id=call_id))
        except StoreError as error:
            raise unreadable(error) from error

    async def decide(
        self, stored: StoredDetachedCall, decisions: Sequence[tuple[str, InputDecision]], by: RunningCall | None
    ) -> None:
        at = time.time()
        tools = {each.request.id: each.request.tool for each in stored.requests}
        entries = [
            InputDecided(
                call_id=stored.call_id,
                request_id=request_id,
                decision=decision,
                at=at,
                row=_decision_row(stored, request_id, tools.get(request_id), decision, by, at),
            )
            for request_id, decision in decisions
        ]
        try:
            await self._store.journal.decide(entries)
        except StoreError as error:
            raise _unwritable("The decision", error, executed="no") from error

    async def end(self, stored: StoredDetachedCall, error: CallError) -> None:
        at = time.time()
        result = ToolResult(Metadata(0.0, Timings()), error=error.to_tool_error())
        answer = encode_result(result)
        row = _row(
            stored,
            ToolCall(request_id_of(stored.request_key), stored.tool, {}),
            result,
            call_id=stored.call_id,
            started_at=stored.started_at,
            message=error.summary,
            by=None,
        )
        ended = CallEnd(
            session_id=stored.session.id,
            request_key=stored.request_key,
            result=answer,
            at=at,
            row=msgspec.structs.replace(row, arguments=None, result_bytes=len(answer)),
            run=stored.run or stored.call_id,
        )
        try:
            await self._store.journal.end(ended)
        except StoreError as failure:
            raise _unwritable("The end of the call", failure, executed="maybe") from failure


def _decision_row(
    stored: StoredDetachedCall,
    request_id: str,
    tool: str | None,
    decision: InputDecision,
    by: RunningCall | None,
    at: float,
) -> CallRow:
    """The audit row of a decision. It is a part of the call that made the decision, or of the paused call if the
    request expired."""
    content: dict[str, Json] = {"call_id": stored.call_id, "id": request_id, **msgspec.to_builtins(decision)}
    edited = ", with changed arguments" if decision.arguments is not None else ""
    message = f"{decision.decision}{edited}: request {request_id} of call {stored.call_id}"
    result = ToolResult(Metadata(0.0, Timings()))
    return _row(
        stored,
        ToolCall(request_id, _DECIDING_TOOL, content),
        result,
        call_id=f"{stored.call_id if by is None else by.id}/{request_id}",
        started_at=at,
        message=message if tool is None else f"{message}, to call {tool}",
        by=by,
    )


def _row(
    stored: StoredDetachedCall,
    call: ToolCall,
    result: ToolResult,
    *,
    call_id: str,
    started_at: float,
    message: str | None,
    by: RunningCall | None,
) -> CallRow:
    session = stored.session
    return audit_row_of(
        call,
        result,
        call_id=call_id,
        started_at=started_at,
        transport="detached" if by is None else by.session.transport,
        principal=stored_principal(session.principal) if by is None else by.session.principal,
        session_id=session.id if by is None else by.session.id,
        session_label=session.label if by is None else by.session.label,
        client=msgspec.json.decode(stored.client, type=ClientInfo) if by is None else by.session.client,
        message=message,
    )


def _unwritable(what: str, error: StoreError, *, executed: str) -> ServiceUnavailableError:
    return ServiceUnavailableError.content_free(
        f"{what} could not be persisted ({error.reason}).", executed="no" if executed == "no" else "maybe"
    )
