"""One commit: a group of entries from the writer's queue, written in order, all or none."""

import itertools
import sqlite3
import time
from collections.abc import Sequence
from typing import Final

from ..a2a_push_rows import A2APushDeleted, A2APushProgress, A2APushRow
from ..a2a_task_rows import A2ATaskRow
from ..chain_extension import ChainExtension
from ..commit_entries import (
    CommitItem,
    DaemonRestarted,
    InterruptedCall,
    LocalResults,
    ResultsAcknowledged,
    RunResumed,
    SessionClosed,
    SessionsSeen,
)
from ..conversation_rows import ConversationUpdate, SettledConversationCopies
from ..registry_entry_rows import RegistryEntryDeleted, RegistryEntrySaved
from ..store_limits import UNFINISHED_BYTES
from ..store_rows import CallEnd, CallPause, CallStart, InputDecided, SessionRow, SettledCalls, UnstartedCall
from ..user_credential_rows import UserCredentialDeleted, UserCredentialRow
from ..vendor_file_rows import VendorFileDeleted, VendorFileUploaded
from . import (
    a2a_push_sql,
    a2a_task_sql,
    agent_run_sql,
    audit_outbox,
    audit_sql,
    chain_checkpoints,
    conversation_outbox,
    conversation_sql,
    journal_sql,
    pause_sql,
    registry_entry_sql,
    run_sql,
    session_sql,
    spending_sql,
    user_credential_sql,
    vendor_file_sql,
)
from .chain_writer import ChainWriter

_ORDERED: Final = (
    SessionRow,
    SessionsSeen,
    ResultsAcknowledged,
    SessionClosed,
    LocalResults,
    RunResumed,
    CallPause,
    InputDecided,
    DaemonRestarted,
    ConversationUpdate,
    SettledConversationCopies,
    A2ATaskRow,
    A2APushRow,
    A2APushDeleted,
    A2APushProgress,
    UserCredentialRow,
    UserCredentialDeleted,
)


def write(
    connection: sqlite3.Connection,
    items: Sequence[CommitItem],
    chain_writer: ChainWriter,
    *,
    rows_dropped: int,
    results_bytes: int,
    unfinished_bytes: int = UNFINISHED_BYTES,
) -> None:
    """Writes all items or none, in one transaction. Sets their ``accepted``.

    ``rows_dropped`` counts the rows dropped since the start. ``results_bytes`` limits the stored results of one
    principal, and ``unfinished_bytes`` those of its unfinished runs; beyond a limit the oldest are deleted.

    Raises:
        sqlite3.Error, TypeError, ValueError, OverflowError: nothing was written.
    """
    at = time.time()
    entered = [item for item in items if item.entry is not None]  # most items have only a row
    with chain_writer.extending(connection) as chain:
        chain.complete(at, rows_dropped)
        # Starts and ends of different calls need no order; any other entry may refer to earlier calls.
        for ordered, run in itertools.groupby(entered, key=lambda item: isinstance(item.entry, _ORDERED)):
            if ordered:
                for item in run:
                    _write_ordered(connection, item.entry, results_bytes)
            else:
                _write_calls(connection, list(run), results_bytes)
        if any(isinstance(item.entry, CallEnd | LocalResults) for item in entered):
            journal_sql.enforce_results_limit(connection, results_bytes)
            journal_sql.enforce_unfinished_limit(connection, unfinished_bytes)
        rows = [item.row for item in items if item.row is not None]
        if rows:
            audit_sql.add(connection, chain, rows)
        for item in entered:
            spending_sql.add(connection, item.daily_usage)
        vendor_file_sql.write(
            connection,
            [item.entry for item in entered if isinstance(item.entry, VendorFileUploaded | VendorFileDeleted)],
        )
        registry_entry_sql.write(
            connection,
            [item.entry for item in entered if isinstance(item.entry, RegistryEntrySaved | RegistryEntryDeleted)],
        )
        settled = [item.entry for item in entered if isinstance(item.entry, SettledCalls)]
        if settled:
            _settle(connection, chain, settled)


def _settle(connection: sqlite3.Connection, chain: ChainExtension, settled: Sequence[SettledCalls]) -> None:
    settled_before = chain_checkpoints.settled_seq(connection)
    audit_outbox.settle(connection, settled)
    chain_checkpoints.mark_sent(connection, [checkpoint for batch in settled for checkpoint in batch.checkpoints])
    refused = [seq for batch in settled for seq in batch.refused if seq > settled_before]
    chain.add_refused(chain_checkpoints.existing_seqs(connection, refused))


def _write_calls(connection: sqlite3.Connection, items: Sequence[CommitItem], results_bytes: int) -> None:
    starts = [(item, item.entry) for item in items if isinstance(item.entry, CallStart)]
    for (item, _), new in zip(starts, journal_sql.start(connection, [entry for _, entry in starts]), strict=True):
        item.accepted = new
    for item, start in starts:
        if item.accepted and start.task is not None:
            a2a_task_sql.save(connection, start.task)
    ended: list[CallEnd | InterruptedCall] = []
    unstarted: list[tuple[CallEnd, UnstartedCall]] = []
    unstarted_items: list[CommitItem] = []
    for item in items:
        match item.entry:
            case CallEnd(unstarted=UnstartedCall() as content) as call:
                unstarted.append((call, content))
                unstarted_items.append(item)
            case CallEnd() | InterruptedCall() as call:
                ended.append(call)
    journal_sql.end(connection, ended, max_bytes=results_bytes)
    written = journal_sql.end_unstarted(connection, unstarted, max_bytes=results_bytes)
    for item, new in zip(unstarted_items, written, strict=True):
        item.accepted = new
    finished = [item.entry for item in items if isinstance(item.entry, CallEnd) and item.entry.run is not None]
    run_sql.finish(connection, [call.run for call in finished if call.run is not None])
    for call in finished:
        if call.stopped_by is not None:
            agent_run_sql.set_outcome(connection, call.row.id, call.row.outcome, call.stopped_by)


def _write_ordered(connection: sqlite3.Connection, entry: object, results_bytes: int) -> None:
    match entry:
        case SessionRow():
            session_sql.open_session(connection, entry)
        case SessionsSeen(session_ids, at):
            session_sql.mark_seen(connection, session_ids, at)
        case ResultsAcknowledged(session_id, request_keys):
            journal_sql.acknowledge(connection, session_id, request_keys)
        case SessionClosed(session_id):
            session_sql.close_session(connection, session_id)
        case LocalResults(calls):
            journal_sql.persist_local_results(connection, calls, max_bytes=results_bytes)
        case RunResumed() | CallPause() | InputDecided() | DaemonRestarted():
            _write_run_change(connection, entry)
        case ConversationUpdate():
            conversation_sql.update(connection, entry)
        case SettledConversationCopies():
            conversation_outbox.settle(connection, entry)
        case (
            A2ATaskRow()
            | A2APushRow()
            | A2APushDeleted()
            | A2APushProgress()
            | UserCredentialRow()
            | UserCredentialDeleted()
        ):
            _write_of_principal(connection, entry)


def _write_of_principal(
    connection: sqlite3.Connection,
    entry: A2ATaskRow | A2APushRow | A2APushDeleted | A2APushProgress | UserCredentialRow | UserCredentialDeleted,
) -> None:
    match entry:
        case A2ATaskRow():
            a2a_task_sql.save(connection, entry)
        case UserCredentialRow() | UserCredentialDeleted():
            user_credential_sql.write(connection, entry)
        case _:
            a2a_push_sql.write(connection, entry)


def _write_run_change(
    connection: sqlite3.Connection, entry: RunResumed | CallPause | InputDecided | DaemonRestarted
) -> None:
    match entry:
        case RunResumed(call_id, run):
            run_sql.resume(connection, call_id, run)
        case CallPause():
            pause_sql.pause(connection, entry)
        case InputDecided():
            pause_sql.decide(connection, entry)
        case DaemonRestarted():
            session_sql.delete_orphaned_calls(connection)
            run_sql.finish_all(connection)
