"""The SQL of conversations: what was said in them, the newest of it, until nobody has gone on with them for long.

Each function is one short piece of work within a transaction of the caller's.
"""

import sqlite3
from collections.abc import Sequence

import msgspec

from . import conversation_outbox
from .audit_sql import SLICE
from .conversation_outbox import NewCopy


class StoredTurn(msgspec.Struct, frozen=True, gc=False):
    """One turn as it is kept. ``body`` is JSON that the store does not look into."""

    number: int
    """Its place in the conversation, from 1 and without gaps."""
    tokens: int
    body: str


class StoredConversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation as it is kept."""

    id: str
    principal: str
    state: str
    """JSON."""
    last_number: int
    """Of the last turn that it ever had; 0 before the first."""
    turns: list[StoredTurn]
    """In order. The first ones may be gone."""


class ConversationUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """How a conversation went on, or began."""

    id: str
    principal: str
    at: float
    """Unix time in seconds."""
    state: str
    """JSON, in place of what it was."""
    bytes: int
    """Of the state and of all turns that it has now."""
    first_number: int
    """Turns before this one go."""
    last_number: int
    """Of the last turn that it ever had."""
    turns: list[StoredTurn]
    """New ones."""
    session_id: str
    call_id: str
    """By which it went on."""
    said: Sequence[NewCopy] = ()
    """What of it is to be copied to Supabase; also turns that are too long to be kept."""


def find(connection: sqlite3.Connection, conversation_id: str, principal: str) -> StoredConversation | None:
    """A principal's conversation; None where there is none, or it is somebody else's."""
    found = connection.execute(
        "SELECT state, last_number FROM conversation WHERE id = ? AND principal = ?", (conversation_id, principal)
    ).fetchone()
    if found is None:
        return None
    turns = connection.execute(
        "SELECT number, tokens, body FROM turn WHERE conversation_id = ? ORDER BY number", (conversation_id,)
    )
    kept = [StoredTurn(*columns) for columns in turns]
    state, last_number = found
    return StoredConversation(id=conversation_id, principal=principal, state=state, last_number=last_number, turns=kept)


def go_on(connection: sqlite3.Connection, spoken: ConversationUpdate) -> None:
    """Write down how a conversation went on."""
    connection.execute(
        "INSERT INTO conversation (id, principal, started_at, used_at, bytes, state, last_number) "
        "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET used_at = excluded.used_at, "
        "bytes = excluded.bytes, state = excluded.state, last_number = excluded.last_number",
        (spoken.id, spoken.principal, spoken.at, spoken.at, spoken.bytes, spoken.state, spoken.last_number),
    )
    connection.execute("DELETE FROM turn WHERE conversation_id = ? AND number < ?", (spoken.id, spoken.first_number))
    connection.executemany(
        "INSERT OR REPLACE INTO turn (conversation_id, number, tokens, body) VALUES (?, ?, ?, ?)",
        [(spoken.id, turn.number, turn.tokens, turn.body) for turn in spoken.turns],
    )
    if spoken.said:
        conversation_outbox.add(
            connection, spoken.id, spoken.said, session_id=spoken.session_id, call_id=spoken.call_id
        )


def kept_bytes(connection: sqlite3.Connection) -> int:
    """What all conversations come to."""
    (total,) = connection.execute("SELECT coalesce(sum(bytes), 0) FROM conversation").fetchone()
    return int(total)


def forget_old(connection: sqlite3.Connection, *, before: float, now: float, keep_bytes: int) -> int:
    """Remove a slice of the conversations that nobody went on with since a Unix time, or the oldest while they come to
    more than ``keep_bytes``. Where there are copies, it is to be told there that they ended.

    Returns how many were removed; fewer than ``SLICE`` means that the bounds are kept.
    """
    oldest = connection.execute("SELECT rowid, used_at, bytes FROM conversation ORDER BY used_at LIMIT ?", (SLICE,))
    excess = kept_bytes(connection) - keep_bytes
    gone: list[int] = []
    for rowid, used_at, size in oldest:
        if used_at >= before and excess <= 0:
            break
        excess -= size
        gone.append(rowid)
    conversation_outbox.end(connection, gone, now)
    connection.executemany("DELETE FROM conversation WHERE rowid = ?", [(rowid,) for rowid in gone])
    return len(gone)
