"""What one commit holds: entries of the writer's queue, in the order in which they came, all or none."""

import concurrent.futures
import itertools
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from . import calls, conversations, copies, journal, notes, outbox, runs, sessions, spending
from .conversations import Spoken
from .copies import SettledCopies
from .journal import Interrupted
from .ledger import Extension, Ledger
from .rows import CallRow, Ended, KeptCall, SessionRow, Settled, Started
from .spending import DaySpent


class Seen(NamedTuple):
    """Clients hold these sessions."""

    session_ids: Sequence[str]
    at: float


class Forgotten(NamedTuple):
    """A client has the answers to these requests."""

    session_id: str
    keys: Sequence[str]


class Closed(NamedTuple):
    """Nobody can come back to this session."""

    session_id: str


class Kept(NamedTuple):
    """Answers of local calls, for whoever comes back after the daemon's end."""

    answers: Sequence[KeptCall]


class Secured(NamedTuple):
    """What is committed by now is to outlive a power cut, too."""


class TakenUp(NamedTuple):
    """A call goes on with an earlier run."""

    call_id: str
    run: str


class Restarted(NamedTuple):
    """A daemon starts: what is in no session now belongs to nobody."""


_OTHERS: Final = (SessionRow, Seen, Forgotten, Closed, Kept, TakenUp, Restarted, Spoken, SettledCopies)

Entry = (
    CallRow
    | Settled
    | Started
    | Ended
    | Interrupted
    | SessionRow
    | Seen
    | Forgotten
    | Closed
    | Kept
    | Secured
    | TakenUp
    | Restarted
    | Spoken
    | SettledCopies
)


@dataclass(slots=True, eq=False)
class Item:
    """An entry, what was made of it for the commit, and who waits for it."""

    entry: Entry | None
    """None where all of it is in ``row``."""
    done: concurrent.futures.Future[bool] | None = None
    row: calls.Values | None = None
    """Its audit row."""
    spent: Sequence[DaySpent] = ()
    """What its call adds to the sums by day."""
    answer: bool = True
    """What ``done`` is told after the commit; False for a call that may not start."""

    @property
    def durable(self) -> bool:
        """A power cut must not undo it: something is done, or told, once it is written."""
        return isinstance(self.entry, Started | Ended | Kept | TakenUp | Secured)


def write(
    connection: sqlite3.Connection, items: Sequence[Item], ledger: Ledger, *, dropped: int, kept_bytes: int
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
        if any(isinstance(item.entry, Ended | Kept) for item in entered):
            journal.keep_bound(connection, kept_bytes)
        rows = [item.row for item in items if item.row is not None]
        if rows:
            calls.add(connection, chain, rows)
        for item in entered:
            spending.add(connection, item.spent)
        settled = [item.entry for item in entered if isinstance(item.entry, Settled)]
        if settled:
            _settle(connection, chain, settled)


def _settle(connection: sqlite3.Connection, chain: Extension, settled: Sequence[Settled]) -> None:
    known = notes.settled_seq(connection)
    outbox.settle(connection, settled)
    notes.sent(connection, [checkpoint for some in settled for checkpoint in some.checkpoints])
    chain.refused(notes.present(connection, [seq for some in settled for seq in some.refused if seq > known]))


def _write_calls(connection: sqlite3.Connection, items: Sequence[Item], kept_bytes: int) -> None:
    starts = [(item, item.entry) for item in items if isinstance(item.entry, Started)]
    for (item, _), new in zip(starts, journal.start(connection, [entry for _, entry in starts]), strict=True):
        item.answer = new
    ends = [item.entry for item in items if isinstance(item.entry, Ended | Interrupted)]
    journal.end(connection, ends, max_bytes=kept_bytes)


def _write_other(connection: sqlite3.Connection, entry: object, kept_bytes: int) -> None:
    match entry:
        case SessionRow():
            sessions.open_session(connection, entry)
        case Seen(session_ids, at):
            sessions.see(connection, session_ids, at)
        case Forgotten(session_id, keys):
            journal.forget(connection, session_id, keys)
        case Closed(session_id):
            sessions.close_session(connection, session_id)
        case Kept(answers):
            journal.keep(connection, answers, max_bytes=kept_bytes)
        case TakenUp(call_id, run):
            runs.take_up(connection, call_id, run)
        case Restarted():
            sessions.remove_plain(connection)
        case Spoken():
            conversations.go_on(connection, entry)
        case SettledCopies():
            copies.settle(connection, entry)
