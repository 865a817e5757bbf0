"""The SQL of conversations on PostgreSQL: their stored turns, and the nodes that use them.

Functions that write run within the caller's transaction and pipeline, and fetch nothing.
"""

from typing import Any, Final

import psycopg

from ..conversation_rows import ConversationUpdate, StoredConversation, StoredTurn
from . import pg_copy_sql
from .pg_values import pg_text, text_of

Connection = psycopg.Connection[tuple[Any, ...]]

SLICE: Final = 500
"""Rows that one step of retention deletes."""

_UPDATE: Final = """
INSERT INTO conversation (id, principal, started_at, used_at, bytes, state, last_number)
VALUES (%(id)s, %(principal)s, %(at)s, %(at)s, %(bytes)s, %(state)s, %(last_number)s)
ON CONFLICT (id) DO {}
"""
_CONTINUED: Final = (
    "UPDATE SET used_at = excluded.used_at, bytes = excluded.bytes, state = excluded.state, "
    "last_number = excluded.last_number"
)

# A dead node can no longer commit, so the conversations that it held are free.
_CLAIM: Final = """
UPDATE conversation SET held_by = %(node)s
WHERE id = %(id)s AND principal = %(principal)s
  AND (held_by IS NULL OR held_by = %(node)s
       OR NOT EXISTS (SELECT FROM node WHERE node.epoch = held_by AND node.state <> 'dead'))
"""


def newest(connection: Connection, principal: str, limit: int) -> list[tuple[str, float, int]]:
    """Returns the most recently used conversations of a principal: id, time and bytes, newest first."""
    rows = connection.execute(
        "SELECT id, used_at, bytes FROM conversation WHERE principal = %s ORDER BY used_at DESC LIMIT %s",
        (pg_text(principal), limit),
    )
    return [(text_of(conversation_id), used_at, size) for conversation_id, used_at, size in rows]


def load(connection: Connection, conversation_id: str, principal: str) -> StoredConversation | None:
    """Returns a principal's conversation; None if it does not exist or belongs to another principal."""
    stored_id = pg_text(conversation_id)
    row = connection.execute(
        "SELECT state, last_number FROM conversation WHERE id = %s AND principal = %s", (stored_id, pg_text(principal))
    ).fetchone()
    if row is None:
        return None
    turns = connection.execute(
        "SELECT number, tokens, body FROM turn WHERE conversation_id = %s ORDER BY number", (stored_id,)
    )
    state, last_number = row
    return StoredConversation(
        id=conversation_id,
        principal=principal,
        state=text_of(state),
        last_number=last_number,
        turns=[StoredTurn(number, tokens, text_of(body)) for number, tokens, body in turns],
    )


def has(connection: Connection, conversation_id: str, principal: str) -> bool:
    """Whether a principal has a conversation."""
    row = connection.execute(
        "SELECT FROM conversation WHERE id = %s AND principal = %s", (pg_text(conversation_id), pg_text(principal))
    ).fetchone()
    return row is not None


def claim(connection: Connection, conversation_id: str, principal: str, node: str) -> bool:
    """Makes a node the holder of a principal's conversation, unless another live node holds it or the principal has no
    such conversation. Returns whether the node holds it now.
    """
    values = {"id": pg_text(conversation_id), "principal": pg_text(principal), "node": node}
    return connection.execute(_CLAIM, values).rowcount == 1


def holder(connection: Connection, conversation_id: str) -> str | None:
    """Returns the epoch of the node that holds a conversation; None if no node does."""
    row = connection.execute("SELECT held_by FROM conversation WHERE id = %s", (pg_text(conversation_id),)).fetchone()
    return None if row is None or row[0] is None else text_of(row[0])


def release(connection: Connection, conversation_id: str, node: str) -> None:
    """Lets other nodes claim a conversation that this node holds."""
    connection.execute(
        "UPDATE conversation SET held_by = NULL WHERE id = %s AND held_by = %s", (pg_text(conversation_id), node)
    )


def update(connection: Connection, update: ConversationUpdate) -> None:
    """Writes a new conversation, unless another node has begun it, or a call's changes to a conversation."""
    stored_id = pg_text(update.id)
    connection.execute(
        _UPDATE.format(_CONTINUED if update.call_id else "NOTHING"),
        {
            "id": stored_id,
            "principal": pg_text(update.principal),
            "at": update.at,
            "bytes": update.bytes,
            "state": pg_text(update.state),
            "last_number": update.last_number,
        },
    )
    connection.execute("DELETE FROM turn WHERE conversation_id = %s AND number < %s", (stored_id, update.first_number))
    for turn in update.turns:
        connection.execute(
            "INSERT INTO turn (conversation_id, number, tokens, body) VALUES (%s, %s, %s, %s) "
            "ON CONFLICT (conversation_id, number) DO UPDATE SET tokens = excluded.tokens, body = excluded.body",
            (stored_id, turn.number, turn.tokens, pg_text(turn.body)),
        )
    if update.copies:
        pg_copy_sql.add(connection, update.id, update.copies, session_id=update.session_id, call_id=update.call_id)


def delete_expired(connection: Connection, *, before: float, now: float, max_bytes: int) -> int:
    """Deletes a slice of the conversations that no node holds: those last used before a Unix time, and the least
    recently used ones while the total exceeds ``max_bytes``. If a deleted conversation has copies, a copy that states
    its end is queued.

    Returns the number of deleted conversations; fewer than ``SLICE`` means that no further one has to be deleted.
    """
    (total,) = connection.execute("SELECT coalesce(sum(bytes), 0) FROM conversation").fetchone() or (0,)
    # Conversations that a commit is changing are in use.
    oldest = connection.execute(
        "SELECT id, used_at, bytes FROM conversation ORDER BY used_at LIMIT %s FOR UPDATE SKIP LOCKED", (SLICE,)
    )
    excess = total - max_bytes
    expired: list[str] = []
    for conversation_id, used_at, size in oldest:
        if used_at >= before and excess <= 0:
            break
        excess -= size
        expired.append(conversation_id)
    if expired:
        pg_copy_sql.add_ended(connection, expired, now)
        connection.execute("DELETE FROM conversation WHERE id = ANY(%s)", (expired,))
    return len(expired)
