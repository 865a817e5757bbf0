"""Stored sessions: those that can be resumed, and their calls."""

import time
from collections.abc import Sequence

from msgspec.structs import replace

from .commit_entries import ResultsAcknowledged, SessionClosed, SessionsReleased, SessionsSeen
from .store_port import StoreReader
from .store_rows import SessionRow, StoredCall, StoredCallState, StoredSession
from .store_writer import StoreWriter


class SessionStore:
    """Writes are asynchronous and never block; they are dropped if the queue is full.

    Reads raise StoreError if the database cannot be read; they see all earlier writes.
    """

    def __init__(self, writer: StoreWriter, reader: StoreReader) -> None:
        self._writer = writer
        self._reader = reader

    def open(self, row: SessionRow) -> None:
        """Stores a session, before any call of it that starts after this."""
        self._writer.enqueue_optional(row)

    def mark_seen(self, session_ids: Sequence[str]) -> None:
        """Records that clients hold these sessions. A session without calls is deleted 7 days after it was last
        seen.
        """
        self._writer.enqueue_optional(SessionsSeen(session_ids, time.time()))

    def acknowledge(self, session_id: str, request_keys: Sequence[str]) -> None:
        """Deletes the results of these calls, because their client has them."""
        self._writer.enqueue_optional(ResultsAcknowledged(session_id, request_keys))

    def close(self, session_id: str) -> None:
        """Deletes a session that cannot be resumed, and its calls; running calls are deleted when they end."""
        self._writer.enqueue_optional(SessionClosed(session_id))

    def release(self, session_ids: Sequence[str]) -> None:
        """Records that this process no longer holds these sessions, which stay stored. This entry is never dropped."""
        self._writer.enqueue(SessionsReleased(session_ids))

    async def find_by_key_hash(self, key_hash: bytes) -> StoredSession | None:
        """Makes this process the holder of the session with this hash of a resume key, and marks it as seen. Returns
        the session with its ended calls: at most the last 4,096, and local calls only as long as their results are
        stored.

        Raises:
            SessionHeldError: another node of the database holds it.
            NodeFencedError: this node has been declared dead.
        """
        stored = await self._reader.claim_session(key_hash, results_since=self._results_since())
        if stored is None:
            return None
        self.mark_seen([stored.row.id])
        row = replace(stored.row, opened_at=self._writer.clock.unix_time(stored.row.opened_at))
        return replace(stored, row=row, calls=[self._by_unix_time(call) for call in stored.calls])

    async def ended_call(self, session_id: str, request_key: str) -> StoredCall | None:
        """Returns a session's ended journalled call, even one that is older than its last 4,096."""
        since = self._results_since()
        stored = await self._reader.query_flushed(
            lambda queries: queries.ended_call(session_id, request_key, results_since=since)
        )
        return None if stored is None else self._by_unix_time(stored)

    async def call_states(self, session_id: str, request_keys: Sequence[str]) -> dict[str, StoredCallState]:
        """Returns the states of these journalled calls; calls that are not stored are absent.

        The state is ``expired`` also if the call has not ended, as far as the database shows.
        """
        since = self._results_since()
        return await self._reader.query_flushed(
            lambda queries: queries.call_states(session_id, request_keys, results_since=since)
        )

    def _results_since(self) -> float:
        return self._writer.clock.now() - self._writer.retention.result_ttl_s

    def _by_unix_time(self, call: StoredCall) -> StoredCall:
        return replace(call, at=self._writer.clock.unix_time(call.at))
