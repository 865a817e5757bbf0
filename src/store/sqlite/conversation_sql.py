"""The SQL of conversations and their stored turns.

Each function takes a few milliseconds and runs within the caller's transaction.
"""

import sqlite3

from ..conversation_rows import ConversationUpdate, StoredConversation, StoredTurn
from . import conversation_outbox
from .audit_sql import SLICE


def newest(connection: sqlite3.Connection, principal: str, limit: int) -> list[tuple[str, float, int]]:
    """Returns a principal's most recently used conversations: id, time and bytes, the newest first."""
    rows = connection.execute(
        "SELECT id, used_at, bytes FROM conversation WHERE principal = ? ORDER BY used_at DESC LIMIT ?",
        (principal, limit),
    )
    return rows.fetchall()


def load(connection: sqlite3.Connection, conversation_id: str, principal: str) -> StoredConversation | None:
    """Returns a principal's conversation; None if it does not exist or belongs to another principal."""
    row = connection.execute(
        "SELECT state, last_number FROM conversation WHERE id = ? AND principal = ?", (conversation_id, principal)
    ).fetchone()
    if row is None:
        return None
    turns = connection.execute(
        "SELECT number, tokens, body FROM turn WHERE conversation_id = ? ORDER BY number", (conversation_id,)
    )
    state, last_number = row
    return StoredConversation(
        id=conversation_id,
        principal=principal,
        state=state,
        last_number=last_number,
        turns=[StoredTurn(*columns) for columns in turns],
    )


def update(connection: sqlite3.Connection, update: ConversationUpdate) -> None:
    """Writes a call's changes to a conversation."""
    connection.execute(
        "INSERT INTO conversation (id, principal, started_at, used_at, bytes, state, last_number) "
        "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET used_at = excluded.used_at, "
        "bytes = excluded.bytes, state = excluded.state, last_number = excluded.last_number",
        (update.id, update.principal, update.at, update.at, update.bytes, update.state, update.last_number),
    )
    connection.execute("DELETE FROM turn WHERE conversation_id = ? AND number < ?", (update.id, update.first_number))
    connection.executemany(
        "INSERT OR REPLACE INTO turn (conversation_id, number, tokens, body) VALUES (?, ?, ?, ?)",
        [(update.id, turn.number, turn.tokens, turn.body) for turn in update.turns],
    )
    if update.copies:
        conversation_outbox.add(
            connection, update.id, update.copies, session_id=update.session_id, call_id=update.call_id
        )


def stored_bytes(connection: sqlite3.Connection) -> int:
    """Returns the size of all conversations."""
    (total,) = connection.execute("SELECT coalesce(sum(bytes), 0) FROM conversation").fetchone()
    return int(total)


def delete_expired(connection: sqlite3.Connection, *, before: float, now: float, max_bytes: int) -> int:
    """Deletes a slice of the conversations: those last used before a Unix time, and the least recently used ones while
    the total exceeds ``max_bytes``. If a deleted conversation has copies, a copy that states its end is queued.

    Returns the number of deleted conversations; fewer than ``SLICE`` means that no further one has to be deleted.
    """
    oldest = connection.execute("SELECT rowid, used_at, bytes FROM conversation ORDER BY used_at LIMIT ?", (SLICE,))
    excess = stored_bytes(connection) - max_bytes
    expired: list[int] = []
    for rowid, used_at, size in oldest:
        if used_at >= before and excess <= 0:
            break
        excess -= size
        expired.append(rowid)
    conversation_outbox.add_ended(connection, expired, now)
    connection.executemany("DELETE FROM conversation WHERE rowid = ?", [(rowid,) for rowid in expired])
    return len(expired)
