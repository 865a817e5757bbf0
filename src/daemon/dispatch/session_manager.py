"""Manages sessions in memory and in the database: opens, resumes and unloads them.

The router and the transports call it. It uses the session registry, the result caches and the journal. It does not
depend on frames, sockets or how calls run.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final

import structlog

from ...fairness import Permits
from ...protocol.arguments_digest import is_digest_of
from ...protocol.error_codes import OutcomeUnknownError, RequestIdConflictError, ResultExpiredError
from ...protocol.json_pieces import LONG_BYTES
from ...protocol.result_cache import CacheTotal, ResultCache
from ...protocol.session_calls import PendingResult, SessionCalls
from ...protocol.session_registry import SessionRegistry
from ...protocol.tool_call import CallStatus, ClientInfo, Metadata, Principal, Timings, ToolResult
from ...store import StoredCall, StoredSession
from ..off_loop import off_loop
from . import call_outcome
from .dispatch_limits import DispatchLimits
from .recording_ports import JournalPort
from .running_call import CallPort, PreviousAnswer, RunningCall, Session

_log = structlog.get_logger(__name__)

_UNLOAD_INTERVAL_S: Final = 5.0
"""How often the daemon removes idle sessions from memory."""
_SEEN_INTERVAL_S: Final = 3600.0
"""How often the database is updated with the sessions in use, which it retains for days."""

_ID_BYTES: Final = 16
"""Random bytes in the id of a session."""
_IDS_AT_ONCE: Final = 64
_PART_BYTES: Final = 1024**2
"""Encoding and hashing results and arguments of this size takes up to 6 ms, if they have many values."""
_LAST_WRITE_S: Final = 1.0
"""How long a slow disk can delay the end of the daemon."""


class SessionManager:
    """All sessions of the daemon."""

    def __init__(
        self,
        *,
        limits: Callable[[], DispatchLimits],
        journal: JournalPort,
        permits_of: Callable[[Principal], Permits | None],
    ) -> None:
        self._limits = limits
        self._permits_of = permits_of
        self._journal = journal
        self._sessions: SessionRegistry[Session, CallPort] = SessionRegistry()
        self._random_ids = _random_ids()
        # Results for replays, by principal.
        self._caches: dict[str, ResultCache] = {}
        self._cached = CacheTotal()
        # One lookup in the database at a time, so that no session is loaded twice.
        self._loading = asyncio.Lock()
        self._seen_at = time.monotonic()

    def __repr__(self) -> str:
        return f"<SessionManager sessions={len(self._sessions)}>"

    def __iter__(self) -> Iterator[Session]:
        """The sessions in memory."""
        return iter(self._sessions)

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def cached_bytes(self) -> int:
        """The size of all principals' cached results."""
        return self._cached.bytes

    def open(
        self,
        label: str,
        principal: Principal,
        client: ClientInfo,
        *,
        toolset: str,
        transport: str,
        streaming: bool,
        absent_port: CallPort,
        usable: tuple[str, ...] | None = None,
        key_hash: bytes | None = None,
        repeatable: bool = True,
    ) -> Session:
        """Open a session for a new client. With the hash of a resume key it can be resumed. Without
        ``repeatable`` its client cannot repeat a request id.
        """
        session = self._make(
            next(self._random_ids),
            label,
            principal,
            client,
            toolset=toolset,
            transport=transport,
            absent_port=absent_port,
            key_hash=key_hash,
            repeatable=repeatable,
        )
        session.streaming, session.usable = streaming, usable
        self._sessions.add(session)
        if session.resumable:
            self._journal.session_opened(session)
        return session

    def make_resumable(self, session: Session, key_hash: bytes) -> None:
        """Give an open session a resume key, so that it outlives its connection."""
        session.key_hash = key_hash
        self._sessions.add(session)
        self._journal.session_opened(session)

    def became_former(self, session: Session) -> None:
        """Stores that a call of the session used an argument name of an earlier server, so that this survives a
        restart.
        """
        if session.resumable:
            self._journal.session_opened(session)

    async def flush(self) -> None:
        """Wait until opened sessions are persisted, so that a resume key sent to a client survives a crash.

        Raises:
            ServiceUnavailableError: they are not persisted, and other nodes share the database.
        """
        await self._journal.flush()

    async def find(
        self, key_hash: bytes, principal: Principal, *, transport: str, absent_port: CallPort
    ) -> Session | None:
        """The principal's session with this resume key, loaded from the database if necessary.

        Raises:
            ServiceUnavailableError: the database cannot be read.
        """
        session = self._sessions.by_key(key_hash, principal.name)
        if session is not None:  # before the wait for the lock
            return session
        async with self._loading:
            session = self._sessions.by_key(key_hash, principal.name)
            if session is not None:
                return session
            stored = await self._journal.find_session(key_hash)
            if stored is None or stored.row.principal != principal.name:
                return None
            row = stored.row
            session = self._make(
                row.id,
                row.label,
                principal,
                ClientInfo(),
                toolset=row.toolset,
                transport=transport,
                absent_port=absent_port,
                key_hash=key_hash,
            )
            size = sum(len(call.result or b"") for call in stored.calls)
            results = await off_loop(_results_of, stored) if size > LONG_BYTES else _results_of(stored)
            session.former = row.former
            _restore_calls(session, stored, results)
            self._sessions.add(session)
            return session

    def loaded(self, key_hash: bytes, principal: str) -> Session | None:
        """The principal's session with this resume key, if it is in memory."""
        return self._sessions.by_key(key_hash, principal)

    def unload(self, session: Session) -> None:
        """Remove a session from memory; the database has it, with all answers of its calls."""
        self._sessions.remove(session)
        self._journal.sessions_unloaded([session])

    def hold(self, session: Session, port: CallPort) -> CallPort | None:
        """Let a port hold the session. Returns the port that held it until now."""
        return self._sessions.attach(session, port)

    def release(self, session: Session, port: CallPort) -> bool:
        """Release the session of a port whose connection is closed. Returns False if another port has taken the session
        over."""
        if not self._sessions.detach(session, port, time.monotonic()):
            return False
        if session.journalled and not session.resumable:
            self._journal.session_closed(session)
        return True

    def call_accepted(self, session: Session, key: str) -> None:
        """Delete the stored answer of an earlier call with this key, which is no longer in memory, so that it is never
        replayed."""
        if key in session.stored:
            session.stored.remove(key)
            self._journal.acknowledged(session, [key])

    async def statuses(self, session: Session, keys: Sequence[str]) -> dict[str, CallStatus]:
        """The statuses of a session's calls; reads the database only for calls that memory does not know.

        Raises:
            ServiceUnavailableError: the database cannot be read.
        """
        now = time.monotonic()
        statuses = {key: session.calls.status(key, now) for key in keys}
        unknown = [key for key, status in statuses.items() if status == "unknown"]
        if unknown and session.calls.incomplete:
            stored = await self._journal.call_states(session, unknown)
            for key in unknown:
                status = session.calls.status(key, now)  # the call may have arrived meanwhile
                statuses[key] = stored.get(key, "unknown") if status == "unknown" else status
        return statuses

    async def previous_answer(self, call: RunningCall) -> PreviousAnswer:
        """The answer of the previous call with the same request id, if the session no longer has that call in memory.

        Raises:
            RequestIdConflictError: the previous call had another tool or other arguments.
            ResultExpiredError: its result has expired.
            ServiceUnavailableError: the database cannot be read.
        """
        previous = await self._journal.earlier_call(call)
        if previous is None:
            raise ResultExpiredError
        request = call.request
        same = is_digest_of(previous.arguments_hash, request.arguments, request.arguments_hash)
        if previous.tool != call.tool.name or not same:
            raise RequestIdConflictError
        result = await off_loop(_result_of, previous)
        if result is None:
            raise ResultExpiredError.of_call(started=previous.started)
        ended_at = previous.at - (time.time() - time.monotonic())
        return PreviousAnswer(call_outcome.replayed(result), ended_at, previous.started)

    async def unload_idle(self) -> None:
        """Unload sessions that no connection has held for ``progress_window_s``, as long as the daemon runs."""
        while True:
            await asyncio.sleep(min(_UNLOAD_INTERVAL_S, self._limits().progress_window_s / 4))
            now = time.monotonic()
            idle = self._sessions.idle(now, self._limits().progress_window_s)
            # While writes fail, even the ends of journalled calls may be only in memory.
            writes = await self._begin_persisting(idle)
            if idle and all(await asyncio.gather(*writes)) and self._journal.writable:
                unloaded = [s for s in self._sessions.idle(now, self._limits().progress_window_s) if s in idle]
                for session in unloaded:
                    self._sessions.remove(session)
                self._journal.sessions_unloaded(unloaded)
            if now - self._seen_at > _SEEN_INTERVAL_S:
                self._seen_at = now
                self._journal.sessions_seen(session for session in self._sessions if session.resumable)

    async def persist_results(self) -> None:
        """Persist results held only in memory, at shutdown."""
        sessions = [session for session in self._sessions if session.resumable]
        self._journal.sessions_seen(sessions)
        writes = await self._begin_persisting(sessions)
        with suppress(TimeoutError):  # the store continues the writes until it is closed
            async with asyncio.timeout(_LAST_WRITE_S):
                if not all(await asyncio.gather(*writes)):
                    _log.error("answers could not be persisted; clients may send the calls again")

    async def _begin_persisting(self, sessions: Iterable[Session]) -> list[asyncio.Task[bool]]:
        """Begins to persist the results that the journal does not have, in parts. The results of the tasks: whether a
        part is persisted.
        """
        now = time.monotonic()
        results = [
            (session, pending)
            for session in sessions
            for pending in session.calls.retained(now)
            if not pending.journalled
        ]
        writes: list[asyncio.Task[bool]] = []
        for part in _parts(results):
            writes.append(asyncio.create_task(self._persist_part(part, now)))
            await asyncio.sleep(0)
        return writes

    async def _persist_part(self, part: list[tuple[Session, PendingResult]], now: float) -> bool:
        # Without those that were dropped, or whose keys new calls use, since the parts were made.
        part = [(session, item) for session, item in part if session.calls.result(item.key, now) is item.result]
        for session, pending in part:  # before the write, because a new call may use a key while it runs
            session.stored.add(pending.key)
        return not part or await self._journal.persist_local_results(part)

    def _make(
        self,
        session_id: str,
        label: str,
        principal: Principal,
        client: ClientInfo,
        *,
        toolset: str,
        transport: str,
        absent_port: CallPort,
        key_hash: bytes | None,
        repeatable: bool = True,
    ) -> Session:
        limits = self._limits()
        return Session(
            id=session_id,
            principal_name=principal.name,
            calls=SessionCalls(limits.max_accepted_per_session, self._cache_of(principal), repeatable=repeatable),
            key_hash=key_hash,
            label=label,
            principal=principal,
            client=client,
            toolset=toolset,
            transport=transport,
            streaming=False,
            permits=self._permits_of(principal)
            or Permits("session", limits.max_running_per_session, one_principal=True),
            absent_port=absent_port,
        )

    def _cache_of(self, principal: Principal) -> ResultCache:
        cache = self._caches.get(principal.name)
        if cache is None:
            limits = self._limits()
            cache = self._caches[principal.name] = ResultCache(
                limits.max_cached_result_bytes, limits.result_ttl_s, self._cached
            )
        return cache


def _parts(results: Iterable[tuple[Session, PendingResult]]) -> Iterator[list[tuple[Session, PendingResult]]]:
    """Results that are encoded and hashed in one turn of the event loop: one, or several of at most ``_PART_BYTES``."""
    part: list[tuple[Session, PendingResult]] = []
    size = 0
    for session, pending in results:
        if part and size + pending.size > _PART_BYTES:
            yield part
            part, size = [], 0
        part.append((session, pending))
        size += pending.size
    if part:
        yield part


def _random_ids() -> Iterator[str]:
    """Random ids. Their bytes come from the system for many at once: meanwhile another thread takes the interpreter's
    lock, and each call over MCP has a session.
    """
    while True:
        block = os.urandom(_ID_BYTES * _IDS_AT_ONCE)
        for start in range(0, len(block), _ID_BYTES):
            yield block[start : start + _ID_BYTES].hex()


def _results_of(stored: StoredSession) -> list[ToolResult | None]:
    return [_result_of(call) for call in stored.calls]


def _restore_calls(session: Session, stored: StoredSession, results: Iterable[ToolResult | None]) -> None:
    """Enter a session's stored calls, with their results, into its ``SessionCalls``."""
    # Stored times are Unix times; the times of ``SessionCalls`` are monotonic.
    since_epoch = time.time() - time.monotonic()
    session.calls.incomplete = stored.more
    session.stored.update(call.request_key for call in stored.calls if call.local)
    for call, result in zip(stored.calls, results, strict=True):
        session.calls.restore(
            call.request_key,
            call.tool,
            call.arguments_hash,
            result,
            len(call.result or b""),
            call.at - since_epoch,
            echo_id=call.echo_id,
            journalled=not call.local,
            interrupted=call.state == "interrupted",
            started=call.started,
        )


def _result_of(call: StoredCall) -> ToolResult | None:
    if call.state == "interrupted":
        error = OutcomeUnknownError("The daemon stopped unexpectedly while the call ran; check whether it took effect.")
        return ToolResult(Metadata(0.0, Timings()), error=error.to_tool_error())
    return call_outcome.stored_result(call)
