"""The stages between a tool's return and the delivery of the answer: render, fit, record.

``CallExecution`` calls them in this order.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from ...protocol.error_codes import CallError
from ...protocol.tool_call import ToolResult
from ...tools import RetainedResults
from ..off_loop import off_loop
from . import call_outcome
from .call_phase import EndReason, JournalRecord
from .dispatch_limits import DispatchLimits
from .held_bytes import ByteLimits, HeldBytes
from .recording_ports import JournalPort, RecorderPort
from .result_spill import fit_answer
from .running_call import RunningCall
from .session_manager import SessionManager

_log = structlog.get_logger(__name__)

# Constants for every call, because on Python 3.11 each access to an enum member is a Python call.
_OWN_RECORD: Final = JournalRecord.OWN
_PREVIOUS_CALL: Final = JournalRecord.PREVIOUS_CALL

_SPILLING: Final = ByteLimits(session=32 * 1024**2, principal=32 * 1024**2, daemon=128 * 1024**2)
"""The limits of the results that wait for the disk. If one is exceeded, no further tool of the session, the principal
or the daemon starts, so that a disk that is slower than the tools does not fill the memory.
"""
_SPILLS: Final = 2
"""The number of results that are written at the same time, each within ``WRITE_TIMEOUT_S``."""


class AnswerPreparation:
    """Renders, fits and records the answers of all calls."""

    def __init__(
        self,
        *,
        results: RetainedResults,
        recorder: RecorderPort,
        journal: JournalPort,
        limits: Callable[[], DispatchLimits],
        sessions: SessionManager,
        unread: HeldBytes,
        clock: Callable[[], float],
    ) -> None:
        self._results = results
        self._recorder = recorder
        self._journal = journal
        self._limits = limits
        self._sessions = sessions
        self._unread = unread
        self._clock = clock
        self.spilling = HeldBytes(lambda: _SPILLING)
        """The results that are written to files, or wait to be written."""
        self._spills = asyncio.Semaphore(_SPILLS)

    def render(self, call: RunningCall, result: ToolResult) -> tuple[bytes, ToolResult]:
        """The answer as the port renders it, and its result: an error if the result cannot be written as JSON."""
        try:
            return call.port.render(call, result), result
        except (TypeError, ValueError, RecursionError) as error:
            result = call_outcome.failed(call, call_outcome.not_serialisable(call, error), self._clock())
            return call.port.render(call, result), result

    async def fit(self, call: RunningCall, result: ToolResult, answer: bytes) -> tuple[bytes, ToolResult]:
        """The answer to send, and its result. The answer counts as unread until the caller removes it."""
        limits, size = self._limits(), len(answer)
        exceeded = self._unread.exceeded(call.session, size)
        if exceeded is None and self._sessions.cached_bytes + size > limits.max_cached_result_bytes_total:
            exceeded = f"all cached results ({limits.max_cached_result_bytes_total:,} bytes)"
        if size > limits.answer_bytes or exceeded is not None:
            with self.spilling.holding(call.session, size):
                async with self._spills:
                    answer, result = await fit_answer(
                        call,
                        result,
                        answer,
                        max_bytes=limits.max_frame_bytes,
                        results=self._results,
                        clock=self._clock,
                        exceeded=exceeded,
                    )
        self._unread.add(call.session, len(answer))
        return answer, result

    async def record_in_journal(self, call: RunningCall, result: ToolResult, answer: bytes) -> None:
        """Write the end of a call whose start is in the journal."""
        # the journal has the call as running, or as ended long ago
        if call.resumes or call.previous_answer is not None:
            return
        try:
            await self._journal.end_call(call, result, answer)
            # The session may have been deleted from the journal before this end was written.
            if call.parent is None and call.session.ended:
                self._journal.session_closed(call.session)
        except Exception:  # noqa: BLE001 - a call that cannot be recorded is answered all the same
            _log.exception("call could not be recorded", tool=call.tool.name)

    def recorded_at_once(self, call: RunningCall, result: ToolResult, answer: bytes) -> bool:
        """Write the end of a call to the audit trail, if its start is not in the journal. False: its end belongs into
        the journal.
        """
        if call.journal_record is _OWN_RECORD:
            return False
        if call.resumes or call.previous_answer is not None:
            return True
        try:
            size = len(answer) if call.parent is None else call_outcome.text_bytes(result)
            self._recorder.call_ended(call, result, size)
        except Exception:  # noqa: BLE001 - as in ``record_in_journal``
            _log.exception("call could not be recorded", tool=call.tool.name)
        return True

    async def record_unstarted(self, call: RunningCall, result: ToolResult, answer: bytes) -> tuple[bytes, ToolResult]:
        """Record a call whose tool did not start. Its answer is final, so it is journalled unless the call is local.

        Returns the answer and its result: those of an earlier call if the journal has one with this request id.
        """
        if call.journalled and call.end_reason in {None, EndReason.DEADLINE}:  # a resumed run must see this end, too
            await self._journal_unstarted_child(call)
        repeatable = call.parent is not None or (call.tool.local and call.child_scope is None)
        known = call.journal_record is _PREVIOUS_CALL
        closed = call.session.ended  # no client can repeat the call
        if repeatable or known or closed or call.resumes:
            if not self.recorded_at_once(call, result, answer):
                await self.record_in_journal(call, result, answer)
            return answer, result
        call.journal_record, call.session.journalled = _OWN_RECORD, True
        try:
            is_new = await self._journal.end_unstarted_call(call, result, answer)
        except Exception:  # noqa: BLE001 - as in ``record_in_journal``
            _log.exception("call could not be recorded", tool=call.tool.name)
            return answer, result
        if call.session.ended:  # while the end was written
            self._journal.session_closed(call.session)
        if is_new:
            return answer, result
        return await off_loop(self.render, call, await self._previous_result(call))

    async def _journal_unstarted_child(self, call: RunningCall) -> None:
        """Write the start of a journalled child whose tool did not start; its end is written then."""
        earlier_run = call.journal_record is JournalRecord.EARLIER_RUN
        try:
            if await self._journal.start_call(call, replace=earlier_run):
                call.journal_record, call.session.journalled = _OWN_RECORD, True
        except CallError:
            _log.exception("call could not be recorded", tool=call.tool.name)

    async def _previous_result(self, call: RunningCall) -> ToolResult:
        """The result of the earlier call with the same request id, or an error if it is not available."""
        call.journal_record = _PREVIOUS_CALL
        try:
            previous = call.previous_answer = await self._sessions.previous_answer(call)
        except CallError as error:
            return call_outcome.failed(call, error, self._clock())
        return previous.result
