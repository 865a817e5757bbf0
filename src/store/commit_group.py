"""What one commit holds: entries of the writer's queue, in the order in which they came, all or none."""

import concurrent.futures
import itertools
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from . import (
    audit_outbox,
    audit_sql,
    chain_checkpoints,
    conversation_outbox,
    conversation_sql,
    journal_sql,
    run_sql,
    session_sql,
    spending_sql,
)
from .chain_writer import ChainExtension, ChainWriter
from .conversation_outbox import SettledConversationCopies
from .conversation_sql import ConversationUpdate
from .journal_sql import InterruptedCall
from .spending_sql import DaySpent
from .store_rows import CallEnd, CallRow, CallStart, SessionRow, SettledCalls, StoredCall


class SessionsSeen(NamedTuple):
    """Clients hold these sessions."""

    session_ids: Sequence[str]
    at: float


class ResultsForgotten(NamedTuple):
    """A client has the answers to these requests."""

    session_id: str
    keys: Sequence[str]


class SessionClosed(NamedTuple):
    """Nobody can come back to this session."""

    session_id: str


class LocalResults(NamedTuple):
    """Answers of local calls, for whoever comes back after the daemon's end."""

    answers: Sequence[StoredCall]


class RowsSecured(NamedTuple):
    """What is committed by now is to outlive a power cut, too."""


class RunTakenUp(NamedTuple):
    """A call goes on with an earlier run."""

    call_id: str
    run: str


class DaemonRestarted(NamedTuple):
    """A daemon starts: what is in no session now belongs to nobody."""


_OTHERS: Final = (
    SessionRow,
    SessionsSeen,
    ResultsForgotten,
    SessionClosed,
    LocalResults,
    RunTakenUp,
    DaemonRestarted,
    ConversationUpdate,
    SettledConversationCopies,
)

Entry = (
    CallRow
    | SettledCalls
    | CallStart
    | CallEnd
    | InterruptedCall
    | SessionRow
    | SessionsSeen
    | ResultsForgotten
    | SessionClosed
    | LocalResults
    | RowsSecured
    | RunTakenUp
    | DaemonRestarted
    | ConversationUpdate
    | SettledConversationCopies
)


@dataclass(slots=True, eq=False)
class CommitItem:
    """An entry, what was made of it for the commit, and who waits for it."""

    entry: Entry | None
    """None where all of it is in ``row``."""
    done: concurrent.futures.Future[bool] | None = None
    row: audit_sql.Values | None = None
    """Its audit row."""
    spent: Sequence[DaySpent] = ()
    """What its call adds to the sums by day."""
    answer: bool = True
    """What ``done`` is told after the commit; False for a call that may not start."""

    @property
    def durable(self) -> bool:
        """A power cut must not undo it: something is done, or told, once it is written."""
        return isinstance(self.entry, CallStart | CallEnd | LocalResults | RunTakenUp | RowsSecured)


def write(
    connection: sqlite3.Connection, items: Sequence[CommitItem], ledger: ChainWriter, *, dropped: int, kept_bytes: int
) -> None:
    """Write items, all or none, in a transaction of their own. Sets their ``answer``.

    The items are all that there is; before them so many rows were dropped since the process began. ``kept_bytes``
    bounds the results of one principal; past it the oldest go.

    Raises:
        sqlite3.Error, TypeError, ValueError, OverflowError: nothing was written.
    """
    at = time.time()
    entered = [item for item in items if item.entry is not None]  # most are a row, and nothing is looked for in them
    with ledger.extending(connection) as chain:
        chain.complete(at, dropped)
        # Calls that start and calls that end need no order among them; anything else may be about calls before it.
        for other, run in itertools.groupby(entered, key=lambda item: isinstance(item.entry, _OTHERS)):
            if other:
                for item in run:
                    _write_other(connection, item.entry, kept_bytes)
            else:
                _write_calls(connection, list(run), kept_bytes)
        if any(isinstance(item.entry, CallEnd | LocalResults) for item in entered):
            journal_sql.keep_bound(connection, kept_bytes)
        rows = [item.row for item in items if item.row is not None]
        if rows:
            audit_sql.add(connection, chain, rows)
        for item in entered:
            spending_sql.add(connection, item.spent)
        settled = [item.entry for item in entered if isinstance(item.entry, SettledCalls)]
        if settled:
            _settle(connection, chain, settled)


def _settle(connection: sqlite3.Connection, chain: ChainExtension, settled: Sequence[SettledCalls]) -> None:
    known = chain_checkpoints.settled_seq(connection)
    audit_outbox.settle(connection, settled)
    chain_checkpoints.sent(connection, [checkpoint for some in settled for checkpoint in some.checkpoints])
    chain.refused(
        chain_checkpoints.present(connection, [seq for some in settled for seq in some.refused if seq > known])
    )


def _write_calls(connection: sqlite3.Connection, items: Sequence[CommitItem], kept_bytes: int) -> None:
    starts = [(item, item.entry) for item in items if isinstance(item.entry, CallStart)]
    for (item, _), new in zip(starts, journal_sql.start(connection, [entry for _, entry in starts]), strict=True):
        item.answer = new
    ends = [item.entry for item in items if isinstance(item.entry, CallEnd | InterruptedCall)]
    journal_sql.end(connection, ends, max_bytes=kept_bytes)


def _write_other(connection: sqlite3.Connection, entry: object, kept_bytes: int) -> None:
    match entry:
        case SessionRow():
            session_sql.open_session(connection, entry)
        case SessionsSeen(session_ids, at):
            session_sql.see(connection, session_ids, at)
        case ResultsForgotten(session_id, keys):
            journal_sql.forget(connection, session_id, keys)
        case SessionClosed(session_id):
            session_sql.close_session(connection, session_id)
        case LocalResults(answers):
            journal_sql.keep(connection, answers, max_bytes=kept_bytes)
        case RunTakenUp(call_id, run):
            run_sql.take_up(connection, call_id, run)
        case DaemonRestarted():
            session_sql.remove_plain(connection)
        case ConversationUpdate():
            conversation_sql.go_on(connection, entry)
        case SettledConversationCopies():
            conversation_outbox.settle(connection, entry)
