"""The SQL of copies: the parts of conversations that still have to be sent to Supabase.

Unlike calls, which stay in the database after they are sent, a copy is deleted once Supabase has it.
Each function takes a few milliseconds and runs within the caller's transaction.
"""

import json
import sqlite3
from collections.abc import Sequence
from typing import Final

import msgspec

from ..conversation_rows import ConversationCopy, ConversationOutboxState, NewCopy, SettledConversationCopies
from .audit_sql import SLICE

_ROW_BYTES: Final = 400
"""The approximate size of a copy in the file without its content: ids, names, times, index entries."""


_COLUMNS: Final = ConversationCopy.__struct_fields__


def add(
    connection: sqlite3.Connection, conversation_id: str, copies: Sequence[NewCopy], *, session_id: str, call_id: str
) -> None:
    """Queues copies of messages of an existing conversation; a copy that is already queued stays unchanged."""
    for copy in copies:
        content = msgspec.json.encode(copy.content).decode()
        connection.execute(
            "INSERT OR IGNORE INTO copy (id, conversation_id, principal, session_id, started_at, at, position, "
            "call_id, role, provider, model, content, bytes) "
            "SELECT ?, id, principal, ?, started_at, ?, ?, ?, ?, ?, ?, ?, ? FROM conversation WHERE id = ?",
            (
                *(f"{conversation_id}-{copy.number}", session_id, copy.at, copy.number, call_id, copy.role),
                *(copy.provider, copy.model, content, _ROW_BYTES + len(content.encode()), conversation_id),
            ),
        )
    connection.execute("UPDATE conversation SET copied = 1 WHERE id = ? AND NOT copied", (conversation_id,))


def add_ended(connection: sqlite3.Connection, rowids: Sequence[int], at: float) -> None:
    """Queues copies that state the end of these conversations at a Unix time, if they have copies. Called before the
    conversations are deleted."""
    connection.execute(
        "INSERT OR IGNORE INTO copy (id, conversation_id, principal, started_at, at, ended_at, bytes) "
        "SELECT id, id, principal, started_at, used_at, ?, ? FROM conversation "
        "WHERE copied AND rowid IN (SELECT value FROM json_each(?))",
        (at, _ROW_BYTES, json.dumps(rowids)),
    )


def unsent(connection: sqlite3.Connection, after: int, limit: int, max_bytes: int) -> list[ConversationCopy]:
    """Returns the oldest copies after a number, in order: at most ``limit`` and ``max_bytes``, but at least one."""
    rows = connection.execute(
        f"SELECT bytes, {', '.join(_COLUMNS)} FROM copy "  # noqa: S608 - our own names
        "WHERE number > ? AND reason IS NULL ORDER BY number LIMIT ?",
        (after, limit),
    )
    copies: list[ConversationCopy] = []
    for size, *columns in rows:
        max_bytes -= size
        if copies and max_bytes < 0:
            break
        fields = dict(zip(_COLUMNS, columns, strict=True))
        if fields["content"] is not None:
            fields["content"] = msgspec.json.decode(fields["content"])
        copies.append(ConversationCopy(**fields))
    return copies


def settle(connection: sqlite3.Connection, settled: SettledConversationCopies) -> None:
    """Deletes sent copies, and marks refused ones, which stay until retention removes them."""
    sent = connection.execute(
        "DELETE FROM copy WHERE number IN (SELECT value FROM json_each(?))", (json.dumps(list(settled.sent)),)
    ).rowcount
    refused = 0
    for number, reason in settled.refused.items():
        refused += connection.execute(
            "UPDATE copy SET reason = ? WHERE number = ? AND reason IS NULL", (reason, number)
        ).rowcount
    connection.execute(
        "UPDATE copies SET sent = sent + ?, refused = refused + ?, last_sent_at = coalesce(?, last_sent_at)",
        (sent, refused, settled.at if sent else None),
    )


def state(connection: sqlite3.Connection) -> ConversationOutboxState:
    """Returns the state of the outbox."""
    backlog, sent, refused, dropped, last_sent_at = connection.execute(
        "SELECT (SELECT count(*) FROM copy WHERE reason IS NULL), sent, refused, dropped, last_sent_at FROM copies"
    ).fetchone()
    return ConversationOutboxState(
        backlog=backlog, sent=sent, refused=refused, dropped=dropped, last_sent_at=last_sent_at
    )


def delete_expired(connection: sqlite3.Connection, *, before: float, max_bytes: int) -> int:
    """Deletes a slice of the copies older than a Unix time, and the oldest copies while the total exceeds
    ``max_bytes``. Unsent copies count as dropped.

    Returns the number of deleted copies; fewer than ``SLICE`` means that no more copies have to be deleted.
    """
    (total,) = connection.execute("SELECT coalesce(sum(bytes), 0) FROM copy").fetchone()
    excess = total - max_bytes
    expired: list[int] = []
    dropped = 0
    oldest = connection.execute(
        "SELECT number, coalesce(ended_at, at) AS added_at, bytes, reason FROM copy ORDER BY added_at LIMIT ?", (SLICE,)
    )
    for number, at, size, reason in oldest:
        if at >= before and excess <= 0:
            break
        excess -= size
        expired.append(number)
        dropped += reason is None
    if expired:
        connection.execute("DELETE FROM copy WHERE number IN (SELECT value FROM json_each(?))", (json.dumps(expired),))
        connection.execute("UPDATE copies SET dropped = dropped + ?", (dropped,))
    return len(expired)
