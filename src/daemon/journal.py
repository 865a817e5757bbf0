"""The journal as dispatch asks for it, on the store: what is on the disk before it happens or before it is told."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

import structlog
from msgspec.structs import replace

from ..protocol.calls import Metadata, Timings, ToolResult, encode_result
from ..protocol.errors import OutcomeUnknownError, ServiceUnavailableError
from ..protocol.session import Kept
from ..store import Ended, KeptCall, KeptSession, SessionRow, Started, Store, StoreError
from .dispatch import RunningCall, Session
from .recorder import CallRecorder

_PATIENCE_S: Final = 2.0
"""A disk that does not answer keeps a caller waiting for its answer no longer than this."""

_log = structlog.get_logger(__name__)


class StoreJournal:
    """Satisfies ``dispatch.Journal``."""

    def __init__(self, store: Store, recorder: CallRecorder) -> None:
        self._store = store
        self._recorder = recorder

    @property
    def works(self) -> bool:
        return self._store.problem is None

    async def start(self, running: RunningCall) -> bool:
        session, now = running.session, time.monotonic()
        unknown = ToolResult(
            Metadata(
                round((now - running.started) * 1000, 3), Timings(queue_ms=round(running.meter.queue_s * 1000, 3))
            ),
            error=OutcomeUnknownError("The daemon ended abruptly while the call ran.").to_tool_error(),
        )
        started = Started(
            session_id=session.id,
            request_key=running.key,
            echo_id=running.call.echo_id,
            arguments_hash=session.calls.arguments_hash(running.key),
            row=replace(self._recorder.row(running, unknown, 0), arguments=None),
        )
        try:
            return await self._store.start(started)
        except StoreError as error:
            message = f"The call was not started, since it could not be journalled ({error.reason})."
            raise ServiceUnavailableError(message, executed="no") from error

    async def end(self, running: RunningCall, result: ToolResult, result_bytes: int) -> None:
        self._recorder.count(running, result)
        ended = Ended(
            session_id=running.session.id,
            request_key=running.key,
            result=encode_result(result) if running.session.resumable else None,
            at=time.time(),
            row=self._recorder.row(running, result, result_bytes),
        )
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await self._store.end(ended)
        except (StoreError, TimeoutError) as error:
            reason = error.reason if isinstance(error, StoreError) else f"no answer within {_PATIENCE_S:g} s"
            _log.error("a result is told before it is on the disk", tool=running.tool.name, reason=reason)

    def opened(self, session: Session) -> None:
        if session.key_hash is not None:
            self._store.open_session(
                SessionRow(
                    id=session.id,
                    key_hash=session.key_hash,
                    principal=session.principal.name,
                    label=session.label,
                    opened_at=time.time(),
                )
            )

    def forgotten(self, session: Session, keys: Sequence[str]) -> None:
        self._store.forget(session.id, keys)

    def closed(self, session: Session) -> None:
        self._store.close_session(session.id)

    def seen(self, sessions: Iterable[Session]) -> None:
        self._store.seen([session.id for session in sessions])

    async def settled(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_S):
                await self._store.flush()

    async def keep(self, answers: Sequence[tuple[Session, Kept]]) -> bool:
        # The book's clock is monotonic, the disk's is not.
        since_epoch = time.time() - time.monotonic()
        calls = [
            KeptCall(
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

    async def find(self, key_hash: bytes) -> KeptSession | None:
        try:
            return await self._store.session(key_hash)
        except StoreError as error:
            message = f"Sessions cannot be looked up at present ({error.reason}); try again later."
            raise ServiceUnavailableError(message, executed="no") from error
