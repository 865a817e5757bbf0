"""Conversation copies are written with their messages, sent once in order within limits, and followed by an end."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from toold.store import (
    ConversationOutboxState,
    ConversationUpdate,
    NewCopy,
    Retention,
    SettledConversationCopies,
    Store,
    StoredTurn,
)
from toold.store.sqlite import conversation_outbox, conversation_sql
from toold.store.sqlite.audit_sql import SLICE
from toold.store.sqlite.store_schema import STEPS, open_database

DAY = 86400.0
NO_LIMIT_BYTES = 2**40


def make_update(*numbers: int, conversation_id: str = "c", at: float = 1000.0, **fields: Any) -> ConversationUpdate:
    """Messages that a call adds to a conversation and that are copied."""
    plain: dict[str, Any] = {
        "id": conversation_id,
        "principal": "local",
        "at": at,
        "state": "null",
        "bytes": 10,
        "first_number": 1,
        "last_number": max(numbers, default=0),
        "turns": [StoredTurn(number, 5, "{}") for number in numbers],
        "session_id": "s-1",
        "call_id": "call-1",
        "copies": [NewCopy(number=number, role="user", content={"text": str(number)}, at=at) for number in numbers],
    }
    return ConversationUpdate(**plain | fields)


def unsent(
    connection: sqlite3.Connection, after: int = 0, limit: int = 100, max_bytes: int = NO_LIMIT_BYTES
) -> list[str]:
    return [copy.id for copy in conversation_outbox.unsent(connection, after, limit, max_bytes)]


def state(connection: sqlite3.Connection) -> tuple[int, int, int, int]:
    result = conversation_outbox.state(connection)
    return result.backlog, result.sent, result.refused, result.dropped


def test_copy_has_the_message_and_its_principal(connection: sqlite3.Connection) -> None:
    """A copy has the message, its principal and the start of the conversation, even if a later call continues it."""
    conversation_sql.update(connection, make_update(1, copies=[]))
    new_copy = NewCopy(number=2, role="assistant", content={"text": "Hi"}, at=2000.5, provider="kimi", model="k")
    conversation_sql.update(connection, make_update(2, at=2001.0, copies=[new_copy]))
    (copy,) = conversation_outbox.unsent(connection, 0, 10, NO_LIMIT_BYTES)
    assert (copy.id, copy.conversation_id, copy.principal, copy.session_id) == ("c-2", "c", "local", "s-1")
    assert (copy.started_at, copy.at, copy.ended_at, copy.call_id) == (1000.0, 2000.5, None, "call-1")
    assert (copy.position, copy.role, copy.content) == (2, "assistant", {"text": "Hi"})
    assert (copy.provider, copy.model) == ("kimi", "k")


def test_repeated_update_is_copied_once(connection: sqlite3.Connection) -> None:
    """A commit that was reported as failed may have succeeded; its repetition adds no second copy."""
    for _ in range(2):
        conversation_sql.update(connection, make_update(1, 2))
    assert unsent(connection) == ["c-1", "c-2"]


def test_unsent_copies_are_returned_oldest_first_within_limits(connection: sqlite3.Connection) -> None:
    """Unsent copies after a number are limited by count and bytes; at least one is returned."""
    conversation_sql.update(connection, make_update(1, 2, 3))
    assert unsent(connection, after=1) == ["c-2", "c-3"]
    assert unsent(connection, limit=2) == ["c-1", "c-2"]
    assert unsent(connection, max_bytes=1) == ["c-1"]
    assert unsent(connection, max_bytes=1000) == ["c-1", "c-2"]


def test_sent_copies_are_deleted_and_refused_ones_stay(connection: sqlite3.Connection) -> None:
    """Sent and refused copies are each counted once, and neither is sent again."""
    assert conversation_outbox.state(connection) == ConversationOutboxState(
        backlog=0, sent=0, refused=0, dropped=0, last_sent_at=None
    )
    conversation_sql.update(connection, make_update(1, 2, 3))
    for _ in range(2):
        conversation_outbox.settle(connection, SettledConversationCopies(at=7.0, sent=[1]))
        conversation_outbox.settle(connection, SettledConversationCopies(at=8.0, refused={2: "why"}))
    assert unsent(connection) == ["c-3"]
    assert state(connection) == (1, 1, 1, 0)
    assert conversation_outbox.state(connection).last_sent_at == 7.0
    assert connection.execute("SELECT id, reason FROM copy WHERE reason IS NOT NULL").fetchall() == [("c-2", "why")]


def test_copy_numbers_are_not_reused(connection: sqlite3.Connection) -> None:
    """After all copies were sent, the next copy has a higher number, which identifies it to the sender."""
    conversation_sql.update(connection, make_update(1))
    conversation_outbox.settle(connection, SettledConversationCopies(at=7.0, sent=[1]))
    conversation_sql.update(connection, make_update(2))
    assert unsent(connection, after=1) == ["c-2"]


def test_end_of_a_conversation_is_queued(connection: sqlite3.Connection) -> None:
    """When an expired conversation is deleted, its end is queued if it had copies."""
    conversation_sql.update(connection, make_update(1))
    conversation_sql.update(connection, make_update(1, conversation_id="quiet", copies=[]))
    conversation_sql.update(connection, make_update(1, conversation_id="young", at=5000.0))
    conversation_outbox.settle(connection, SettledConversationCopies(at=7.0, sent=[1, 2]))
    assert conversation_sql.delete_expired(connection, before=2000.0, now=9000.0, max_bytes=NO_LIMIT_BYTES) == 2
    (copy,) = conversation_outbox.unsent(connection, 0, 10, NO_LIMIT_BYTES)
    assert (copy.id, copy.conversation_id, copy.position) == ("c", "c", None)
    assert (copy.started_at, copy.at, copy.ended_at) == (1000.0, 1000.0, 9000.0)
    assert conversation_outbox.delete_expired(connection, before=2000.0, max_bytes=NO_LIMIT_BYTES) == 0


def test_expired_copies_are_deleted(connection: sqlite3.Connection) -> None:
    """Unsent copies that expire count as dropped; refused ones are already counted."""
    conversation_sql.update(connection, make_update(1, 2))
    conversation_sql.update(connection, make_update(3, at=3000.0))
    conversation_outbox.settle(connection, SettledConversationCopies(at=7.0, refused={1: "why"}))
    assert conversation_outbox.delete_expired(connection, before=2000.0, max_bytes=NO_LIMIT_BYTES) == 2
    assert unsent(connection) == ["c-3"]
    assert state(connection) == (1, 0, 1, 1)


def test_oldest_copies_are_deleted_beyond_the_size_limit(connection: sqlite3.Connection) -> None:
    """Only as many copies as the limit requires are deleted, one slice at a time."""
    conversation_sql.update(connection, make_update(*range(1, SLICE + 11)))
    (size,) = connection.execute("SELECT max(bytes) FROM copy").fetchone()
    assert conversation_outbox.delete_expired(connection, before=0.0, max_bytes=4 * size) == SLICE
    assert conversation_outbox.delete_expired(connection, before=0.0, max_bytes=4 * size) == 6
    assert conversation_outbox.delete_expired(connection, before=0.0, max_bytes=4 * size) == 0
    assert unsent(connection)[0] == f"c-{SLICE + 7}"
    assert state(connection)[3] == SLICE + 6


def test_migrated_conversation_continues_its_numbers(database: Path) -> None:
    """Messages from before the migration are not copied; later messages get new numbers."""
    with closing(open_database(database, STEPS[:8])) as connection:
        connection.execute(
            "INSERT INTO conversation VALUES ('c', 'local', 1, 1, 1, 'null'), ('d', 'p', 1, 1, 1, 'null')"
        )
        connection.execute("INSERT INTO turn VALUES ('c', 4, 1, '{}'), ('c', 5, 1, '{}')")
    with closing(open_database(database)) as connection:
        loads = [conversation_sql.load(connection, *whose) for whose in (("c", "local"), ("d", "p"))]
        assert [item.last_number for item in loads if item] == [5, 0]
        assert unsent(connection) == []


async def test_store_copies_and_counts_changes(open_store: Callable[..., Store]) -> None:
    """Changes are copied and counted and survive a restart; no copy is returned while copying is disabled."""
    store = open_store()
    before = store.conversations.copy_changes
    await store.conversations.update(make_update(1, at=time.time()))
    assert store.conversations.copy_changes != before
    assert await store.conversations.unsent_copies(0, 10, NO_LIMIT_BYTES) == []
    await store.close()
    reopened = open_store()
    reopened.apply(str, Retention(), copy_conversations=True)
    assert [copy.id for copy in await reopened.conversations.unsent_copies(0, 10, NO_LIMIT_BYTES)] == ["c-1"]
    reopened.conversations.settle(SettledConversationCopies(at=7.0, sent=[1]))
    await reopened.flush()
    assert (await reopened.conversations.outbox_state()).sent == 1
    reopened.apply(str, Retention())
    assert not reopened.conversations.copy_enabled
    await reopened.close()


async def test_conversation_retention_limits_copies(open_store: Callable[..., Store]) -> None:
    """Copies expire with conversations; ``copied`` changes because an expired conversation may have queued an end."""
    store = open_store(Retention(conversation_days=8))
    old = make_update(1, at=time.time() - 9 * DAY)
    await store.conversations.update(old)
    before = store.conversations.copy_changes
    store.apply(str, Retention(conversation_days=8), copy_conversations=True)
    while (await store.conversations.outbox_state()).dropped < 1:
        pass
    while store.conversations.copy_changes == before:
        pass
    assert await store.conversations.load("c", "local") is None
    await store.close()
