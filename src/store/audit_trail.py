"""The audit trail: one row per call, the sums over all calls, and the outbox to Supabase."""

import asyncio
from functools import partial
from typing import Final

from .audit_chain import Checkpoint
from .call_filter import CallFilter, CallPage
from .daily_usage import DailyUsage
from .store_limits import PIECE_ROWS, SCANNED_ROWS
from .store_port import Queries, StoreReader
from .store_rows import AuditOutboxState, CallRow, CallTotals, ChainedRow, SettledCalls
from .store_writer import StoreWriter


class AuditTrail:
    """Rows are written asynchronously, in groups, within 100 ms. Reads raise StoreError if the database cannot be read;
    except for ``find_call``, they may miss the rows of the last 100 ms.
    """

    def __init__(self, writer: StoreWriter, reader: StoreReader) -> None:
        self._writer = writer
        self._reader = reader
        self._searching = asyncio.Lock()
        self.record: Final = writer.record
        """Writes a call's row asynchronously. Never blocks, never raises; on the event loop's thread only."""

    @property
    def chain(self) -> str:
        """The name of the audit chain, derived from its key."""
        return self._writer.chain

    @property
    def rows_written(self) -> int:
        """Rows committed since the start."""
        return self._writer.rows_written

    @property
    def rows_dropped(self) -> int:
        """Rows lost since the start: writes failed for too long, SQLite cannot hold the row, or a crash damaged the
        file.
        """
        return self._writer.rows_dropped

    async def recent(self, limit: int) -> list[CallRow]:
        """Returns the calls that ended last, newest first."""
        return await self._reader.query(lambda queries: queries.recent_calls(limit))

    async def ended_calls(
        self, principal: str, limit: int, *, tool: str | None = None, outcome: str | None = None
    ) -> list[CallRow]:
        """Returns a principal's calls that ended last, newest first, among the last ``SEARCHED_ROWS`` of all.

        ``outcome`` is ``ok``, an error code, or ``error`` for every code.
        """
        return await self._reader.query(lambda queries: queries.ended_calls(principal, limit, tool, outcome))

    async def find_call(self, call_id: str, principal: str) -> CallRow | None:
        """Returns a principal's ended call, if it is among the last ``SEARCHED_ROWS`` of all.

        Sees all rows recorded so far.
        """
        return await self._reader.query_flushed(lambda queries: queries.find_call(call_id, principal))

    async def search(self, wanted: CallFilter, before: int | None, limit: int) -> CallPage:
        """Searches the next ``SCANNED_ROWS`` calls that ended before the one with seq ``before``; returns those that
        match a filter, newest first. Rows are read in pieces, one search at a time, so that other reads wait for at
        most one piece.
        """
        calls: list[CallRow] = []
        searched_to: float | None = None
        async with self._searching:
            for _ in range(SCANNED_ROWS // PIECE_ROWS):
                page = await self._reader.query(
                    partial(_search, wanted=wanted, before=before, limit=limit - len(calls))
                )
                calls += page.calls
                searched_to = searched_to if page.searched_to is None else page.searched_to
                before = page.before
                if before is None or len(calls) >= limit:
                    break
        return CallPage(calls=calls, searched_to=searched_to, before=before)

    async def call_tree(self, call_id: str, principal: str | None) -> list[CallRow]:
        """Returns an ended call and its descendants, of a principal or of all, in the order in which they started.

        Sees all rows recorded so far.
        """
        return await self._reader.query_flushed(lambda queries: queries.call_tree(call_id, principal))

    async def totals(self, principal: str | None = None) -> CallTotals:
        """Returns the sums over all calls ever recorded, or over those of one principal."""
        return await self._reader.query(lambda queries: queries.totals(principal))

    async def usage_since(self, day: str, principal: str | None = None) -> list[DailyUsage]:
        """Returns the spending at vendors since a day (``YYYY-MM-DD``, UTC), newest day first, of all principals or of
        one.
        """
        return await self._reader.query(lambda queries: queries.usage_since(day, principal))

    async def calls_of_day(self, day: str) -> dict[tuple[str, str], int]:
        """Returns how many calls began on a day (``YYYY-MM-DD``, UTC), by principal and tool. Calls that failed without
        an effect are not counted.
        """
        return await self._reader.query(lambda queries: queries.calls_of_day(day))

    async def outbox_state(self) -> AuditOutboxState:
        """Returns the state of the outbox to Supabase."""
        return await self._reader.query(lambda queries: queries.outbox_state())

    async def unsent_calls(self, after: int, limit: int) -> list[ChainedRow]:
        """Returns the oldest calls after a seq (``AuditOutboxState.settled_seq``), in order.

        The rows are synced to disk first: otherwise a power cut could free the seq of a sent row for another call.
        Seqs have no gaps, except where retention has removed calls.

        Raises:
            StoreError: the database cannot be read, or the sync fails.
        """
        rows = await self._reader.query(lambda queries: queries.unsent_calls(after, limit))
        if rows:
            await asyncio.wrap_future(self._writer.sync(rows[-1].seq))
        return rows

    async def unsent_checkpoints(self, limit: int) -> list[Checkpoint]:
        """Returns the oldest checkpoints whose current version Supabase does not have."""
        return await self._reader.query(lambda queries: queries.unsent_checkpoints(limit))

    def settle(self, settled: SettledCalls) -> None:
        """Records asynchronously which calls were sent or refused. Never blocks.

        Calls whose record is lost in a crash are sent again, which is harmless.
        """
        self._writer.enqueue(settled)


def _search(queries: Queries, *, wanted: CallFilter, before: int | None, limit: int) -> CallPage:
    return queries.search_calls(wanted, before, limit, PIECE_ROWS)
