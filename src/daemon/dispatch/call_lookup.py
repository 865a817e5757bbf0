"""Calls by their ids, for whoever of their principal asks: what they are at, how they ended, and their end."""

import re
import time
from collections.abc import Iterable
from typing import Final, Protocol

import msgspec

from ...protocol.frame_decoding import request_key
from ...protocol.session_registry import hash_key
from ...protocol.tool_call import Principal, ToolResult
from ...store import CallRow, StoredCall
from ...tools import CallInfo, CallState
from . import call_outcome
from .detached_calls import CALL, NOBODY, TRANSPORT, DetachedCalls
from .recording_ports import JournalPort
from .running_call import EndReason, RunningCall
from .session_manager import SessionManager

_MARK: Final = re.compile(r"~[0-9a-f]+")
"""In the ids of what a detached call made after a restart; the journal has its children without it."""


class CallSource(Protocol):
    """What runs calls: ``execution.Execution``."""

    @property
    def running(self) -> Iterable[RunningCall]: ...

    def end(self, running: RunningCall, ended_by: EndReason) -> None: ...


class CallLookup:
    """The calls that run, those that are kept, and those that the audit tells of."""

    def __init__(
        self, runner: CallSource, detached: DetachedCalls, sessions: SessionManager, journal: JournalPort
    ) -> None:
        self._runner = runner
        self._detached = detached
        self._sessions = sessions
        self._journal = journal

    async def look_up(self, principal: Principal, call_id: str) -> CallInfo:
        """``LookupContext.look_up_call``."""
        running = self._find(principal, call_id)
        if running is not None:
            return _running(running)
        waiting = self._detached.waiting.get(call_id)
        if waiting is not None and waiting.session.principal == principal.name:
            left_s = max(0.0, waiting.deadline_at - time.time())
            return CallInfo(
                id=call_id, state="waiting", tool=waiting.tool, started_at=waiting.started_at, left_s=left_s
            )
        return await self._detached_one(principal, call_id) or await self._ended(principal, call_id)

    def cancel(self, principal: Principal, call_id: str) -> bool:
        """``LookupContext.cancel_call``."""
        running = self._find(principal, call_id)
        if running is None or running.ended_by is not None:
            return False
        self._runner.end(running, EndReason.CALLER)
        return True

    def _find(self, principal: Principal, call_id: str) -> RunningCall | None:
        for running in self._runner.running:
            if running.id == call_id and running.session.principal == principal:
                return running
        return None

    async def _detached_one(self, principal: Principal, call_id: str) -> CallInfo | None:
        session = await self._sessions.find(hash_key(call_id), principal, transport=TRANSPORT, away=NOBODY)
        if session is None or session.transport != TRANSPORT:
            return None
        key, now = request_key(CALL), time.monotonic()
        status = session.calls.status(key, now)
        if status == "unknown":
            return None
        if status == "running":  # its answer is being written down
            return CallInfo(id=call_id, state="ending")
        return _told(call_id, status, session.calls.result(key, now))

    async def _ended(self, principal: Principal, call_id: str) -> CallInfo:
        run, _, name = _MARK.sub("", call_id).rpartition("/")
        known = await self._journal.find_ended_call(call_id, (run, name), principal)
        if isinstance(known, StoredCall):
            return msgspec.structs.replace(
                _told(call_id, known.state, call_outcome.stored_result(known)), tool=known.tool
            )
        if isinstance(known, CallRow):
            state: CallState = "done" if known.outcome == "ok" else "failed"
            return CallInfo(
                id=call_id, state=state, tool=known.tool, started_at=known.started_at, outcome=known.outcome
            )
        return CallInfo(id=call_id, state="unknown")


def _running(running: RunningCall) -> CallInfo:
    state: CallState = "running" if running.running else "waiting"
    return CallInfo(
        id=running.id,
        state="ending" if running.ended_at is not None else state,
        tool=running.tool.name,
        started_at=running.started_at,
        left_s=max(0.0, running.deadline - time.monotonic()),
        progress=running.latest,
    )


def _told(call_id: str, state: CallState, result: ToolResult | None) -> CallInfo:
    """A call that has ended, as a book of calls has it."""
    if result is not None and state == "done":
        state = "done" if result.ok else "failed"
    outcome = None if result is None else result.outcome
    return CallInfo(id=call_id, state=state, outcome=outcome, result=result)
