"""One commit of a node on PostgreSQL: a group of entries, written in order, all or none.

All statements of a group are sent at once, as a pipeline within one transaction. No statement waits for the result of
another. Results that callers need are fetched after the commit.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import psycopg

from ..chain_extension import ChainExtension
from ..commit_entries import (
    CommitItem,
    InterruptedCall,
    LocalResults,
    NodeAnnounced,
    NodeDeclaredDead,
    NodeDraining,
    NodeLeft,
    ResultsAcknowledged,
    RunResumed,
    SessionClosed,
    SessionsReleased,
    SessionsSeen,
)
from ..conversation_rows import ConversationUpdate
from ..store_rows import CallEnd, CallPause, CallStart, InputDecided, SessionRow, UnstartedCall
from ..vendor_file_rows import VendorFileUploaded
from . import (
    pg_a2a_task_sql,
    pg_audit_sql,
    pg_journal_sql,
    pg_node_sql,
    pg_pause_sql,
    pg_run_sql,
    pg_session_sql,
    pg_spending_sql,
)
from .pg_journal_sql import Key, key_of
from .pg_part_entries import write_part

Connection = psycopg.Connection[tuple[Any, ...]]

AWAITED_ENTRIES: Final = (
    CallEnd
    | LocalResults
    | SessionRow
    | SessionsReleased
    | ConversationUpdate
    | VendorFileUploaded
    | NodeAnnounced
    | NodeDraining
    | NodeLeft
    | NodeDeclaredDead
)
"""Entries whose callers wait while the database is away. The wait for any other entry fails at once."""
_CALLS: Final = (CallStart, CallEnd, InterruptedCall)
"""Starts and ends of calls can be written in any order; any other entry may refer to calls before it."""


class GroupWrite:
    """Writes the items of one group within the caller's transaction and pipeline. Then reports which items the database
    accepted.
    """

    def __init__(
        self,
        connection: Connection,
        chain: ChainExtension,
        node: str,
        commit_number: int,
        *,
        results_bytes: int,
        unfinished_bytes: int,
    ) -> None:
        self._connection = connection
        self._chain = chain
        self._node = node
        self._number = commit_number
        self._results_bytes = results_bytes
        self._unfinished_bytes = unfinished_bytes
        self._decided: list[tuple[dict[Key, CommitItem], psycopg.Cursor[tuple[Any, ...]]]] = []
        self._over: psycopg.Cursor[tuple[Any, ...]] | None = None

    def write(self, items: Sequence[CommitItem]) -> None:
        """Sends the statements of all items.

        Raises:
            psycopg.Error, TypeError, ValueError, OverflowError: roll the transaction back.
        """
        entered = [item for item in items if item.entry is not None]
        for calls, run in itertools.groupby(entered, key=lambda item: isinstance(item.entry, _CALLS)):
            if calls:
                self._write_calls(list(run))
            else:
                for item in run:
                    self._write_ordered(item.entry)
        rows = [item.row for item in items if item.row is not None]
        if rows:
            pg_audit_sql.add(self._connection, self._chain, rows)
        for item in entered:
            pg_spending_sql.add(self._connection, self._chain, item.daily_usage)
        principals = _principals_with_results(entered)
        if principals:
            self._over = pg_journal_sql.over_limits(
                self._connection,
                principals,
                results_bytes=self._results_bytes,
                unfinished_bytes=self._unfinished_bytes,
            )

    def set_accepted(self) -> None:
        """Sets ``accepted`` of the items, after the pipeline has ended."""
        for items, cursor in self._decided:
            written = set(cursor.fetchall())
            for key, item in items.items():
                item.accepted = key in written

    def over_limits(self) -> list[tuple[str, int, int]]:
        """Returns the principals whose results take more than a limit, after the pipeline has ended."""
        return [] if self._over is None else [(name, int(excess), int(more)) for name, excess, more in self._over]

    def _write_calls(self, items: Sequence[CommitItem]) -> None:
        starts: dict[Key, tuple[CommitItem, CallStart]] = {}
        ended: list[CallEnd | InterruptedCall] = []
        unstarted: dict[Key, tuple[CommitItem, CallEnd, UnstartedCall]] = {}
        for item in items:
            match item.entry:
                case CallStart() as call:
                    item.accepted = False  # unless it is the first call with its id, in this group and in the database
                    starts.setdefault(key_of(call), (item, call))
                case CallEnd(unstarted=UnstartedCall() as content) as call:
                    item.accepted = False
                    unstarted.setdefault(key_of(call), (item, call, content))
                case CallEnd() | InterruptedCall() as call:
                    ended.append(call)
        if starts:
            new = [call for _, call in starts.values()]
            cursor = pg_journal_sql.start(self._connection, new, self._node, self._number)
            self._decided.append(({key: item for key, (item, _) in starts.items()}, cursor))
            pg_a2a_task_sql.save_started(self._connection, new, self._node, self._number)
        pg_journal_sql.end(self._connection, ended, max_bytes=self._results_bytes)
        if unstarted:
            cursor = pg_journal_sql.end_unstarted(
                self._connection,
                [(call, content) for _, call, content in unstarted.values()],
                self._node,
                self._number,
                max_bytes=self._results_bytes,
            )
            self._decided.append(({key: item for key, (item, _, _) in unstarted.items()}, cursor))
        finished = [item.entry for item in items if isinstance(item.entry, CallEnd) and item.entry.run is not None]
        pg_run_sql.finish(self._connection, [call.run for call in finished if call.run is not None])
        for call in finished:
            if call.stopped_by is not None:
                pg_run_sql.set_outcome(self._connection, call.row.id, call.row.outcome, call.stopped_by)

    def _write_ordered(self, entry: object) -> None:
        connection = self._connection
        match entry:
            case ResultsAcknowledged(session_id, request_keys):
                pg_journal_sql.acknowledge(connection, session_id, request_keys)
            case LocalResults(calls):
                pg_journal_sql.persist_local_results(connection, calls, max_bytes=self._results_bytes)
            case RunResumed(call_id, run):
                pg_run_sql.resume(connection, call_id, run, self._node)
            case CallPause():
                pg_pause_sql.pause(connection, entry)
            case InputDecided():
                pg_pause_sql.decide(connection, entry)
            case _:
                self._write_holding(entry)

    def _write_holding(self, entry: object) -> None:
        """Writes entries about sessions, their holders, and this node."""
        connection, node = self._connection, self._node
        match entry:
            case SessionRow():
                pg_session_sql.open_session(connection, entry, node)
            case SessionsSeen(session_ids, at):
                pg_session_sql.mark_seen(connection, session_ids, at)
            case SessionsReleased(session_ids):
                pg_session_sql.release(connection, session_ids, node)
            case SessionClosed(session_id):
                pg_session_sql.close_session(connection, session_id)
            case NodeAnnounced(address, details):
                pg_node_sql.announce(connection, node, address, details)
            case NodeDraining():
                pg_node_sql.drain(connection, node)
            case _:
                write_part(connection, entry, self._chain, node)


def decided_items(items: Iterable[CommitItem]) -> Iterator[tuple[CommitItem, Key]]:
    """Yields the items whose acceptance the database decides, with their keys."""
    for item in items:
        match item.entry:
            case CallStart() | CallEnd(unstarted=UnstartedCall()) as call:
                yield item, key_of(call)


def keys_of_decided(items: Iterable[CommitItem]) -> dict[Key, CommitItem]:
    """Returns the items whose acceptance the database decides, the first of each key."""
    keys: dict[Key, CommitItem] = {}
    for item, key in decided_items(items):
        keys.setdefault(key, item)
    return keys


def _principals_with_results(items: Iterable[CommitItem]) -> set[str]:
    """The principals whose stored results this group may have increased. Principals with results of local calls are
    missing, because only their sessions are known here; the next end of a call includes them.
    """
    return {item.entry.row.principal for item in items if isinstance(item.entry, CallEnd) and item.entry.result}
