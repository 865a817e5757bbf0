"""The SQL of copies on PostgreSQL: the parts of conversations that still have to be sent to Supabase.

Unlike calls, which stay in the database after they are sent, a copy is deleted once Supabase has it. Each node sends
the copies that it finds; if two nodes send the same copy, it is still a single row in Supabase.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import psycopg

from ..conversation_rows import ConversationCopy, ConversationOutboxState, NewCopy, SettledConversationCopies
from .pg_values import pg_text, text_of

Connection = psycopg.Connection[tuple[Any, ...]]

_ROW_BYTES: Final = 400
"""The approximate size of a copy without its content: ids, names, times, index entries."""
SLICE: Final = 500
"""Rows that one step of retention deletes."""

_COLUMNS: Final = ConversationCopy.__struct_fields__
_TEXTS: Final = ("id", "conversation_id", "principal", "session_id", "call_id", "role", "provider", "model")

_ADD_COUNTS: Final = """
ON CONFLICT (chain) DO UPDATE SET
    sent = copies.sent + excluded.sent,
    refused = copies.refused + excluded.refused,
    dropped = copies.dropped + excluded.dropped,
    last_sent_at = coalesce(excluded.last_sent_at, copies.last_sent_at)
"""

_DROP: Final = (
    """
INSERT INTO copies (chain, sent, refused, dropped, last_sent_at) VALUES (%s, 0, 0, %s, NULL)
"""
    + _ADD_COUNTS
)
_SETTLE: Final = (
    """
WITH gone AS (
    DELETE FROM copy WHERE number = ANY(%s::int8[]) RETURNING number
), marked AS (
    UPDATE copy SET reason = given.reason FROM unnest(%s::int8[], %s::text[]) AS given (number, reason)
    WHERE copy.number = given.number AND copy.reason IS NULL RETURNING copy.number
), counted AS (
    SELECT (SELECT count(*) FROM gone) AS sent, (SELECT count(*) FROM marked) AS refused
)
INSERT INTO copies (chain, sent, refused, dropped, last_sent_at)
SELECT %s, sent, refused, 0, CASE WHEN sent > 0 THEN %s::float8 END FROM counted
"""
    + _ADD_COUNTS
)


def add(
    connection: Connection, conversation_id: str, copies: Sequence[NewCopy], *, session_id: str, call_id: str
) -> None:
    """Queues copies of messages of an existing conversation; a copy that is already queued stays unchanged. Fetches
    nothing.
    """
    stored_id = pg_text(conversation_id)
    for copy in copies:
        content = pg_text(msgspec.json.encode(copy.content).decode())
        connection.execute(
            "INSERT INTO copy (id, conversation_id, principal, session_id, started_at, at, position, call_id, role, "
            "provider, model, content, bytes) "
            "SELECT %s, id, principal, %s, started_at, %s, %s, %s, %s, %s, %s, %s, %s FROM conversation WHERE id = %s "
            "ON CONFLICT (id) DO NOTHING",
            (
                *(f"{stored_id}-{copy.number}", pg_text(session_id), copy.at, copy.number, pg_text(call_id)),
                *(pg_text(copy.role), _optional(copy.provider), _optional(copy.model), content),
                *(_ROW_BYTES + len(content.encode()), stored_id),
            ),
        )
    connection.execute("UPDATE conversation SET copied = true WHERE id = %s AND NOT copied", (stored_id,))


def add_ended(connection: Connection, stored_ids: Sequence[str], at: float) -> None:
    """Queues copies that state the end of these conversations at a Unix time, if they have copies. Called before the
    conversations are deleted."""
    connection.execute(
        "INSERT INTO copy (id, conversation_id, principal, started_at, at, ended_at, bytes) "
        "SELECT id, id, principal, started_at, used_at, %s, %s FROM conversation WHERE copied AND id = ANY(%s) "
        "ON CONFLICT (id) DO NOTHING",
        (at, _ROW_BYTES, list(stored_ids)),
    )


def unsent(connection: Connection, after: int, limit: int, max_bytes: int) -> list[ConversationCopy]:
    """Returns the oldest copies after a number, in order: at most ``limit`` and ``max_bytes``, but at least one."""
    sizes = connection.execute(
        "SELECT number, bytes FROM copy WHERE number > %s AND reason IS NULL ORDER BY number LIMIT %s", (after, limit)
    )
    numbers: list[int] = []
    for number, size in sizes:
        max_bytes -= size
        if numbers and max_bytes < 0:
            break
        numbers.append(number)
    rows = connection.execute(
        f"SELECT {', '.join(_COLUMNS)} FROM copy WHERE number = ANY(%s) ORDER BY number",
        (numbers,),
    )
    return [_copy(columns) for columns in rows]


def _copy(columns: Sequence[Any]) -> ConversationCopy:
    fields = dict(zip(_COLUMNS, columns, strict=True))
    fields |= {name: text_of(fields[name]) for name in _TEXTS if fields[name] is not None}
    if fields["content"] is not None:
        fields["content"] = msgspec.json.decode(text_of(fields["content"]))
    return ConversationCopy(**fields)


def settle(connection: Connection, chain: int, settled: SettledConversationCopies) -> None:
    """Deletes sent copies, and marks refused ones, which stay until retention removes them. Fetches nothing."""
    reasons = [pg_text(reason) for reason in settled.refused.values()]
    connection.execute(_SETTLE, (list(settled.sent), list(settled.refused), reasons, chain, settled.at))


def state(connection: Connection) -> ConversationOutboxState:
    """Returns the state of the outbox of all nodes."""
    row = connection.execute(
        "SELECT (SELECT count(*) FROM copy WHERE reason IS NULL), coalesce(sum(sent), 0), coalesce(sum(refused), 0), "
        "coalesce(sum(dropped), 0), max(last_sent_at) FROM copies"
    ).fetchone()
    backlog, sent, refused, dropped, last_sent_at = row or (0, 0, 0, 0, None)
    return ConversationOutboxState(
        backlog=backlog, sent=int(sent), refused=int(refused), dropped=int(dropped), last_sent_at=last_sent_at
    )


def delete_expired(connection: Connection, chain: int, *, before: float, max_bytes: int) -> int:
    """Deletes a slice of the copies older than a Unix time, and the oldest copies while the total exceeds
    ``max_bytes``. Deleted copies that were not sent count as dropped.

    Returns the number of deleted copies; fewer than ``SLICE`` means that no further copy has to be deleted.
    """
    (total,) = connection.execute("SELECT coalesce(sum(bytes), 0) FROM copy").fetchone() or (0,)
    excess = total - max_bytes
    expired: list[int] = []
    dropped = 0
    oldest = connection.execute(
        "SELECT number, coalesce(ended_at, at), bytes, reason FROM copy ORDER BY coalesce(ended_at, at) LIMIT %s "
        "FOR UPDATE SKIP LOCKED",
        (SLICE,),
    )
    for number, at, size, reason in oldest:
        if at >= before and excess <= 0:
            break
        excess -= size
        expired.append(number)
        dropped += reason is None
    if expired:
        connection.execute("DELETE FROM copy WHERE number = ANY(%s)", (expired,))
        connection.execute(_DROP, (chain, dropped))
    return len(expired)


def _optional(text: str | None) -> str | None:
    return None if text is None else pg_text(text)
