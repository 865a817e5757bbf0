"""Paused calls: they wait on the disk for decisions or credentials of a person, and then run again (decision 83).

A paused call is a detached call without a task. A client's call that pauses is answered, and a new detached call, which
continues its run, is paused in its place.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import msgspec
import structlog

from ...protocol.detached_answer import paused_answer
from ...protocol.error_codes import (
    CallCancelledError,
    CallError,
    InvalidArgumentsError,
    ResultExpiredError,
    ServiceUnavailableError,
    ToolExecutionError,
)
from ...protocol.input_request import CallPausedError, InputDecision, InputRequest, decision_problem
from ...protocol.tool_call import Principal, ToolResult
from ...protocol.user_credential import CredentialField
from ...store import CallPause, StoredDetachedCall, decision_hash
from ...tools import CredentialLookup, content, unknown_call
from ..observability.logging_setup import error_text
from .admission import too_many_paused
from .call_outcome import metadata_of
from .call_phase import EndReason
from .detached_calls import MIN_RESUMED_S, DetachedCalls
from .dispatch_limits import DispatchLimits
from .pause_port import PausePort
from .running_call import RunningCall

_DAY_S: Final = 86_400.0
_RETRY_S: Final = 5.0
"""The delay before the next search for expired requests if the database cannot be read or written."""
_LONGEST_WAIT_S: Final = 60.0
"""The longest time between two such searches, which also find paused runs whose results were dropped."""

_log = structlog.get_logger(__name__)


class PausedCalls:
    """Pauses calls, takes decisions, and runs the calls again."""

    def __init__(self, *, detached: DetachedCalls, pauses: PausePort, credentials: CredentialLookup) -> None:
        self._detached = detached
        self._pauses = pauses
        self._credentials = credentials
        # One change at a time, so that a call never continues twice.
        self._lock = asyncio.Lock()
        self._changed = asyncio.Event()
        # Referenced so that they are not collected.
        self._tasks: set[asyncio.Task[Any]] = set()

    async def pause(self, call: RunningCall, paused: CallPausedError, limits: DispatchLimits) -> ToolResult:
        """Pause a call whose tool raised ``paused``. Returns its answer; a child's pause goes to its parent, and a
        detached call has no answer yet.

        Raises:
            CallError: it cannot pause.
        """
        scope = call.child_scope
        call_id = call.id
        if call.parent is None and scope is not None:
            if all(request.id in scope.decisions for request in paused.requests):
                raise ToolExecutionError.content_free(
                    f"The tool {call.tool.name} paused again for requests that have been decided."
                )
            pausing = asyncio.create_task(self._pause(call, paused, limits))
            self._tasks.add(pausing)
            pausing.add_done_callback(self._tasks.discard)
            try:
                call_id = await asyncio.shield(pausing)
            except asyncio.CancelledError:
                if not call.detached and call.end_reason is not EndReason.SHUTDOWN:
                    # The client will not get the id of the replacement call.
                    pausing.add_done_callback(partial(self._withdraw, call.session.principal))
                raise
        if call.parent is not None or call.detached:
            call.paused = paused
        answer = paused_answer(call_id, paused.requests, paused.expires_at)
        return ToolResult(metadata_of(call, time.monotonic()), *content(answer, tool=call.tool.name))

    async def decide(
        self, principal: Principal, call_id: str, decisions: Sequence[tuple[str, InputDecision]], by: RunningCall
    ) -> list[str]:
        """Take decisions on a paused call's requests, all or none; after the last one, the call runs again. Returns the
        ids of the requests that are still open. A repeated decision has no effect.

        Raises:
            NotFoundError: the principal has no such call.
            InvalidArgumentsError: a request does not exist, or has another decision, or the decision does not fit it.
            ServiceUnavailableError: the database cannot be read or written.
        """
        async with self._lock:
            stored = await self._pauses.find(call_id, principal)
            made = await self._pauses.decision_hashes(call_id, principal)
            if not made and (stored is None or not stored.requests):
                raise unknown_call(call_id)
            new = self._new_decisions(stored, made, decisions)
            if stored is None:
                return []
            if new:
                await self._pauses.decide(stored, new, by)
            decided = {request_id for request_id, _ in new}
            remaining = [request.id for request in open_requests(stored) if request.id not in decided]
            if new and not remaining:
                await self._continue(stored)
            return remaining

    async def cancel(self, call_id: str, principal: Principal | None) -> bool:
        """End a paused call; if a principal is given, only its own. Returns False if there is none.

        Raises:
            ServiceUnavailableError: the database cannot be read or written.
        """
        async with self._lock:
            stored = await self._pauses.find(call_id, principal)
            if stored is None or stored.expires_at is None:
                return False
            who = "its caller" if principal is not None else "the operator"
            await self._end(
                stored, CallCancelledError.content_free(f"The call was cancelled by {who} while it was paused.")
            )
            return True

    async def paused_calls(self, principal: Principal | None) -> list[StoredDetachedCall]:
        """The oldest 100 paused calls of a principal, or of all principals.

        Raises:
            ServiceUnavailableError: the database cannot be read.
        """
        return await self._pauses.paused_calls(principal)

    async def find(self, call_id: str, principal: Principal) -> StoredDetachedCall | None:
        """The principal's detached call that has not ended, paused or not."""
        return await self._pauses.find(call_id, principal)

    def credentials_changed(self) -> None:
        """Reports that credentials were given, so that the calls that wait for them resume soon."""
        self._changed.set()

    async def expire(self) -> None:
        """Decide requests that have expired or whose credential is stored, and end calls whose run was dropped, as long
        as the daemon runs.
        """
        while True:
            try:
                async with self._lock:
                    for stored in await self._pauses.due():
                        await self._expire(stored)
                await self._provide_credentials()
                next_s = await self._pauses.next_expiry_s()
                wait_s = _LONGEST_WAIT_S if next_s is None else min(_LONGEST_WAIT_S, max(0.0, next_s))
            except ServiceUnavailableError as error:
                _log.warning("requests of paused calls cannot expire now", reason=error_text(error))
                wait_s = _RETRY_S
            except Exception:  # noqa: BLE001 - without this loop no request would ever expire
                _log.exception("requests of paused calls cannot expire")
                wait_s = _LONGEST_WAIT_S
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()
            self._changed.clear()

    def _new_decisions(
        self,
        stored: StoredDetachedCall | None,
        made: Mapping[str, bytes],
        decisions: Sequence[tuple[str, InputDecision]],
    ) -> list[tuple[str, InputDecision]]:
        def problem(request: InputRequest, decision: InputDecision) -> str | None:
            if stored is None or request.tool is None or decision.arguments is None:
                return None
            return self._detached.argument_problem(stored, request.tool, decision.arguments)

        return new_decisions(stored, made, decisions, problem)

    async def _pause(self, call: RunningCall, paused: CallPausedError, limits: DispatchLimits) -> str:
        """Persist the pause of a call without parent. Returns the id of the paused call."""
        now, at = time.monotonic(), time.time()
        drops_at = at + limits.agents_keep_days * _DAY_S
        async with self._lock:
            if await self._pauses.count(call.session.principal) >= limits.max_paused:
                raise too_many_paused(limits.max_paused)
            entry = CallPause(
                call_id=call.id,
                requests=paused.requests,
                expires_at=min(paused.expires_at, drops_at),
                drops_at=drops_at,
                remaining_s=max(MIN_RESUMED_S, call.deadline - now),
            )
            if call.detached:
                await self._pauses.pause(entry)
                self._detached.unload(call.session)
            else:
                # The call gets its full timeout again, because the client's timeout applied to the answer.
                default_s = call.tool.timeout_s or limits.default_timeout_s
                timeout_s = max(MIN_RESUMED_S, default_s, call.deadline - call.started)
                successor = self._detached.successor(call, timeout_s)
                try:
                    await self._pauses.start_paused(
                        successor, msgspec.structs.replace(entry, call_id=successor.id, remaining_s=timeout_s)
                    )
                finally:
                    self._detached.unload(successor.session)
                call.continued_by = successor.id
                entry = msgspec.structs.replace(entry, call_id=successor.id)
        self._changed.set()
        return entry.call_id

    def _withdraw(self, principal: Principal, pausing: asyncio.Task[str]) -> None:
        if pausing.cancelled() or pausing.exception() is not None:
            return
        cancelling = asyncio.create_task(self.cancel(pausing.result(), principal))
        self._tasks.add(cancelling)
        cancelling.add_done_callback(self._tasks.discard)

    async def _expire(self, stored: StoredDetachedCall) -> None:
        if stored.dropped or (stored.drops_at is not None and time.time() >= stored.drops_at):
            await self._end(stored, _dropped(by_size=stored.dropped))
            return
        decisions = [(request.id, InputDecision("expired")) for request in open_requests(stored)]
        await self._pauses.decide(stored, decisions, None)
        await self._continue(stored)

    async def _provide_credentials(self) -> None:
        """Check whether the credentials that calls wait for have been stored, by a user or another program."""
        known: dict[tuple[str, CredentialField], bool] = {}
        for stored in await self._pauses.waiting_for_credentials():
            provided: list[str] = []
            for request in open_requests(stored):
                wanted, principal = request.credential, stored.session.principal
                if request.kind != "credential" or wanted is None:
                    continue
                if (principal, wanted) not in known:
                    known[principal, wanted] = await self._credentials.value(principal, wanted) is not None
                if known[principal, wanted]:
                    provided.append(request.id)
            if provided:
                await self._provide(stored.call_id, provided)

    async def _provide(self, call_id: str, request_ids: Sequence[str]) -> None:
        async with self._lock:  # they may have been decided meanwhile
            stored = await self._pauses.find(call_id, None)
            opened = {request.id for request in open_requests(stored)} if stored is not None else set[str]()
            provided = [(request_id, InputDecision("provided")) for request_id in request_ids if request_id in opened]
            if stored is not None and provided:
                await self._pauses.decide(stored, provided, None)
                if len(provided) == len(opened):
                    await self._continue(stored)

    async def _continue(self, stored: StoredDetachedCall) -> None:
        """Run a call again whose last request has been decided."""
        current = await self._pauses.find(stored.call_id, None)
        if current is None or current.expires_at is not None:
            return
        if current.dropped:
            await self._end(current, _dropped(by_size=True))
            return
        if await self._pauses.adopt(current.call_id):
            await self._detached.resume_call(current)

    async def _end(self, stored: StoredDetachedCall, error: CallError) -> None:
        await self._pauses.end(stored, error)
        self._detached.unload_key(stored.session.key_hash, stored.session.principal)
        self._detached.port.changed(stored.call_id)


def open_requests(stored: StoredDetachedCall) -> tuple[InputRequest, ...]:
    """The requests of a call that have not been decided."""
    return tuple(each.request for each in stored.requests if each.decision is None)


def new_decisions(
    stored: StoredDetachedCall | None,
    made: Mapping[str, bytes],
    decisions: Sequence[tuple[str, InputDecision]],
    fits: Callable[[InputRequest, InputDecision], str | None],
) -> list[tuple[str, InputDecision]]:
    """The decisions that have not been made yet. ``made`` has the hashes of earlier decisions. ``fits`` returns the
    reason why changed arguments do not fit the tool.

    Raises:
        InvalidArgumentsError: a request does not exist, or has another decision, or the decision does not fit it.
    """
    requests = {} if stored is None else {request.id: request for request in open_requests(stored)}
    new: dict[str, InputDecision] = {}
    problems: dict[str, str] = {}
    for number, (request_id, decision) in enumerate(decisions):
        field = f"decisions.{number}"
        earlier = made.get(request_id) if request_id not in new else decision_hash(new[request_id])
        if earlier is not None:
            if earlier != decision_hash(decision):
                problems[field] = f"the request {request_id!r} has another decision already, which cannot be changed"
        elif request_id not in requests:
            problems[f"{field}.id"] = f"there is no request {request_id[:80]!r}"
        elif problem := decision_problem(requests[request_id], decision) or fits(requests[request_id], decision):
            problems[field] = problem
        else:
            new[request_id] = decision
    if problems:
        shown = ", ".join(map(repr, requests)) or "none"
        first = next(iter(problems.values()))
        raise InvalidArgumentsError(
            f"No decision was made: {first}. Open requests: {shown}.",
            details={"fields": problems, "open": list(requests)},
        )
    return list(new.items())


def _dropped(*, by_size: bool) -> ResultExpiredError:
    why = (
        "the results of your unfinished runs exceeded agents_keep_bytes"
        if by_size
        else "it was not finished within agents_keep_days after it first paused"
    )
    return ResultExpiredError.content_free(
        f"The paused call and the results of its run were dropped: {why}. What it did before stays done.",
        executed="maybe",
    )
