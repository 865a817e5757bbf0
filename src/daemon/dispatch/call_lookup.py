"""Looks up and cancels calls by their ids, for their principal."""

import re
import time
from collections.abc import Sequence
from typing import Final, Protocol

from msgspec.structs import replace

from ...protocol.error_codes import InvalidArgumentsError, NotFoundError, PermissionDeniedError, ServiceUnavailableError
from ...protocol.frame_decoding import request_key
from ...protocol.input_request import InputDecision
from ...protocol.session_registry import hash_key
from ...protocol.tool_call import Principal, ToolResult
from ...store import CallRow, NodeRow, SessionHeldError, StoredCall, StoredDetachedCall
from ...tools import SHOWN_ID_CHARS, CallInfo, CallState
from .call_outcome import load_result
from .call_phase import EndReason
from .detached_calls import REQUEST_ID, TRANSPORT, DetachedCalls
from .paused_calls import PausedCalls, open_requests
from .recording_ports import JournalPort
from .running_call import RunningCall, Session
from .session_manager import SessionManager
from .unanswered_calls import UnansweredCalls

_ID_SUFFIX: Final = re.compile(r"~[0-9a-f]+")
"""The suffix in the ids of children that a detached call made after a restart. The journal's keys do not have it."""
_DETACHED_KEY: Final = request_key(REQUEST_ID)


class CallEnder(Protocol):
    """The part of ``CallExecution`` that ends calls."""

    def end(self, call: RunningCall, reason: EndReason) -> None: ...


class PeerCalls(Protocol):
    """The calls at other nodes that share the database."""

    async def find_call(self, node: NodeRow | None, principal: Principal, call_id: str) -> CallInfo | None:
        """Asks a node about a call; without ``node``, asks the node that runs it. Returns None if no node answers."""
        ...

    async def cancel(self, node: NodeRow | None, principal: Principal | None, call_id: str) -> bool:
        """Cancels a call at a node; without ``node``, at the node that runs it. Returns False if it does not run."""
        ...


class CallLookup:
    """Finds calls that run, calls whose results are cached or journalled, and calls in the audit trail."""

    def __init__(
        self,
        *,
        runner: CallEnder,
        unanswered: UnansweredCalls,
        detached: DetachedCalls,
        paused: PausedCalls,
        sessions: SessionManager,
        journal: JournalPort,
    ) -> None:
        self.peers: PeerCalls | None = None
        """The other nodes; None if this daemon shares its database with no other daemon."""
        self._paused = paused
        self._runner = runner
        self._unanswered = unanswered
        self._detached = detached
        self._sessions = sessions
        self._journal = journal

    async def look_up(self, principal: Principal, call_id: str) -> CallInfo:
        """Implements ``LookupContext.look_up_call``."""
        if self.peers is None:
            return await self.look_up_here(principal, call_id)
        found: CallInfo | None = None
        for _ in range(2):  # between the attempts, its node may release the call or be declared dead
            try:
                info = await self.look_up_here(principal, call_id)
            except SessionHeldError as held:
                found = await self.peers.find_call(held.holder, principal, call_id)
                if found is not None and found.state != "unknown":
                    return found
                continue
            if info.state not in {"unknown", "waiting"} or call_id in self._detached.waiting:
                return info
            found = await self.peers.find_call(None, principal, call_id)
            return info if found is None or found.state == "unknown" else found
        if found is None:  # whether the call has ended is not known here, and its node may have said so before
            raise ServiceUnavailableError.content_free(
                "Another node has the call and does not answer at present; try again in a moment.", executed="no"
            )
        return found

    async def look_up_here(self, principal: Principal, call_id: str) -> CallInfo:
        """A call as this node knows it.

        Raises:
            SessionHeldError: another node runs it.
            ServiceUnavailableError: the database cannot be read.
        """
        call = self._find(principal, call_id)
        if call is not None:
            return _info_of(call)
        suspended = self._detached.suspended.get(call_id)
        if suspended is not None and suspended.resumes and suspended.session.principal == principal:
            return replace(_info_of(suspended), state="waiting")
        waiting = self._detached.waiting.get(call_id)
        if waiting is not None and waiting.session.principal == principal.name:
            remaining_s = max(0.0, waiting.deadline_at - time.time())
            return CallInfo(
                id=call_id, state="waiting", tool=waiting.tool, started_at=waiting.started_at, remaining_s=remaining_s
            )
        session = self._sessions.loaded(hash_key(call_id), principal.name)
        if session is not None and (ended := self._ended(session, call_id)) is not None:
            return ended  # without the database, because callers may poll for the end of the call
        stored = await self._paused.find(call_id, principal)
        if stored is not None and self._find(principal, call_id) is None:
            return _stored_info(stored)
        return await self._finished_detached(principal, call_id) or await self._finished(principal, call_id)

    async def decide(self, by: RunningCall, call_id: str, decisions: Sequence[tuple[str, InputDecision]]) -> list[str]:
        """Implements ``LookupContext.decide``."""
        principal = by.session.principal
        if by.parent_scope is not None and by.parent_scope.nesting.agents:
            raise PermissionDeniedError.content_free(
                "A person decides on requests: an agent, or a tool that it calls, cannot call agent_decide."
            )
        try:
            return await self._paused.decide(principal, call_id, decisions, by)
        except NotFoundError:
            info = await self.look_up(principal, call_id)
            if info.state == "unknown":
                raise
            raise InvalidArgumentsError(
                f"The call {call_id[:SHOWN_ID_CHARS]!r} is {info.state}: it has never paused, and no decision is open."
            ) from None

    async def cancel(self, principal: Principal, call_id: str) -> bool:
        """Implements ``LookupContext.cancel_call``."""
        if self.peers is None or self._find(principal, call_id) is not None:
            return await self.cancel_here(principal, call_id)
        holder: NodeRow | None = None
        try:
            if await self.cancel_here(principal, call_id):
                return True
            if (await self.look_up_here(principal, call_id)).state != "unknown":
                return False
        except SessionHeldError as held:
            holder = held.holder
        return await self.peers.cancel(holder, principal, call_id)

    async def cancel_here(self, principal: Principal, call_id: str) -> bool:
        """Cancels a call that runs at this node, or that is paused.

        Raises:
            SessionHeldError: another node runs it.
            ServiceUnavailableError: the database cannot be read or written.
        """
        call = self._find(principal, call_id)
        if call is None:
            return await self._paused.cancel(call_id, principal)
        if call.end_reason is not None:
            return False
        self._runner.end(call, EndReason.CALLER)
        return True

    def _find(self, principal: Principal, call_id: str) -> RunningCall | None:
        session = self._sessions.loaded(hash_key(call_id), principal.name)
        if session is not None and self._is_detached(session):
            return self._unanswered.find(session, _DETACHED_KEY)
        for call in self._unanswered.all:
            if call.id == call_id and call.session.principal == principal:
                return call
        return None

    async def _finished_detached(self, principal: Principal, call_id: str) -> CallInfo | None:
        session = await self._sessions.find(
            hash_key(call_id), principal, transport=TRANSPORT, absent_port=self._detached.port
        )
        if session is None:
            return None
        if self._is_detached(session) and session.calls.status(_DETACHED_KEY, time.monotonic()) == "running":
            return CallInfo(id=call_id, state="ending")  # its answer is being recorded
        return self._ended(session, call_id)

    def _ended(self, session: Session, call_id: str) -> CallInfo | None:
        """The detached call of a session, if it has ended."""
        now = time.monotonic()
        status = session.calls.status(_DETACHED_KEY, now)
        if not self._is_detached(session) or status in {"unknown", "running"}:
            return None
        return _finished_info(call_id, status, session.calls.result(_DETACHED_KEY, now))

    def _is_detached(self, session: Session) -> bool:
        """Whether the session has one detached call, whose id is the session's key."""
        return session.absent_port is self._detached.port

    async def _finished(self, principal: Principal, call_id: str) -> CallInfo:
        child = journalled_child(call_id) or ("", call_id)
        stored = await self._journal.find_ended_call(call_id, child, principal)
        if isinstance(stored, StoredCall):
            return replace(_finished_info(call_id, stored.state, await load_result(stored)), tool=stored.tool)
        if isinstance(stored, CallRow):
            state: CallState = "done" if stored.outcome == "ok" else "failed"
            return CallInfo(
                id=call_id, state=state, tool=stored.tool, started_at=stored.started_at, outcome=stored.outcome
            )
        return CallInfo(id=call_id, state="unknown")


def journalled_child(call_id: str) -> tuple[str, str] | None:
    """The run and the name under which the journal has a child call; None if it is not a child call."""
    run, slash, name = _ID_SUFFIX.sub("", call_id).rpartition("/")
    return (run, name) if slash else None


def _info_of(call: RunningCall) -> CallInfo:
    return CallInfo(
        id=call.id,
        state=call.public_state,
        tool=call.tool.name,
        started_at=call.started_at,
        remaining_s=max(0.0, call.deadline - time.monotonic()),
        progress=call.last_progress,
    )


def _stored_info(stored: StoredDetachedCall) -> CallInfo:
    """The call info of a detached call that has not ended and does not run: it is paused, or about to run again."""
    if stored.expires_at is None:
        return CallInfo(id=stored.call_id, state="waiting", tool=stored.tool, started_at=stored.started_at)
    return CallInfo(
        id=stored.call_id,
        state="paused",
        tool=stored.tool,
        started_at=stored.started_at,
        requests=open_requests(stored),
        expires_at=stored.expires_at,
    )


def _finished_info(call_id: str, state: CallState, result: ToolResult | None) -> CallInfo:
    """The call info of a finished call, from its stored state and result."""
    if result is not None and state == "done":
        state = "done" if result.ok else "failed"
    outcome = None if result is None else result.outcome
    return CallInfo(id=call_id, state=state, outcome=outcome, result=result)
