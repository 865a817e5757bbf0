"""A journal in memory, and the recorder of ended and refused calls."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec
from toold.daemon.dispatch import RunningCall, Session
from toold.protocol.arguments_digest import arguments_digest
from toold.protocol.error_codes import ServiceUnavailableError
from toold.protocol.session_calls import PendingResult
from toold.protocol.tool_call import Principal, ToolCall, ToolResult, encode_result
from toold.store import (
    A2ATaskRow,
    CallRow,
    RunUsage,
    SessionRow,
    StoredCall,
    StoredCallState,
    StoredDetachedCall,
    StoredSession,
)


@dataclass
class FakeRecorder:
    """Keeps the recorded calls."""

    ended_calls: list[tuple[RunningCall, ToolResult, int]] = field(default_factory=list)
    refused_calls: list[tuple[ToolCall, ToolResult]] = field(default_factory=list)

    def call_ended(self, running: RunningCall, result: ToolResult, result_bytes: int) -> None:
        self.ended_calls.append((running, result, result_bytes))

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
        self.refused_calls.append((request, result))


class FakeJournal:
    """A journal in memory, whose writes can fail or wait."""

    def __init__(self, recorder: FakeRecorder) -> None:
        self.recorder = recorder
        self.events: list[tuple[str, str]] = []
        """All writes in order: ``start``, ``end``, ``keep``, ``forget``, ``close`` or ``seen``, each with its key."""
        self.sessions: dict[bytes, SessionRow] = {}
        self.calls: dict[tuple[str, str], StoredCall] = {}
        self.runs: dict[str, tuple[str, Principal, str]] = {}
        """Call → its tool, principal and run."""
        self.orders: dict[str, StoredDetachedCall] = {}
        """All detached calls so far."""
        self.spent_by_tools: dict[str, dict[str, float]] = {}
        """What was spent today before this process."""
        self.refuses = False
        self.loses_ends = False
        """Ends of calls are recorded but not written, as if the disk failed at that moment."""
        self.method_calls: Counter[str] = Counter()
        """The number of calls of each method."""
        self.ready = asyncio.Event()
        """While it is cleared, writes and reads wait."""
        self.ready.set()

    @property
    def writable(self) -> bool:
        self.method_calls["writable"] += 1
        return not self.refuses

    async def start_call(self, running: RunningCall, *, replace: bool, task: A2ATaskRow | None = None) -> bool:
        await self._disk("start")
        if self.refuses:
            raise ServiceUnavailableError("The disk refuses.", executed="no")
        known = self.calls.get((running.scope, running.key))
        if known is not None and not known.local and not replace:
            return False
        self.events.append(("start", running.key))
        self.calls[running.scope, running.key] = self._call(running, "interrupted", None)
        if running.creator is not None:
            self.runs[running.creator] = (running.tool.name, running.session.principal, running.id)
        if running.detached:
            (row,) = [row for row in self.sessions.values() if row.id == running.session.id]
            self.orders[running.id] = StoredDetachedCall(
                call_id=running.id,
                request_key=running.key,
                tool=running.tool.name,
                started_at=running.started_at,
                session=row,
                arguments=msgspec.json.encode(running.request.arguments),
                client=msgspec.json.encode(running.session.client),
                deadline_at=time.time() + running.deadline - time.monotonic(),
            )
        if running.tool.orchestration and running.parent is None:
            self.runs[running.id] = (running.tool.name, running.session.principal, running.id)
        return True

    async def end_call(self, running: RunningCall, result: ToolResult, answer: bytes) -> None:
        await self._disk("end")
        self.recorder.call_ended(running, result, len(answer))
        if self.loses_ends:
            return
        self.events.append(("end", running.key))
        self.calls[running.scope, running.key] = self._call(running, "done", encode_result(result))

    async def end_unstarted_call(self, running: RunningCall, result: ToolResult, answer: bytes) -> bool:
        await self._disk("end")
        self.recorder.call_ended(running, result, len(answer))
        known = self.calls.get((running.scope, running.key))
        if known is not None and not known.local and known.state != "interrupted":
            return False
        self.events.append(("end", running.key))
        ended = self._call(running, "done", encode_result(result))
        self.calls[running.scope, running.key] = msgspec.structs.replace(ended, started=False)
        return True

    async def earlier_call(self, running: RunningCall) -> StoredCall | None:
        await self._disk("earlier_call")
        return self.calls.get((running.session.id, running.key))

    async def call_states(self, session: Session, keys: Sequence[str]) -> dict[str, StoredCallState]:
        await self._disk("call_states")
        if self.refuses:
            raise ServiceUnavailableError("The disk refuses.")
        known = {key: self.calls.get((session.id, key)) for key in keys}
        return {key: call.state for key, call in known.items() if call is not None}

    async def earlier_child(self, running: RunningCall) -> StoredCall | None:
        await self._disk("earlier_child")
        return self.calls.get((running.scope, running.key))

    async def children_of_run(self, run: str, principal: Principal) -> dict[str, tuple[str, bytes]]:
        await self._disk("children_of_run")
        rows = [call for (scope, _), call in self.calls.items() if scope == run]
        return {call.request_key: (call.tool, call.arguments_hash) for call in rows}

    async def find_run(self, call_id: str, principal: Principal, tool: str) -> str | None:
        await self._disk("find_run")
        known = self.runs.get(call_id)
        return known[2] if known is not None and known[:2] == (tool, principal) else None

    async def usage_of_run(self, run: str, principal: Principal) -> list[RunUsage]:
        await self._disk("usage_of_run")
        return [
            RunUsage(usage=usage, simulated=running.meter.simulated)
            for running, _, _ in self.recorder.ended_calls
            if running.session.principal == principal and f"{running.scope}/".startswith(f"{run}/")
            for usage in running.meter.usage_by_model
        ]

    async def spent_by_tool(self, tool: str, day: str) -> dict[str, float]:
        await self._disk("spent_by_tool")
        return self.spent_by_tools.get(tool, {})

    async def resume_run(self, running: RunningCall, run: str) -> None:
        await self._disk("resume_run")
        self.runs[running.id] = (running.tool.name, running.session.principal, run)

    async def _disk(self, what: str) -> None:
        self.method_calls[what] += 1
        await self.ready.wait()

    def _call(self, running: RunningCall, state: StoredCallState, result: bytes | None) -> StoredCall:
        return StoredCall(
            session_id=running.scope,
            request_key=running.key,
            echo_id=running.request.echo_id,
            tool=running.tool.name,
            arguments_hash=arguments_digest(running.request.arguments),
            local=running.tool.local,
            state=state,
            result=result,
            at=time.time(),
        )

    def session_opened(self, session: Session) -> None:
        assert session.key_hash is not None
        self.sessions[session.key_hash] = SessionRow(
            id=session.id,
            key_hash=session.key_hash,
            principal=session.principal.name,
            label=session.label,
            toolset=session.toolset,
            opened_at=time.time(),
            former=session.former,
        )

    def acknowledged(self, session: Session, keys: Sequence[str]) -> None:
        self.events.extend(("forget", key) for key in keys)
        for key in keys:
            known = self.calls.pop((session.id, key), None)
            if known is not None and not known.local:
                self.calls[session.id, key] = msgspec.structs.replace(known, state="expired", result=None)

    def session_closed(self, session: Session) -> None:
        self.events.append(("close", session.label))

    def sessions_unloaded(self, sessions: Sequence[Session]) -> None:
        pass

    def sessions_seen(self, sessions: Iterable[Session]) -> None:
        self.events.extend(("seen", session.label) for session in sessions)

    async def flush(self) -> None:
        await self._disk("flush")

    async def detached_calls(self) -> list[StoredDetachedCall]:
        await self._disk("detached_calls")
        return [
            order for order in self.orders.values() if self.calls[order.session.id, order.request_key].state != "done"
        ]

    async def find_ended_call(
        self, call_id: str, child: tuple[str, str], principal: Principal
    ) -> StoredCall | CallRow | None:
        await self._disk("find_ended_call")
        return self.calls.get(child)

    async def persist_local_results(self, answers: Sequence[tuple[Session, PendingResult]]) -> bool:
        await self._disk("persist_local_results")
        if self.refuses:
            return False
        for session, answer in answers:
            self.events.append(("keep", answer.key))
            self.calls[session.id, answer.key] = StoredCall(
                session_id=session.id,
                request_key=answer.key,
                echo_id=answer.echo_id,
                tool=answer.name,
                arguments_hash=session.calls.arguments_hash(answer.key),
                local=True,
                state="done",
                result=encode_result(answer.result),
                at=answer.since + time.time() - time.monotonic(),
            )
        return True

    async def find_session(self, key_hash: bytes) -> StoredSession | None:
        await self._disk("find_session")
        if self.refuses:
            raise ServiceUnavailableError("The disk refuses.", executed="no")
        row = self.sessions.get(key_hash)
        if row is None:
            return None
        goes_on = {detached_call.session.id for detached_call in await self.detached_calls()}
        calls = [call for call in self.calls.values() if call.session_id == row.id and row.id not in goes_on]
        return StoredSession(row=row, calls=calls)
