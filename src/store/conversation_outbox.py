"""The SQL of copies: what Supabase is to have of conversations and does not have yet.

Unlike calls, which are kept here whether they are sent or not, a copy goes as soon as it is there.
Each function is one short piece of work within a transaction of the caller's.
"""

import json
import sqlite3
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from .audit_sql import SLICE

_ROW_BYTES: Final = 400
"""What a copy takes in the file beside its content, about: ids, names, times, and its places in the indices."""


class NewCopy(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One message, as a call added it to a conversation."""

    number: int
    """Its turn's."""
    role: str
    content: dict[str, Any]
    """JSON."""
    at: float
    """Unix time in seconds."""
    provider: str | None = None
    model: str | None = None


class ConversationCopy(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What Supabase is to have of a conversation: a message of it, or that it has ended.

    Its fields are columns of the table ``copy``.
    """

    number: int
    """Its place among the copies."""
    id: str
    """The message's, the same each time that it is sent; the conversation's where that has ended."""
    conversation_id: str
    principal: str
    session_id: str | None
    started_at: float
    """When the conversation began, in Unix seconds."""
    at: float
    """When the message was added; of a conversation that has ended, when its last one was."""
    ended_at: float | None
    """When the store let go of the conversation. The fields below are None then."""
    position: int | None
    """``NewCopy.number``."""
    call_id: str | None
    role: str | None
    provider: str | None
    model: str | None
    content: Any
    """``NewCopy.content``."""


_COLUMNS: Final = ConversationCopy.__struct_fields__


class SettledConversationCopies(msgspec.Struct, frozen=True, kw_only=True):
    """What has become of some copies, by their numbers."""

    at: float
    """When, in Unix seconds."""
    sent: Sequence[int] = ()
    refused: dict[int, str] = {}
    """Number of a copy that was not taken → why."""


class ConversationOutboxState(msgspec.Struct, frozen=True, kw_only=True):
    """How far the copies have been sent; the numbers count from the first that ever was made."""

    backlog: int
    """Copies still to send."""
    sent: int
    refused: int
    dropped: int
    """Removed by retention before they were sent."""
    last_sent_at: float | None
    """Unix time; None before the first."""


def add(
    connection: sqlite3.Connection, conversation_id: str, said: Sequence[NewCopy], *, session_id: str, call_id: str
) -> None:
    """Have messages of a conversation that is there copied; one whose copy waits already is left as it is."""
    for one in said:
        content = msgspec.json.encode(one.content).decode()
        connection.execute(
            "INSERT OR IGNORE INTO copy (id, conversation_id, principal, session_id, started_at, at, position, "
            "call_id, role, provider, model, content, bytes) "
            "SELECT ?, id, principal, ?, started_at, ?, ?, ?, ?, ?, ?, ?, ? FROM conversation WHERE id = ?",
            (
                *(f"{conversation_id}-{one.number}", session_id, one.at, one.number, call_id, one.role, one.provider),
                *(one.model, content, _ROW_BYTES + len(content.encode()), conversation_id),
            ),
        )
    connection.execute("UPDATE conversation SET copied = 1 WHERE id = ? AND NOT copied", (conversation_id,))


def end(connection: sqlite3.Connection, rowids: Sequence[int], at: float) -> None:
    """Have it told that conversations, of which there are copies, end at a Unix time; before they are removed."""
    connection.execute(
        "INSERT OR IGNORE INTO copy (id, conversation_id, principal, started_at, at, ended_at, bytes) "
        "SELECT id, id, principal, started_at, used_at, ?, ? FROM conversation "
        "WHERE copied AND rowid IN (SELECT value FROM json_each(?))",
        (at, _ROW_BYTES, json.dumps(rowids)),
    )


def unsent(connection: sqlite3.Connection, after: int, limit: int, max_bytes: int) -> list[ConversationCopy]:
    """The oldest copies after a number, in order: so many, and of so many bytes, at most, but one in any case."""
    rows = connection.execute(
        f"SELECT bytes, {', '.join(_COLUMNS)} FROM copy "  # noqa: S608 - our own names
        "WHERE number > ? AND reason IS NULL ORDER BY number LIMIT ?",
        (after, limit),
    )
    found: list[ConversationCopy] = []
    for size, *columns in rows:
        max_bytes -= size
        if found and max_bytes < 0:
            break
        fields = dict(zip(_COLUMNS, columns, strict=True))
        if fields["content"] is not None:
            fields["content"] = msgspec.json.decode(fields["content"])
        found.append(ConversationCopy(**fields))
    return found


def settle(connection: sqlite3.Connection, settled: SettledConversationCopies) -> None:
    """Write down what has become of copies. What was sent goes; what was refused stays until retention removes it."""
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
    """How far the copies have been sent."""
    backlog, sent, refused, dropped, last_sent_at = connection.execute(
        "SELECT (SELECT count(*) FROM copy WHERE reason IS NULL), sent, refused, dropped, last_sent_at FROM copies"
    ).fetchone()
    return ConversationOutboxState(
        backlog=backlog, sent=sent, refused=refused, dropped=dropped, last_sent_at=last_sent_at
    )


def forget_old(connection: sqlite3.Connection, *, before: float, keep_bytes: int) -> int:
    """Remove a slice of the copies of what was said, or ended, before a Unix time, or the oldest while they come to
    more than ``keep_bytes``. Those that were not sent count as dropped.

    Returns how many were removed; fewer than ``SLICE`` means that the bounds are kept.
    """
    (total,) = connection.execute("SELECT coalesce(sum(bytes), 0) FROM copy").fetchone()
    excess = total - keep_bytes
    gone: list[int] = []
    dropped = 0
    oldest = connection.execute(
        "SELECT number, coalesce(ended_at, at) AS told_at, bytes, reason FROM copy ORDER BY told_at LIMIT ?", (SLICE,)
    )
    for number, at, size, reason in oldest:
        if at >= before and excess <= 0:
            break
        excess -= size
        gone.append(number)
        dropped += reason is None
    if gone:
        connection.execute("DELETE FROM copy WHERE number IN (SELECT value FROM json_each(?))", (json.dumps(gone),))
        connection.execute("UPDATE copies SET dropped = dropped + ?", (dropped,))
    return len(gone)
