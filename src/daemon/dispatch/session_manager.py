"""Sessions in memory and on the disk: opened, found again by their keys, put away while nobody is there.

Who calls it: the router. What it knows: the pure book of all sessions, the shelves of results, the journal. What it
must never know: frames, sockets, how calls run.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final
from uuid import uuid4

import structlog

from ...protocol.error_codes import OutcomeUnknownError, RequestIdConflictError, ResultExpiredError
from ...protocol.result_cache import ResultCache
from ...protocol.session_calls import PendingResult, SessionCalls, arguments_digest
from ...protocol.session_registry import SessionRegistry
from ...protocol.tool_call import CallStatus, ClientInfo, Metadata, Principal, Timings, ToolResult
from ...store import StoredCall, StoredSession
from . import call_outcome
from .dispatch_limits import DispatchLimits
from .permits import Permits
from .recording_ports import JournalPort
from .running_call import CallPort, RunningCall, Session

_log = structlog.get_logger(__name__)

_LOOK_EVERY_S: Final = 5.0
"""How often sessions that nobody holds are looked for."""
_SEEN_EVERY_S: Final = 3600.0
"""How often the disk is told which sessions live; they are remembered for days."""

_LAST_WRITE_S: Final = 1.0
"""A disk that does not answer holds up the daemon's end for no longer."""


class SessionManager:
    """Every session of the daemon."""

    def __init__(
        self,
        bounds: Callable[[], DispatchLimits],
        journal: JournalPort,
        permits_of: Callable[[Principal], Permits | None],
    ) -> None:
        self._bounds = bounds
        self._permits_of = permits_of
        self._journal = journal
        self._sessions: SessionRegistry[Session, CallPort] = SessionRegistry()
        # Results for those who ask again, by principal.
        self._shelves: dict[str, ResultCache] = {}
        # One at a time looks on the disk, so that no session is brought into memory twice.
        self._finding = asyncio.Lock()
        self._seen_at = time.monotonic()

    def __repr__(self) -> str:
        return f"<SessionManager sessions={len(self._sessions)}>"

    def __len__(self) -> int:
        return len(self._sessions)

    def open(
        self,
        label: str,
        principal: Principal,
        client: ClientInfo,
        *,
        toolset: str,
        transport: str,
        streaming: bool,
        away: CallPort,
        usable: tuple[str, ...] | None = None,
        key_hash: bytes | None = None,
    ) -> Session:
        """A new client's standing, with its own bounds. With the hash of a key it can be resumed."""
        session = self._make(uuid4().hex, label, principal, client, toolset, transport, away, key_hash)
        session.streaming, session.usable = streaming, usable
        self._sessions.add(session)
        if session.resumable:
            self._journal.session_opened(session)
        return session

    def make_resumable(self, session: Session, key_hash: bytes) -> None:
        """From now on an open session outlives its holder, and is found by this key."""
        session.key_hash = key_hash
        self._sessions.add(session)
        self._journal.session_opened(session)

    async def written(self) -> None:
        """Return once the sessions that were opened are on the disk: a key that was told is good after a crash too."""
        await self._journal.flush()

    async def find(self, key_hash: bytes, principal: Principal, *, transport: str, away: CallPort) -> Session | None:
        """The principal's session of this key, brought back into memory where it is only on the disk.

        Raises:
            ServiceUnavailableError: the disk does not say.
        """
        session = self._sessions.by_key(key_hash, principal.name)
        if session is not None:  # without standing in line behind those who wait for the disk
            return session
        async with self._finding:
            session = self._sessions.by_key(key_hash, principal.name)
            if session is not None:
                return session
            kept = await self._journal.find_session(key_hash)
            if kept is None or kept.row.principal != principal.name:
                return None
            row = kept.row
            session = self._make(row.id, row.label, principal, ClientInfo(), row.toolset, transport, away, key_hash)
            _restore(session, kept)
            self._sessions.add(session)
            return session

    def take(self, session: Session, port: CallPort) -> CallPort | None:
        """Let a port have the session; returns the one that had it until now."""
        return self._sessions.attach(session, port)

    def accepted(self, session: Session, key: str) -> None:
        """A call is new under this key: an answer of another that the disk has under it must not come back."""
        if key in session.stored:
            session.stored.remove(key)
            self._journal.acknowledged(session, [key])

    async def states(self, session: Session, keys: Sequence[str]) -> dict[str, CallStatus]:
        """What is known of a session's calls. The disk is asked where only that may know one.

        Raises:
            ServiceUnavailableError: the disk does not say.
        """
        now = time.monotonic()
        known = {key: session.calls.status(key, now) for key in keys}
        unknown = [key for key, status in known.items() if status == "unknown"]
        if unknown and session.calls.incomplete:
            on_disk = await self._journal.call_states(session, unknown)
            for key in unknown:
                status = session.calls.status(key, now)  # it may have been sent meanwhile
                known[key] = on_disk.get(key, "unknown") if status == "unknown" else status
        return known

    async def answered_before(self, running: RunningCall) -> tuple[ToolResult, float]:
        """The result of the call that its session made under this id before, and when that ended, as
        ``time.monotonic`` has it; for one that the session's book has let go of.

        Raises:
            RequestIdConflictError: that was a call with other content.
            ResultExpiredError: its result is gone.
            ServiceUnavailableError: the disk does not say.
        """
        known = await self._journal.earlier_call(running)
        if known is None:
            raise ResultExpiredError
        if known.tool != running.tool.name or known.arguments_hash != arguments_digest(running.call.arguments):
            raise RequestIdConflictError
        result = _result(known)
        if result is None:
            raise ResultExpiredError
        return call_outcome.replayed(result), known.at - (time.time() - time.monotonic())

    def leave(self, session: Session, port: CallPort) -> bool:
        """The port's connection is gone. False where another had taken over before."""
        if not self._sessions.detach(session, port, time.monotonic()):
            return False
        if session.journalled and not session.resumable:
            self._journal.session_closed(session)
        return True

    async def keep(self) -> None:
        """For as long as the daemon runs: put sessions away that nobody has held for the window."""
        while True:
            await asyncio.sleep(min(_LOOK_EVERY_S, self._bounds().progress_window_s / 4))
            now = time.monotonic()
            idle = self._sessions.idle(now, self._bounds().progress_window_s)
            # While the disk refuses, how a journalled call ended may be in memory alone as well.
            if idle and await self._write_the_rest(idle) and self._journal.writable:
                for session in self._sessions.idle(now, self._bounds().progress_window_s):
                    if session in idle:
                        self._sessions.remove(session)
            if now - self._seen_at > _SEEN_EVERY_S:
                self._seen_at = now
                self._journal.sessions_seen(session for session in self._sessions if session.resumable)

    async def keep_all(self) -> None:
        """The daemon goes down: have all answers on the disk that only memory has."""
        sessions = [session for session in self._sessions if session.resumable]
        self._journal.sessions_seen(sessions)
        with suppress(TimeoutError):  # the store goes on with it until it is closed
            async with asyncio.timeout(_LAST_WRITE_S):
                if not await self._write_the_rest(sessions):
                    _log.error("answers could not be stored; their clients may send the calls again")

    async def _write_the_rest(self, sessions: Iterable[Session]) -> bool:
        now = time.monotonic()
        answers: list[tuple[Session, PendingResult]] = [
            (session, kept) for session in sessions for kept in session.calls.retained(now) if not kept.journalled
        ]
        for session, kept in answers:  # before they are: a call may take a key while the disk is waited for
            session.stored.add(kept.key)
        return not answers or await self._journal.persist_local_results(answers)

    def _make(
        self,
        session_id: str,
        label: str,
        principal: Principal,
        client: ClientInfo,
        toolset: str,
        transport: str,
        away: CallPort,
        key_hash: bytes | None,
    ) -> Session:
        bounds = self._bounds()
        return Session(
            id=session_id,
            principal_name=principal.name,
            calls=SessionCalls(session_id, bounds.max_accepted_per_session, self._shelf_of(principal)),
            key_hash=key_hash,
            label=label,
            principal=principal,
            client=client,
            toolset=toolset,
            transport=transport,
            streaming=False,
            permits=self._permits_of(principal) or Permits("session", bounds.max_running_per_session),
            away=away,
        )

    def _shelf_of(self, principal: Principal) -> ResultCache:
        shelf = self._shelves.get(principal.name)
        if shelf is None:
            bounds = self._bounds()
            shelf = self._shelves[principal.name] = ResultCache(bounds.max_kept_bytes, bounds.result_ttl_s)
        return shelf


def _restore(session: Session, kept: StoredSession) -> None:
    """Enter what the disk has of a session's calls into its book."""
    # The book's clock is monotonic, the disk's is not.
    since_epoch = time.time() - time.monotonic()
    session.calls.incomplete = kept.more
    session.stored.update(call.request_key for call in kept.calls if call.local)
    for call in kept.calls:
        session.calls.restore(
            call.request_key,
            call.tool,
            call.arguments_hash,
            _result(call),
            len(call.result or b""),
            call.at - since_epoch,
            echo_id=call.echo_id,
            journalled=not call.local,
            interrupted=call.state == "interrupted",
        )


def _result(call: StoredCall) -> ToolResult | None:
    if call.state == "interrupted":
        error = OutcomeUnknownError("The daemon ended abruptly while the call ran; look whether it had its effect.")
        return ToolResult(Metadata(0.0, Timings()), error=error.to_tool_error())
    return call_outcome.stored_result(call)
