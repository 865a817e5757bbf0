"""The journal of calls: their starts, ends and results, orchestration runs and detached calls."""

import asyncio
from collections.abc import Collection, Sequence
from functools import partial

from msgspec.structs import replace

from ..protocol.agent_record import AgentRecord, AgentRunState, AgentRunSummary
from .commit_entries import LocalResults, RunResumed
from .run_rows import RunUsage, StoredJob
from .store_port import Queries, StoreReader
from .store_rows import CallEnd, CallPause, CallStart, InputDecided, StoredCall, StoredDetachedCall
from .store_writer import StoreWriter


class CallJournal:
    """Writes are awaited: they are on disk, and survive a power cut, when the method returns.

    Reads raise StoreError if the database cannot be read; they see all earlier writes.
    """

    def __init__(self, writer: StoreWriter, reader: StoreReader) -> None:
        self._writer = writer
        self._reader = reader

    async def start(self, call: CallStart) -> bool:
        """Persists that a call starts, before it runs.

        False: its id is already known in this session, and nothing was written. If this wait is cancelled, the start
        may have been written: record the call's end anyway.

        Raises:
            StoreError: the write fails; the start is not written, now or later.
        """
        return await asyncio.wrap_future(self._writer.commit(call))

    async def end(self, call: CallEnd) -> None:
        """Persists the end of a call, its result and its audit row: all of them or none.

        If the call's start was not written, only the audit row is written. Results beyond the limit of bytes are not
        stored.

        Raises:
            StoreError: the write fails; it is retried until it succeeds or the process ends.
        """
        await asyncio.wrap_future(self._writer.commit(call))

    async def end_unstarted(self, call: CallEnd) -> bool:
        """Persists the end of a call whose tool did not start, even if its start was not written.

        False: its id belongs to an earlier call, whose end and result stay as they are; the audit row is written.

        Raises:
            StoreError: as in ``end``; while writes fail, further ends are dropped once the queue is full.
        """
        return await asyncio.wrap_future(self._writer.commit(call))

    async def persist_local_results(self, calls: Sequence[StoredCall]) -> None:
        """Persists the results of local calls, except those of sessions that are not stored.

        Raises:
            StoreError: the write fails; no result is written, now or later.
        """
        await asyncio.wrap_future(self._writer.commit(LocalResults(calls)))

    async def resume_run(self, call_id: str, run: str) -> None:
        """Persists that a started call continues an earlier run.

        Raises:
            StoreError: the write fails; it is not written, now or later.
        """
        await asyncio.wrap_future(self._writer.commit(RunResumed(call_id, run)))

    async def find_run(self, call_id: str, principal: str, tool: str) -> str | None:
        """Returns the run of a principal's call of this tool; None if it is unknown or has expired."""
        return await self._reader.query_flushed(lambda queries: queries.find_run(call_id, principal, tool))

    async def usage_of_run(self, run: str, principal: str) -> list[RunUsage]:
        """Returns the spending of the ended calls of a principal's run, including the calls that resumed it."""
        return await self._reader.query_flushed(lambda queries: queries.usage_of_run(run, principal))

    async def spent_by_tool(self, tool: str, day: str) -> dict[str, float]:
        """Returns the cost, by currency, of a tool's calls and their descendants that ended on a day (``YYYY-MM-DD``,
        UTC)."""
        return await self._reader.query_flushed(lambda queries: queries.spent_by_tool(tool, day))

    async def agent_runs(
        self, principal: str | None, *, agent: str | None, states: Collection[AgentRunState], limit: int
    ) -> list[AgentRunSummary]:
        """Returns the newest runs of agents, of a principal or of all, without those that another call made."""
        return await self._reader.query_flushed(
            lambda queries: queries.agent_runs(principal, agent=agent, states=states, limit=limit)
        )

    async def agent_record(self, call_id: str, principal: str | None, *, all_results: bool) -> AgentRecord | None:
        """Returns the run of an agent by the id of one of its calls, with the results of its turns, or all results;
        None if it is unknown, has expired, or is another principal's."""
        since = self._writer.clock.now() - self._writer.retention.result_ttl_s
        return await self._reader.query_flushed(
            lambda queries: queries.agent_record(call_id, principal, results_since=since, all_results=all_results)
        )

    async def jobs(
        self,
        principal: str,
        tools: Collection[str],
        *,
        job_id: str | None = None,
        subject: str | None = None,
        outcomes: Collection[str] | None = None,
        limit: int,
    ) -> list[StoredJob]:
        """Returns a principal's jobs, newest first; the arguments are as for ``Queries.jobs``."""
        return await self._reader.query_flushed(
            lambda queries: queries.jobs(
                principal, tools, job_id=job_id, subject=subject, outcomes=outcomes, limit=limit
            )
        )

    async def step_ends(self, job: StoredJob) -> dict[str, float]:
        """Returns when the child calls of a job ended, by their names."""
        return await self._reader.query_flushed(lambda queries: queries.step_ends(job))

    async def child_call(self, run: str, name: str, principal: str) -> StoredCall | None:
        """Returns a child call of a run; None if it never started, has expired, or is another principal's."""
        since = self._writer.clock.now() - self._writer.retention.result_ttl_s
        return await self._reader.query_flushed(
            lambda queries: queries.child_call(run, name, principal, results_since=since)
        )

    async def children_of_run(self, run: str, principal: str) -> dict[str, tuple[str, bytes]]:
        """Returns the children of a principal's run by their names, each with its tool and its arguments' hash."""
        return await self._reader.query_flushed(lambda queries: queries.children_of_run(run, principal))

    async def detached_calls(self) -> list[StoredDetachedCall]:
        """Assigns to this process the detached calls that have started and not ended, are not paused, and run in no
        other process. Returns them, oldest first.
        """
        return await self.adopt_detached()

    async def adopt_detached(self, *, call_id: str | None = None, limit: int | None = None) -> list[StoredDetachedCall]:
        """Assigns to this process detached calls that no process runs, and returns them: the oldest that are not
        paused, or one by its id, after a decision has continued it.

        Raises:
            NodeFencedError: this node has been declared dead.
        """
        return [self._by_unix_time(call) for call in await self._reader.adopt_detached(call_id=call_id, limit=limit)]

    async def find_detached(self, call_id: str, principal: str | None) -> StoredDetachedCall | None:
        """Returns a detached call that has not ended; if a principal is given, only its own."""
        stored = await self._reader.query_flushed(lambda queries: queries.find_detached(call_id))
        if stored is None or principal not in {None, stored.session.principal}:
            return None
        return self._by_unix_time(stored)

    async def paused_count(self, principal: str) -> int:
        """Returns the number of a principal's paused calls."""
        return await self._reader.query_flushed(lambda queries: queries.paused_count(principal))

    async def paused_calls(self, principal: str | None) -> list[StoredDetachedCall]:
        """Returns the oldest 100 paused calls of a principal, or of all principals."""

        calls = await self._reader.query_flushed(lambda queries: queries.paused_calls(principal))
        return [self._by_unix_time(call) for call in calls]

    async def waiting_for_credentials(self) -> list[StoredDetachedCall]:
        """Returns the paused calls of all principals that may wait for a credential."""

        waiting: list[StoredDetachedCall] = []
        after, calls = await self._reader.query_flushed(lambda queries: queries.waiting_for_credentials(0))
        waiting += calls
        while after:
            after, calls = await self._reader.query(partial(_waiting_for_credentials, after=after))
            waiting += calls
        return [self._by_unix_time(call) for call in waiting]

    async def paused_on(self, run: str) -> str | None:
        """Returns the id of the paused call that continues this run."""
        return await self._reader.query_flushed(lambda queries: queries.paused_on(run))

    async def due_calls(self) -> list[StoredDetachedCall]:
        """Returns the paused calls whose requests have expired, or whose run has been dropped."""
        now = self._writer.clock.now()

        calls = await self._reader.query_flushed(lambda queries: queries.due_calls(now))
        return [self._by_unix_time(call) for call in calls]

    async def next_expiry_s(self) -> float | None:
        """Returns the seconds until the next requests expire; None if no call is paused."""
        at = await self._reader.query_flushed(lambda queries: queries.next_expiry())
        return None if at is None else at - self._writer.clock.now()

    async def decision_hashes(self, call_id: str, principal: str) -> dict[str, bytes]:
        """Returns the decided requests of a principal's call, even if it has ended: id and ``decision_hash``."""
        return await self._reader.query_flushed(lambda queries: queries.decision_hashes(call_id, principal))

    async def pause(self, pause: CallPause) -> None:
        """Persists that a detached call pauses.

        Raises:
            StoreError: the write fails; it is not written, now or later.
        """
        await asyncio.wrap_future(self._writer.commit(pause))

    async def decide(self, decisions: Sequence[InputDecided]) -> None:
        """Persists decisions on open requests, in one commit.

        Raises:
            StoreError: a write fails; decisions that are not written now are not written later.
        """
        written = [asyncio.wrap_future(self._writer.commit(decision)) for decision in decisions]
        await asyncio.gather(*written)

    def _by_unix_time(self, call: StoredDetachedCall) -> StoredDetachedCall:
        unix_time = self._writer.clock.unix_time
        return replace(
            call,
            expires_at=None if call.expires_at is None else unix_time(call.expires_at),
            drops_at=None if call.drops_at is None else unix_time(call.drops_at),
        )


def _waiting_for_credentials(queries: Queries, after: int) -> tuple[int, list[StoredDetachedCall]]:
    return queries.waiting_for_credentials(after)
